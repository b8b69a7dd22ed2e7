// Questions about the cost of attention that courses ask, answered with their formulas and with numbers.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "heed/io/json.h"

namespace heed::cli {

std::string list_questions();  // a line each, with their settings

struct Answer {
  struct Line {
    std::string what, formula;
    double number;
  };
  std::string question, sentence, experiment;  // experiment: of heed lab, which measures it
  std::vector<Line> lines;
  std::vector<std::pair<std::string, int64_t>> settings;
};
// words: key=value. A UsageError where there is no such question or setting.
Answer answer(const std::string& question, const std::vector<std::string>& words);

void print_answer(std::ostream& out, const Answer& answer);
Json answer_json(const Answer& answer);

}  // namespace heed::cli
