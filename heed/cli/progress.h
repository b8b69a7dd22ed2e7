// Progress of a training run: one live line on a terminal, and one lasting line per epoch everywhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>

namespace heed::cli {

// Averages over the steps of one epoch.
struct ProgressState {
  int64_t epoch = 1, epochs = 1;
  int64_t step = 0, steps = 1;    // of this epoch
  double loss = 0, accuracy = 0;  // accuracy in [0, 1]
  double samples_per_second = 0;
  double seconds_left = 0;  // to the end of the last epoch
};

std::string live_line(const ProgressState& state, int width);  // at most `width` characters
std::string epoch_line(const ProgressState& state, double seconds);
std::string readable_time(double seconds);

class Progress {
 public:
  // `live`: out is a terminal, `width` characters wide.
  Progress(std::ostream& out, bool live, int width, int64_t epochs, int64_t steps);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // One step of training is done: the mean loss of its samples and how many of them were right.
  void step(int64_t samples, double loss, int64_t right);

 private:
  using Clock = std::chrono::steady_clock;

  void erase();

  std::ostream& out_;
  const bool live_;
  const int width_;
  ProgressState state_;
  int64_t samples_ = 0, right_ = 0;  // of this epoch
  double loss_sum_ = 0;
  Clock::time_point epoch_start_, drawn_;
  bool line_shown_ = false;
};

bool is_terminal_output();  // whether standard output is a terminal that understands a returning cursor
int terminal_width();       // of standard output; 80 when unknown

}  // namespace heed::cli
