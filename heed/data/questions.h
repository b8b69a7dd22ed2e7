// Questions whose answers are parts of a text: the JSON of SQuAD, tables, and synthetic facts.
#pragma once

#include "heed/core/api.h"
#include "heed/data/text_data.h"

namespace HEED_API heed {

// A question about a text. Every answer is a part of the text, from byte `begin` on.
struct Question {
  struct Answer {
    std::string text;
    size_t begin;
  };
  std::string question, context;
  std::vector<Answer> answers = {};  // at least one; all of them are right
};

struct Questions {
  std::vector<Question> items = {};
  int64_t without_answer = 0;  // skipped: unanswerable questions are not supported
  std::string columns = {};    // the columns read from a table, to show to the user
};

// Columns of a table: a header name or a number from 1; empty: found by name.
struct QuestionColumns {
  std::string question = {}, context = {}, answer = {};
};

// where: a .json file in the format of SQuAD 1.1 or 2.0; a .tsv, .csv or .jsonl table (also .gz) with the columns question, context and
// answer, in .jsonl also {"answers": {"text": [...], "answer_start": [...]}}; or "facts" (synthetic, also facts/validation and facts/test).
// For an answer without a start, the first occurrence in the context counts.
Questions read_questions(const std::string& where, const QuestionColumns& columns = {});
bool is_question_file(const std::string& where);  // .json (also .gz), or a table with such columns, or "facts"

// Item i is a function of (seed, part, i).
std::vector<Question> synthetic_facts(int64_t count, uint64_t seed, DataPart part = DataPart::train);

}  // namespace heed
