// Running experiments in tests, and the numbers that they give.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "heed/lab/result.h"
#include "tests/sanitized.h"

namespace heed::test {

// The result; every number must pass and the verdict must be as documented.
inline lab::Result run_experiment(const std::string& name, const std::vector<std::string>& words = {}) {
  const lab::Result result = lab::run_one(lab::experiment_named(name), words, [](const std::string&) {});
  EXPECT_EQ(result.error, "");
  EXPECT_TRUE(kSanitized || result.as_documented()) << lab::word_for(result.verdict);
  for (const lab::Measured& each : result.report.measured) {
    const bool by_clock = each.name.find("time") != std::string::npos || each.name.find("quicker") != std::string::npos;
    EXPECT_TRUE(each.passes() || (by_clock && kSanitized)) << each.name << ": " << each.measured;
  }
  return result;
}

// A measured number by its name.
inline double measured(const lab::Result& result, const std::string& name) {
  for (const lab::Measured& each : result.report.measured)
    if (each.name == name) return each.measured;
  ADD_FAILURE() << "no number is called " << name;
  return std::nan("");
}

}  // namespace heed::test
