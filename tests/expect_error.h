// expect_error(action, fragment): the action throws an Error whose message contains the fragment.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "heed/core/check.h"

namespace heed {

template <class Kind = Error, class Action>
void expect_error(const Action& action, const std::string& fragment) {
  try {
    action();
    ADD_FAILURE() << "no error; expected one with: " << fragment;
  } catch (const Kind& error) {
    EXPECT_NE(std::string(error.what()).find(fragment), std::string::npos) << "the message was: " << error.what();
  }
}

}  // namespace heed
