#include "heed/cli/predict_file.h"
#include "heed/dist/group.h"

#include <algorithm>
#include <charconv>

namespace heed::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string shortest(float number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

std::string csv_cell(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string out = "\"";
  for (const char letter : cell) out += letter == '"' ? "\"\"" : std::string(1, letter);
  return out + '"';
}

std::string tsv_cell(std::string cell) {
  for (char& letter : cell)
    if (letter == '\t' || letter == '\n' || letter == '\r') letter = ' ';
  return cell;
}

}  // namespace

nlohmann::ordered_json row_json(const Sentence& sentence, const TableRow* row, const std::vector<std::string>& columns) {
  OrderedJson out = OrderedJson::object();
  if (row == nullptr) {
    out["text"] = sentence.text;
    if (sentence.pair) out["pair"] = *sentence.pair;
  } else if (!row->json.empty()) {
    out = OrderedJson::parse(row->json);
  } else {
    for (size_t c = 0; c < columns.size(); ++c) out[columns[c]] = row->cells[c];
  }
  return out;
}

LabelFile::Kind LabelFile::kind_of(const std::string& path) {
  for (const auto& [ending, kind] : {std::pair(".csv", Kind::csv), std::pair(".tsv", Kind::tsv), std::pair(".jsonl", Kind::jsonl)})
    if (path.ends_with(ending)) return kind;
  fail<UsageError>("predict: found -o ", path, ", expected a name that ends in .csv, .tsv or .jsonl");
}

void LabelFile::check_name(const std::string& path) { kind_of(path); }

LabelFile::LabelFile(const std::string& path, std::vector<std::string> columns, Labels::Kind kind, int64_t labels)
    : kind_(kind_of(path)), columns_(std::move(columns)), out_(path) {
  const auto add = [&](std::string name) {
    while (std::find(columns_.begin(), columns_.end(), name) != columns_.end()) name.insert(0, "predicted_");
    added_.push_back(name);
  };
  for (int64_t i = 1; i <= labels; ++i) {
    const std::string number = i == 1 ? "" : "_" + std::to_string(i);
    add("label" + number);
    add((kind == Labels::Kind::value ? "value" : "probability") + number);
  }
  if (kind_ == Kind::jsonl) return;
  std::vector<std::string> header = columns_;
  header.insert(header.end(), added_.begin(), added_.end());
  write_line(header);
}

void LabelFile::write_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells)
    (line += line.empty() && &cell == &cells.front() ? ""
             : kind_ == Kind::csv                    ? ","
                                                     : "\t") += kind_ == Kind::csv ? csv_cell(cell) : tsv_cell(cell);
  out_.write(line + '\n');
}

void LabelFile::add(const Sentence& sentence, const TableRow* row, const std::vector<Label>& labels) {
  ++rows_;
  if (kind_ == Kind::jsonl) {
    OrderedJson json = row_json(sentence, row, columns_);
    for (size_t i = 0; i < labels.size(); ++i) {
      json[added_[2 * i]] = labels[i].name;
      json[added_[2 * i + 1]] = labels[i].score;
    }
    return out_.write(json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + '\n');
  }
  std::vector<std::string> cells;
  if (row != nullptr)
    cells = row->cells;
  else
    cells = sentence.pair ? std::vector{sentence.text, *sentence.pair} : std::vector{sentence.text};
  for (const Label& label : labels) cells.insert(cells.end(), {label.name, shortest(label.score)});
  write_line(cells);
}

void LabelFile::finish() {
  if (world().is_first()) out_.commit();
}

}  // namespace heed::cli
