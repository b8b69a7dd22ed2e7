// Starting threads, with an error if the system cannot.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "heed/core/check.h"

namespace heed {

// A thread that runs body(), which must not throw. what: names the thread in the error message if the system cannot create it.
template <class Body>
std::thread start_thread(const std::string& what, Body&& body) {
  try {
    return std::thread(std::forward<Body>(body));
  } catch (const std::system_error& error) {
    fail("cannot start ", what, " (", error.code().message(), "); set HEED_THREADS to a smaller number");
  }
}

}  // namespace heed
