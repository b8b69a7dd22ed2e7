// Readers of questions: the JSON of SQuAD (Rajpurkar et al. 2016), and tables.
#include "heed/data/questions.h"

#include <algorithm>

#include "heed/core/parse.h"
#include "heed/data/text_parts.h"
#include "heed/io/json_reader.h"
#include "heed/io/paths.h"

namespace heed {
namespace {

const Names kAnswerNames = {"answer", "answers", "answer_text", "answers.text"};

// The byte where character number `character` begins; files count characters.
size_t byte_of_character(std::string_view text, int64_t character) {
  size_t at = 0;
  for (; at < text.size() && character > 0; ++at)
    if (at + 1 == text.size() || (static_cast<unsigned char>(text[at + 1]) & 0xc0) != 0x80) --character;
  return at;
}

bool has_at(const std::string& context, int64_t start, const std::string& answer) {
  return start >= 0 && context.compare(byte_of_character(context, start), answer.size(), answer) == 0;
}

// start: in characters; -1: unknown
void add_answer(Question& item, const std::string& where, const std::string& answer, int64_t start) {
  const size_t begin = start < 0 ? item.context.find(answer) : byte_of_character(item.context, start);
  constexpr const char* spaces = " \t\r\n";  // around the answer: no token contains them
  const size_t first = answer.find_first_not_of(spaces), last = answer.find_last_not_of(spaces);
  check<FileError>(first != std::string::npos && begin != std::string::npos && item.context.compare(begin, answer.size(), answer) == 0,
                   where, ": found the answer ", in_quotes(answer, 40),
                   start < 0 ? std::string() : " at character " + std::to_string(start), ", expected a part of the context");
  item.answers.push_back({answer.substr(first, last + 1 - first), begin + first});
}

void add_item(Questions& out, Question item) {
  if (item.answers.empty())
    ++out.without_answer;
  else
    out.items.push_back(std::move(item));
}

// {"text": [...], "answer_start": [...]}: the format of SQuAD in Hugging Face datasets.
void add_listed_answers(Question& item, const std::string& where, const Json& answers) {
  const Json texts = answers.value("text", Json()), starts = answers.at("answer_start");
  check<FileError>(texts.is_array() && starts.is_array() && texts.size() == starts.size(), where,
                   ": found answers that are not two lists of the same length, expected text and answer_start");
  for (size_t i = 0; i < texts.size(); ++i) {
    check<FileError>(texts[i].is_string() && starts[i].is_number_integer(), where,
                     ": found an answer of the wrong type, expected strings in text and whole numbers in answer_start");
    add_answer(item, where, texts[i].get<std::string>(), starts[i].get<int64_t>());
  }
}

Questions parse_squad(const std::string& name, const std::string& text) {
  const Json json = parse_json(name, text);
  Questions out;
  const JsonReader root(json, name);
  for (const JsonReader& article : root["data"].list())
    for (const JsonReader& paragraph : article["paragraphs"].list())
      for (const JsonReader& asked : paragraph["qas"].list()) {
        Question item{.question = asked["question"].text(), .context = paragraph["context"].text()};
        if (!asked.flag_or("is_impossible", false))
          for (const JsonReader& answer : asked["answers"].list())
            add_answer(item, name + ": question " + in_quotes(item.question, 60), answer["text"].text(),
                       answer.whole_or("answer_start", -1));
        add_item(out, std::move(item));
      }
  return out;
}

struct ColumnNumbers {
  int question = kNoColumn, context = kNoColumn, answer = kNoColumn;
  bool complete() const { return question != kNoColumn && context != kNoColumn && answer != kNoColumn; }
};

ColumnNumbers question_columns(const Table& table, const QuestionColumns& columns) {
  ColumnNames names(table.columns);
  ColumnNumbers out{requested_column(table, "question_column", columns.question),
                    requested_column(table, "context_column", columns.context), requested_column(table, "answer_column", columns.answer)};
  const auto find = [&](int& column, const Names& known) {
    if (column == kNoColumn) column = names.find_first(known);
    names.exclude(column);
  };
  find(out.question, kQuestionNames);
  find(out.context, kContextNames);
  find(out.answer, kAnswerNames);
  return out;
}

Table question_table(const std::string& name, std::string_view text, const QuestionColumns& columns) {
  Table table = parse_table(name, text, table_kind(name));
  check<FileError>(!table.rows.empty(), name, ": found no rows, expected a question, a context and an answer in each");
  const auto is_name = [](const std::string& word) { return !word.empty() && !is_column_number(word); };
  const bool named = is_name(columns.question) || is_name(columns.context) || is_name(columns.answer);
  if (table.columns.empty() && (named || ColumnNames(table.rows.front().cells).find_first(kQuestionNames) != kNoColumn)) take_header(table);
  return table;
}

Questions parse_questions(const std::string& name, const std::string& text, const QuestionColumns& columns) {
  const Table table = question_table(name, text, columns);
  const ColumnNumbers chosen = question_columns(table, columns);
  check<FileError>(chosen.complete(), name, ": found no column of ",
                   chosen.question == kNoColumn  ? "questions; choose it with question_column=NAME"
                   : chosen.context == kNoColumn ? "contexts; choose it with context_column=NAME"
                                                 : "answers; choose it with answer_column=NAME");
  ChosenColumns shown;
  record_column(table, "question_column", chosen.question, &shown);
  record_column(table, "context_column", chosen.context, &shown);
  record_column(table, "answer_column", chosen.answer, &shown);
  Questions out{.columns = columns_text(name, shown)};
  const int start_column = ColumnNames(table.columns).find("answer_start");
  const std::string context_name = table.columns.empty() ? "" : table.columns[static_cast<size_t>(chosen.context)];
  // answer_start may count from the first character of a cell, which `table` has without the spaces around it.
  const bool has_starts = start_column != kNoColumn && table_kind(name) != TableKind::jsonl;
  const Table whole = has_starts ? parse_table(name, text, table_kind(name), false) : Table();
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const TableRow &row = table.rows[r], &exact = has_starts ? whole.rows[whole.rows.size() - table.rows.size() + r] : row;
    const auto cell = [&](int column) -> const std::string& { return row.cells[static_cast<size_t>(column)]; };
    Question item{.question = cell(chosen.question), .context = cell(chosen.context)};
    check<FileError>(!item.question.empty() && !item.context.empty(), table.at(row), ": found no ",
                     item.question.empty() ? "question" : "context", ", expected one in every row; fill it in or delete the row");
    const Json json = row.json.empty() ? Json() : parse_json(table.at(row), row.json);
    const int64_t start = start_column == kNoColumn ? -1 : parse_number<int64_t>(cell(start_column)).value_or(-1);
    if (const std::string& spaced = exact.cells[static_cast<size_t>(chosen.context)]; has_at(spaced, start, cell(chosen.answer)))
      item.context = spaced;
    const auto context = json.find(context_name);
    if (context != json.end() && context->is_string()) item.context = context->get<std::string>();
    if (json.is_object() && json.contains("answers") && json["answers"].is_object() && json["answers"].contains("answer_start"))
      add_listed_answers(item, table.at(row), json["answers"]);
    else if (!cell(chosen.answer).empty())
      add_answer(item, table.at(row), cell(chosen.answer), start);
    add_item(out, std::move(item));
  }
  return out;
}

bool is_squad_file(const std::string& where) { return where.ends_with(".json") || where.ends_with(".json.gz"); }

}  // namespace

Questions read_questions(const std::string& where, const QuestionColumns& columns) {
  for (const auto& [name, part, count] :
       {std::tuple("facts", DataPart::train, 8000), std::tuple("facts/validation", DataPart::validation, 500),
        std::tuple("facts/test", DataPart::test, 500)})
    if (where == name) return {.items = synthetic_facts(count, 1, part)};
  check<FileError>(is_squad_file(where) || is_table_file(where), where,
                   ": found neither .json nor a table, expected a file in SQuAD format, a .tsv, .csv or .jsonl file, or facts");
  const std::string text = read_text_or_gzip(where);
  Questions out = is_squad_file(where) ? parse_squad(where, text) : parse_questions(where, text, columns);
  check<FileError>(!out.items.empty(), where, ": found no question with an answer, expected at least one");
  return out;
}

bool is_question_file(const std::string& where) {
  if (where == "facts" || where.starts_with("facts/")) return !path_exists(where);
  if (is_squad_file(where)) return is_plain_file(where);
  if (!is_table_file(where) || !is_plain_file(where)) return false;
  const std::string text = read_text_or_gzip(where);
  Table table = parse_table(where, text, table_kind(where));
  if (table.rows.size() < 2 && table.columns.empty()) return false;
  if (table.columns.empty() && ColumnNames(table.rows.front().cells).find_first(kQuestionNames) != kNoColumn) take_header(table);
  return !table.columns.empty() && question_columns(table, {}).complete();
}

}  // namespace heed
