// What people see of a training run: one live line on a terminal, and one lasting line per epoch everywhere.
#pragma once

#include <chrono>
#include <ostream>
#include <string>

#include "heed/train/fit.h"

namespace heed::cli {

std::string live_line(const StepDone& step, int width);  // at most `width` characters
std::string epoch_line(const EpochDone& epoch);
std::string readable_time(double seconds);

class Progress {
 public:
  // live: `out` is a terminal, `width` characters wide.
  Progress(std::ostream& out, bool live, int width) : out_(out), live_(live), width_(width) {}
  ~Progress() { erase(); }  // an error must not be written behind half a live line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const StepDone& step);
  void epoch(const EpochDone& epoch);
  void say(const std::string& text);

 private:
  void erase();

  std::ostream& out_;
  const bool live_;
  const int width_;
  std::chrono::steady_clock::time_point drawn_ = {};
  bool line_shown_ = false;
};

bool is_terminal_output();  // whether standard output is a terminal that understands a returning cursor
int terminal_width();       // of standard output; 80 when unknown

}  // namespace heed::cli
