// Progress of a training run: one live line on a terminal, and one permanent line per epoch.
#pragma once

#include <chrono>
#include <functional>
#include <ostream>
#include <string>

#include "heed/io/terminal_style.h"
#include "heed/train/trainer.h"

namespace heed::cli {

std::string live_line(const StepInfo& step, int width);                               // at most `width` characters
std::string epoch_line(const EpochInfo& epoch, int width = 80, bool colour = false);  // fields that fit into `width` characters
std::string readable_time(double seconds);
int terminal_width(int file = 1);  // of file descriptor 1 or 2; 80 if unknown

class Progress {
 public:
  struct Options {
    bool live = false, colour = false;                             // live: `out` is a terminal
    std::function<int()> width = [] { return terminal_width(); };  // called for every line: terminals are resized
  };
  Progress(std::ostream& out, Options options) : out_(out), options_(std::move(options)) {}
  ~Progress() { erase(); }  // an error message must not be appended to a live line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const StepInfo& step);
  void count(const std::string& what, int64_t done, int64_t all);  // "what 20/100" as the live line
  void epoch(const EpochInfo& epoch);
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
