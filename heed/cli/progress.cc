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

bool is_share(std::string_view name) { return name.ends_with("accuracy") || name.ends_with("f1") || name.ends_with("top5"); }

// "loss 0.3457", "accuracy 87.7%"
std::string figure(const std::string& name, double value) {
  std::ostringstream text;
  text << name << ' ' << std::fixed;
  if (is_share(name))
    text << std::setprecision(1) << 100 * value << '%';
  else
    text << std::setprecision(value >= 100 ? 1 : 4) << value;
  return text.str();
}

std::string epoch_name(int64_t epoch, int64_t epochs) {
  const std::string of = std::to_string(epochs);
  std::ostringstream text;
  text << "epoch " << std::setw(static_cast<int>(of.size())) << epoch << '/' << of;
  return text.str();
}

std::string pace(double samples_per_second, double share_of_peak) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(samples_per_second < 10 ? 1 : 0) << samples_per_second << " samples/s";
  if (share_of_peak > 0) text << "  " << std::setprecision(0) << 100 * share_of_peak << "% of peak";
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

// Where there is too little room, what matters least is left out first; the bar takes what remains.
std::string live_line(const StepDone& step, int width) {
  const std::string begin = epoch_name(step.epoch, step.epochs) + "  ",
                    place = std::to_string(step.step) + '/' + std::to_string(step.steps);
  std::string figures;
  for (const auto& [name, value] : step.means) figures += "  " + figure(name, value);
  std::ostringstream rate;
  rate << "  rate " << std::setprecision(2) << step.rate;
  const std::string quick = "  " + pace(step.samples_per_second, 0), left = "  " + readable_time(step.seconds_left) + " left";
  std::string line;
  for (const std::string& rest : {figures + rate.str() + "  " + pace(step.samples_per_second, step.share_of_peak) + left,
                                  figures + rate.str() + quick + left, figures + quick + left, figures + left, figures}) {
    line = begin + place + rest;
    if (std::ssize(line) > width) continue;
    const int64_t cells = std::min<int64_t>(width - std::ssize(line) - 3, 20);  // 3: for [, ] and a space
    if (cells < 5) return line;
    const int64_t full = cells * step.step / std::max<int64_t>(step.steps, 1);
    const std::string bar = std::string(static_cast<size_t>(full), '#') + std::string(static_cast<size_t>(cells - full), '.');
    return line.insert(begin.size(), '[' + bar + "] ");
  }
  return line.substr(0, static_cast<size_t>(std::max(width, 0)));
}

// "epoch 1/5  train loss 0.5, accuracy 80%  validation loss 0.4, accuracy 83%  ..."
std::string epoch_line(const EpochDone& epoch) {
  std::ostringstream text;
  text << epoch_name(epoch.epoch, epoch.epochs);
  std::string part;
  for (const auto& [name, value] : epoch.figures) {
    const size_t cut = name.find('_');
    const std::string first = name.substr(0, cut);
    if (cut == std::string::npos || (first != "train" && first != "validation")) continue;
    text << (first == part ? ", " : "  " + first + ' ') << figure(name.substr(cut + 1), value);
    part = first;
  }
  text << "  " << pace(epoch.samples_per_second, epoch.share_of_peak) << "  " << readable_time(epoch.seconds)
       << (epoch.best ? "  best" : "");
  return text.str();
}

void Progress::erase() {
  if (line_shown_) out_ << "\r\x1b[K" << std::flush;
  line_shown_ = false;
}

void Progress::step(const StepDone& step) {
  const auto now = std::chrono::steady_clock::now();
  if (!live_ || now - drawn_ < kRedrawEvery) return;
  out_ << '\r' << live_line(step, width_) << "\x1b[K" << std::flush;
  line_shown_ = true;
  drawn_ = now;
}

void Progress::epoch(const EpochDone& epoch) { say(epoch_line(epoch)); }

void Progress::say(const std::string& text) {
  erase();
  out_ << text << std::endl;
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
