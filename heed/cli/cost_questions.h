// Common course questions about the cost of attention, answered with formulas and numbers.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "heed/io/json.h"

namespace heed::cli {

std::string list_questions();  // names, summaries and default settings

struct Answer {
  struct Line {
    std::string what, formula;
    double number;
  };
  std::string question, sentence, experiment;  // experiment: the one of heed lab that measures it
  std::vector<Line> lines;
  std::vector<std::pair<std::string, int64_t>> settings;
};
// assignments: key=value. Throws a UsageError for an unknown question or setting.
Answer answer(const std::string& question, const std::vector<std::string>& assignments);

void print_answer(std::ostream& out, const Answer& answer);
Json answer_json(const Answer& answer);

}  // namespace heed::cli
