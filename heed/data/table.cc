// Table parsers: TSV, CSV with quotes (RFC 4180; also with semicolons or tabs), and JSON lines.
#include <algorithm>

#include "heed/data/text_parts.h"
#include "heed/io/json.h"
#include "heed/io/read_progress.h"

namespace heed {
namespace {

constexpr size_t kLongestField = kMaxJsonToken;  // bytes, for every format

[[noreturn]] void refuse_long_field(const std::string& name, int64_t line, const char* hint = "") {
  fail<FileError>(name, ":", line, ": found a field of more than ", kLongestField, " bytes, expected at most that many", hint);
}

class CsvReader {
 public:
  CsvReader(const std::string& name, std::string_view text, bool trims)
      : name_(name), text_(text), separator_(separator_of(text)), trims_(trims) {}

  bool next(TableRow& row) {
    while (at_ < text_.size() && ends_line()) pass_line_end();  // empty lines
    if (at_ >= text_.size()) return false;
    row = {.line = line_};
    for (;;) {
      const std::string cell = at_ < text_.size() && text_[at_] == '"' ? quoted() : bare();
      row.cells.emplace_back(trims_ ? trimmed(cell) : cell);
      if (at_ < text_.size() && text_[at_] == separator_) {
        ++at_;
        continue;
      }
      if (at_ < text_.size()) pass_line_end();
      return true;
    }
  }

  char separator() const { return separator_; }
  size_t position() const { return at_; }

 private:
  // Spreadsheets use semicolons in locales with decimal commas; some programs write tabs. They are the separator if the first row has
  // them and no comma.
  static char separator_of(std::string_view text) {
    bool quotes = false, semicolon = false, tab = false;
    char before = '\n';
    for (const char c : text) {
      const bool begins = before == ';' || before == '\t' || before == '\n' || before == '"';  // elsewhere a quote is literal
      if (c == '"' && (quotes || begins)) quotes = !quotes;
      before = c;
      if (quotes) continue;
      if (c == ',') return ',';
      if (c == '\n' && (semicolon || tab)) break;
      semicolon = semicolon || c == ';';
      tab = tab || c == '\t';
    }
    return semicolon ? ';' : tab ? '\t' : ',';
  }

  bool ends_line() const { return text_[at_] == '\n' || text_.substr(at_, 2) == "\r\n"; }
  void pass_line_end() {
    at_ += text_[at_] == '\r' ? 2 : 1;
    ++line_;
  }

  std::string bare() {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != separator_ && !ends_line())
      if (++at_ - begin > kLongestField) refuse_long_field(name_, line_);
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string quoted() {
    const int64_t first_line = line_;
    std::string cell;
    for (++at_; at_ < text_.size(); ++at_) {
      line_ += text_[at_] == '\n';
      if (cell.size() > kLongestField) refuse_long_field(name_, first_line, "; is its closing quote missing?");
      if (text_[at_] != '"') {
        cell += text_[at_];
      } else if (text_.substr(at_, 2) == "\"\"") {
        cell += '"';
        ++at_;
      } else {
        ++at_;
        check<FileError>(at_ == text_.size() || text_[at_] == separator_ || ends_line(), name_, ":", line_, ": found ",
                         in_quotes(text_.substr(at_, 10)), " after a closing quote, expected a ",
                         separator_ == ';'    ? "semicolon"
                         : separator_ == '\t' ? "tab"
                                              : "comma",
                         " or the end of the line; a quote inside quotes is written twice");
        return cell;
      }
    }
    fail<FileError>(name_, ":", first_line, ": found a quote that is not closed, expected another before the end of the file");
  }

  const std::string& name_;
  const std::string_view text_;
  const char separator_;
  const bool trims_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

// use(number, line) for every non-empty line, without its line end.
template <class Use>
void each_line(std::string_view text, const Use& use) {
  int64_t line = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view found = text.substr(begin, end - begin);
    if (found.ends_with('\r')) found.remove_suffix(1);
    ++line;
    begin = end + 1;
    if (!found.empty()) use(line, found);
  }
}

std::vector<std::string> cells_of(const std::string& name, int64_t number, std::string_view line, bool trims) {
  std::vector<std::string> cells;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find('\t', begin), line.size());
    if (end - begin > kLongestField) refuse_long_field(name, number);
    const std::string_view cell = line.substr(begin, end - begin);
    cells.emplace_back(trims ? trimmed(cell) : cell);
    begin = end + 1;
  }
  return cells;
}

// Numbers and booleans may be labels; lists, objects and null become empty cells.
std::string cell_of(const Json& value) {
  if (value.is_string()) return std::string(trimmed(value.get_ref<const std::string&>()));
  return value.is_number() || value.is_boolean() ? value.dump() : "";
}

}  // namespace

Table parse_table(const std::string& name, std::string_view text, TableKind kind, bool trims) {
  if (kind == TableKind::jsonl) return parse_json_lines(name, text);
  Table table{name};
  ReadProgress progress("reading " + name, std::ssize(text));
  const char* separator_note = "";
  if (kind == TableKind::csv) {
    CsvReader reader(name, text, trims);
    const bool both = reader.separator() == ',' && text.find(';') != text.npos;
    separator_note = reader.separator() == ';' ? "; this file is separated by semicolons, because its first row has no comma"
                     : both ? "; this file is separated by commas, not semicolons, because its first row has a comma outside quotes"
                            : "";
    for (TableRow row; reader.next(row);) {
      table.rows.push_back(std::move(row));
      progress.at(static_cast<int64_t>(reader.position()));
    }
  } else {
    each_line(text, [&](int64_t line, std::string_view found) {
      table.rows.push_back({.line = line, .cells = cells_of(name, line, found, trims)});
      progress.at(found.data() - text.data());
    });
  }
  for (const TableRow& row : table.rows)
    check<FileError>(row.cells.size() == table.rows.front().cells.size(), table.at(row), ": found ", row.cells.size(),
                     " columns, expected ", table.rows.front().cells.size(), " as in line ", table.rows.front().line, separator_note);
  return table;
}

Table parse_json_lines(const std::string& name, std::string_view text) {
  Table table{name};
  ReadProgress progress("reading " + name, std::ssize(text));
  std::vector<Json::json_pointer> pointers;  // per column
  const auto add_column = [&](const std::string& key, const Json::json_pointer& pointer) {
    table.columns.push_back(key);
    pointers.push_back(pointer);
  };
  each_line(text, [&](int64_t line, std::string_view found) {
    const Json json = parse_json(name + ":" + std::to_string(line), found);
    check<FileError>(json.is_object(), name, ":", line, ": found ", json.type_name(),
                     ", expected an object: {\"text\": ..., \"label\": ...}");
    if (table.rows.empty())
      for (const auto& [key, value] : json.items()) {
        add_column(key, Json::json_pointer() / key);
        if (!value.is_object()) continue;
        for (const auto& [below, inner] : value.items()) add_column(key + "." + below, Json::json_pointer() / key / below);
      }
    TableRow row{.line = line, .json = found};
    for (const Json::json_pointer& pointer : pointers) row.cells.push_back(json.contains(pointer) ? cell_of(json[pointer]) : "");
    table.rows.push_back(std::move(row));
    progress.at(found.data() - text.data());
  });
  return table;
}

}  // namespace heed
