// Runs experiments in tests and reads their measurements.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "heed/lab/result.h"

namespace heed::test {

// Runs an experiment. Every measurement that does not measure time must pass, and the verdict without times must be as documented.
// timing_test.cc judges times.
inline lab::Result run_experiment(const std::string& name, const std::vector<std::string>& settings = {}) {
  const lab::Result result = lab::run_one(lab::find_experiment(name), settings, [](const std::string&) {});
  EXPECT_EQ(result.error, "");
  lab::Report counted{.agrees = result.report.agrees, .undecided = result.report.undecided, .measured = result.report.measured};
  std::erase_if(counted.measured, [](const lab::Measured& each) { return each.by_clock; });
  if (counted.undecided.empty()) {
    const lab::Verdict expected = counted.agrees.empty() ? result.experiment->expected : lab::Verdict::holds;
    EXPECT_EQ(lab::verdict_text(lab::verdict_of(counted)), lab::verdict_text(expected));
  }
  for (const lab::Measured& each : counted.measured) EXPECT_TRUE(each.passes()) << each.name << ": " << each.measured;
  return result;
}

// A measurement by its name.
inline double measured(const lab::Result& result, const std::string& name) {
  for (const lab::Measured& each : result.report.measured)
    if (each.name == name) return each.measured;
  ADD_FAILURE() << "no measurement is called " << name;
  return std::nan("");
}

}  // namespace heed::test
