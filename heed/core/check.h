// The exceptions of heed and the functions that throw them. The program maps each class to an exit code.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

#include "heed/core/api.h"

namespace HEED_API heed {

// An error with a message for users: the op or file first, then what was found and what was expected.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  virtual int exit_code() const { return 1; }
};

class UsageError : public Error {  // wrong command line
 public:
  using Error::Error;
  int exit_code() const override { return 2; }
};

class FileError : public Error {  // an input file that is missing, damaged or of the wrong type
 public:
  using Error::Error;
  int exit_code() const override { return 3; }
};

class DivergedError : public Error {  // training reached a loss that is not a number
 public:
  using Error::Error;
  int exit_code() const override { return 4; }
};

class StoppedError : public Error {  // stopped by Ctrl-C, after saving everything
 public:
  using Error::Error;
  int exit_code() const override { return 130; }
};

// Throws a Kind whose message is all parts, written one after the other.
template <class Kind = Error, class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Kind(text.str());
}

// fail<Kind>(parts...) unless `ok`.
template <class Kind = Error, class... Parts>
inline void check(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail<Kind>(parts...);
}

}  // namespace heed
