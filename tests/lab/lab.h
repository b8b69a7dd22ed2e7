// Runs experiments in tests and reads their measurements.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "heed/lab/result.h"
#include "tests/sanitized.h"

namespace heed::test {

inline bool is_timing(const lab::Measured& number) {
  return number.name.find("time") != std::string::npos || number.name.find("speedup") != std::string::npos ||
         number.name.find("faster") != std::string::npos;
}

// Runs an experiment; every measurement must pass and the verdict must be as documented. Timings that fail are repeated a few times,
// because other programs share caches and memory.
inline lab::Result run_experiment(const std::string& name, const std::vector<std::string>& settings = {}, int retries = 5) {
  const lab::Result result = lab::run_one(lab::find_experiment(name), settings, [](const std::string&) {});
  const std::vector<lab::Measured>& all = result.report.measured;
  const bool disturbed = std::any_of(all.begin(), all.end(), [](const lab::Measured& each) { return is_timing(each) && !each.passes(); });
  if (disturbed && !kSanitized && retries > 0) return run_experiment(name, settings, retries - 1);
  EXPECT_EQ(result.error, "");
  EXPECT_TRUE(result.as_documented() || (disturbed && kSanitized)) << lab::verdict_text(result.verdict);
  for (const lab::Measured& each : all) {
    EXPECT_TRUE(each.passes() || (is_timing(each) && kSanitized)) << each.name << ": " << each.measured;
  }
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
