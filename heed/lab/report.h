// The outcome of an experiment: measurements against predictions, tables and figures. The verdict follows from the measurements alone.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "heed/lab/figure.h"

namespace heed::lab {

// corrected: the published claim is wrong, the right one holds; undecided: these settings cannot tell, for example after too few steps
enum class Verdict { holds, corrected, fails, undecided };
std::string verdict_text(Verdict verdict);  // "holds", "holds, corrected", "does not hold", "not decided"

// A measurement and its prediction, made by the functions below.
struct Measured {
  enum class Rule { share, distance, at_most, at_least, contradicts };
  std::string name = {};
  double predicted = 0, measured = 0, tolerance = 0;
  Rule rule = Rule::share;
  bool by_clock = false;  // a time or a ratio of times: depends on what else the machine does

  bool passes() const;             // false for NaN and infinity
  std::string prediction() const;  // "12 ± 2 %", "≤ 1e-5", ...
};
Measured close_to(std::string name, double predicted, double measured, double share);         // |m - p| <= share |p|
Measured equal_to(std::string name, double predicted, double measured, double distance = 0);  // |m - p| <= distance
Measured at_most(std::string name, double limit, double measured);
Measured at_least(std::string name, double limit, double measured);
// A published value that differs from the measured one by more than this share.
Measured contradicts(std::string name, double published, double measured, double share = 0.1);

Measured by_clock(Measured measured);  // marks it

using Cell = std::variant<std::string, double>;
struct Table {
  std::string title = {};
  std::vector<std::string> columns = {};
  std::vector<std::vector<Cell>> rows = {};
};

struct Report {
  std::string statement = {};  // the finding if all measurements are as predicted, one or two sentences
  std::string agrees = {};     // why the published claim is right at these settings, if it is
  std::string undecided = {};  // why these settings cannot decide the claim, if they cannot
  std::vector<Measured> measured = {};
  std::vector<Table> tables = {};
  std::vector<Figure> figures = {};
};
// fails if a measurement fails or there is none; corrected if a published claim is contradicted.
Verdict verdict_of(const Report& report);
// What was found: the statement, or the measurements that are not as predicted, or why nothing can be decided.
std::string finding_of(const Report& report);

std::string number_text(double value);   // about four significant digits
std::string setting_text(double value);  // shortest form: 0.5, not 0.5000
std::string about_text(double value);    // two significant digits, for times: 0.24, 1.7, 120

}  // namespace heed::lab
