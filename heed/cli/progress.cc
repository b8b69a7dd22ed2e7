#include "heed/cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <sstream>
#include <string_view>

namespace heed::cli {
namespace {

constexpr auto kRedrawEvery = std::chrono::milliseconds(100);

std::string figures(const ProgressState& state) {
  std::ostringstream text;
  text << std::fixed << "loss " << std::setprecision(4) << state.loss << "  accuracy " << std::setprecision(1) << 100 * state.accuracy
       << "%  " << std::setprecision(0) << state.samples_per_second << " samples/s";
  return text.str();
}

std::string epoch_name(const ProgressState& state) {
  const std::string of = std::to_string(state.epochs);
  std::ostringstream text;
  text << "epoch " << std::setw(static_cast<int>(of.size())) << state.epoch << '/' << of;
  return text.str();
}

}  // namespace

std::string readable_time(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  std::ostringstream text;
  text << std::setfill('0');
  if (whole >= 3600) text << whole / 3600 << ':' << std::setw(2);
  text << whole / 60 % 60 << ':' << std::setw(2) << whole % 60;
  return text.str();
}

// The bar takes what room the figures leave.
std::string live_line(const ProgressState& state, int width) {
  const std::string steps = std::to_string(state.step) + '/' + std::to_string(state.steps);
  const std::string rest = steps + "  " + figures(state) + "  " + readable_time(state.seconds_left) + " left";
  std::string line = epoch_name(state) + "  ";
  const int64_t room = width - static_cast<int64_t>(line.size() + rest.size()) - 3;  // for [, ] and a space
  if (const int64_t cells = std::min<int64_t>(room, 20); cells >= 5) {
    const int64_t full = cells * state.step / std::max<int64_t>(state.steps, 1);
    line += '[' + std::string(static_cast<size_t>(full), '#') + std::string(static_cast<size_t>(cells - full), '.') + "] ";
  }
  return (line + rest).substr(0, static_cast<size_t>(std::max(width, 0)));
}

std::string epoch_line(const ProgressState& state, double seconds) {
  std::ostringstream text;
  text << epoch_name(state) << "  " << figures(state) << "  " << std::fixed << std::setprecision(1) << seconds << " s";
  return text.str();
}

Progress::Progress(std::ostream& out, bool live, int width, int64_t epochs, int64_t steps)
    : out_(out), live_(live), width_(width), epoch_start_(Clock::now()), drawn_(epoch_start_) {
  state_.epochs = epochs;
  state_.steps = steps;
}

// An error must not be written behind half a live line.
Progress::~Progress() { erase(); }

void Progress::erase() {
  if (line_shown_) out_ << "\r\x1b[K" << std::flush;
  line_shown_ = false;
}

void Progress::step(int64_t samples, double loss, int64_t right) {
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - epoch_start_).count();
  ++state_.step;
  samples_ += samples;
  right_ += right;
  loss_sum_ += loss * static_cast<double>(samples);
  const auto seen = static_cast<double>(samples_);
  state_.loss = loss_sum_ / seen;
  state_.accuracy = static_cast<double>(right_) / seen;
  state_.samples_per_second = seen / std::max(seconds, 1e-9);
  const int64_t steps_left = (state_.epochs - state_.epoch) * state_.steps + state_.steps - state_.step;
  state_.seconds_left = seconds / static_cast<double>(state_.step) * static_cast<double>(steps_left);

  if (state_.step == state_.steps) {
    erase();
    out_ << epoch_line(state_, seconds) << std::endl;
    ++state_.epoch;
    state_.step = samples_ = right_ = 0;
    loss_sum_ = 0;
    epoch_start_ = now;
  } else if (live_ && now - drawn_ >= kRedrawEvery) {
    out_ << '\r' << live_line(state_, width_) << "\x1b[K" << std::flush;
    line_shown_ = true;
    drawn_ = now;
  }
}

bool is_terminal_output() {
  const char* kind = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && kind != nullptr && std::string_view(kind) != "dumb";
}

int terminal_width() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 80;  // the last column would wrap
}

}  // namespace heed::cli
