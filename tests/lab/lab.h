// Runs experiments in tests and reads their measurements.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "heed/lab/cache.h"
#include "heed/lab/result.h"

namespace heed::test {

// Runs an experiment. Measurements of time are left out and do not count in the verdict, since other programs disturb them; timing_test.cc
// judges them.
inline lab::Result run_untimed(const std::string& name, const std::vector<std::string>& settings = {}) {
  lab::Result result = lab::run_one(lab::find_experiment(name), settings, [](const std::string&) {});
  EXPECT_EQ(result.error, "");
  const size_t timed = std::erase_if(result.report.measured, [](const lab::Measured& each) { return each.by_clock; });
  EXPECT_EQ(result.experiment->timed, lab::trains_models(*result.experiment) && timed > 0);
  result.verdict = lab::verdict_of(result.report);
  return result;
}

// The same; every measurement must pass, and the verdict must be as documented.
inline lab::Result run_experiment(const std::string& name, const std::vector<std::string>& settings = {}) {
  const lab::Result result = run_untimed(name, settings);
  if (result.report.undecided.empty()) {
    const lab::Verdict expected = result.report.agrees.empty() ? result.experiment->expected : lab::Verdict::holds;
    EXPECT_EQ(lab::verdict_text(result.verdict), lab::verdict_text(expected));
  }
  for (const lab::Measured& each : result.report.measured) EXPECT_TRUE(each.passes()) << each.name << ": " << each.measured;
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
