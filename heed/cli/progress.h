// What people see of a training run: one live line on a terminal, and one lasting line per epoch everywhere.
#pragma once

#include <chrono>
#include <functional>
#include <ostream>
#include <string>

#include "heed/io/paint.h"
#include "heed/train/fit.h"

namespace heed::cli {

std::string live_line(const StepDone& step, int width);                               // at most `width` characters
std::string epoch_line(const EpochDone& epoch, int width = 80, bool colour = false);  // as much as fits into `width` characters
std::string readable_time(double seconds);
int terminal_width(int file = 1);  // now; file: 1, standard output, or 2, standard error; 80 when unknown

class Progress {
 public:
  struct Options {
    bool live = false, colour = false;                             // live: `out` is a terminal
    std::function<int()> width = [] { return terminal_width(); };  // asked before every line: people resize terminals
  };
  Progress(std::ostream& out, Options options) : out_(out), options_(std::move(options)) {}
  ~Progress() { erase(); }  // an error must not be written behind half a live line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const StepDone& step);
  void count(const std::string& what, int64_t done, int64_t all);  // "what 20/100" as the live line
  void epoch(const EpochDone& epoch);
  void say(const std::string& text);

 private:
  void draw(const std::function<std::string()>& line);
  void erase();

  std::ostream& out_;
  const Options options_;
  std::chrono::steady_clock::time_point drawn_ = {};
  bool line_shown_ = false;
};

}  // namespace heed::cli
