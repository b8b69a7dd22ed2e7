#include "heed/cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace heed::cli {
namespace {

constexpr auto kRedrawEvery = std::chrono::milliseconds(100);

bool is_share(std::string_view name) { return name.ends_with("accuracy") || name.ends_with("f1") || name.ends_with("top5"); }

// "0.3457", "87.7%"
std::string bare_figure(const std::string& name, double value) {
  std::ostringstream text;
  text << std::fixed;
  if (is_share(name))
    text << std::setprecision(1) << 100 * value << '%';
  else
    text << std::setprecision(value >= 100 ? 1 : 4) << value;
  return text.str();
}

// "loss 0.3457", "accuracy 87.7%"
std::string figure(const std::string& name, double value) { return name + ' ' + bare_figure(name, value); }

std::string epoch_name(int64_t epoch, int64_t epochs) {
  const std::string of = std::to_string(epochs);
  std::ostringstream text;
  text << "epoch " << std::setw(static_cast<int>(of.size())) << epoch << '/' << of;
  return text.str();
}

std::string throughput_text(double samples_per_second, double share_of_peak) {
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

// Drops the least important fields until the line fits; the bar takes the remaining width.
std::string live_line(const StepInfo& step, int width) {
  const std::string begin = epoch_name(step.epoch, step.epochs) + "  ",
                    place = std::to_string(step.step) + '/' + std::to_string(step.steps);
  std::string figures;
  for (const auto& [name, value] : step.means) figures += "  " + figure(name, value);
  std::ostringstream rate;
  rate << "  rate " << std::setprecision(2) << step.rate;
  const std::string speed = "  " + throughput_text(step.samples_per_second, 0), left = "  " + readable_time(step.seconds_left) + " left";
  std::string line;
  for (const std::string& rest : {figures + rate.str() + "  " + throughput_text(step.samples_per_second, step.share_of_peak) + left,
                                  figures + rate.str() + speed + left, figures + speed + left, figures + left, figures}) {
    line = begin + place + rest;
    if (std::ssize(line) > width) continue;
    const int64_t cells = std::min<int64_t>(width - std::ssize(line) - 3, 20);  // 3: [, ] and a space
    if (cells < 5) return line;
    const int64_t full = cells * step.step / std::max<int64_t>(step.steps, 1);
    const std::string bar = std::string(static_cast<size_t>(full), '#') + std::string(static_cast<size_t>(cells - full), '.');
    return line.insert(begin.size(), '[' + bar + "] ");
  }
  return line.substr(0, static_cast<size_t>(std::max(width, 0)));
}

// "epoch 1/5  loss 0.6920 val 0.5551  accuracy 75.4% val 79.5%  1103/s  0:53  best". Drops the least important fields until the line fits;
// metrics.csv has all of them.
std::string epoch_line(const EpochInfo& epoch, int width, bool colour) {
  struct Field {
    std::string text;
    int rank;  // 0: always shown; lower is more important
    bool shown = false;
  };
  std::vector<Field> fields{{epoch_name(epoch.epoch, epoch.epochs), 0}};
  const auto value_of = [&](const std::string& name) -> std::optional<double> {
    for (const auto& [each, value] : epoch.figures)
      if (each == name) return value;
    return std::nullopt;
  };
  int others = 0;
  for (const auto& [full, value] : epoch.figures) {
    const size_t cut = full.find('_');
    const std::string part = full.substr(0, cut), name = cut == std::string::npos ? "" : full.substr(cut + 1);
    if (part == "train") {
      const std::optional<double> validation = value_of("validation_" + name);
      const std::string text = figure(name, value) + (validation ? " val " + bare_figure(name, *validation) : "");
      fields.push_back({text, name == "loss" ? 0 : 2 * others++ + 1});
    } else if (part == "validation" && !value_of("train_" + name)) {
      fields.push_back({"val " + figure(name, value), 2 * others++ + 1});
    }
  }
  std::ostringstream speed;
  speed << std::fixed << std::setprecision(epoch.samples_per_second < 10 ? 1 : 0) << epoch.samples_per_second << "/s";
  fields.push_back({speed.str(), 2});
  std::ostringstream peak;
  peak << std::fixed << std::setprecision(0) << 100 * epoch.share_of_peak << "% of peak";
  if (epoch.share_of_peak > 0) fields.push_back({peak.str(), 2 * others + 2});
  fields.push_back({readable_time(epoch.seconds), 0});
  if (epoch.best) fields.push_back({"best", 0});

  int64_t used = -2;
  for (int rank = 0; rank <= 2 * others + 2; ++rank)
    for (Field& field : fields) {
      if (field.rank != rank || (rank > 0 && used + 2 + std::ssize(field.text) > width)) continue;
      used += 2 + std::ssize(field.text);
      field.shown = true;
    }
  std::string out;
  for (const Field& field : fields) {
    if (!field.shown) continue;
    const bool best = epoch.best && &field == &fields.back();
    out += (out.empty() ? "" : "  ") + (best ? styled(field.text, TextStyle::green, colour) : field.text);
  }
  return out;
}

void Progress::erase() {
  if (line_shown_) out_ << "\r\x1b[K" << std::flush;
  line_shown_ = false;
}

void Progress::draw(const std::function<std::string()>& line) {
  const auto now = std::chrono::steady_clock::now();
  if (!options_.live || now - drawn_ < kRedrawEvery) return;
  out_ << '\r' << line() << "\x1b[K" << std::flush;
  line_shown_ = true;
  drawn_ = now;
}

void Progress::step(const StepInfo& step) {
  draw([&] { return live_line(step, options_.width()); });
}

void Progress::count(const std::string& what, int64_t done, int64_t all) {
  draw([&] {
    const std::string line = what + ' ' + std::to_string(done) + '/' + std::to_string(all);
    return line.substr(0, static_cast<size_t>(std::max(options_.width(), 0)));
  });
}

void Progress::epoch(const EpochInfo& epoch) {
  say(epoch_line(epoch, options_.live ? std::max(options_.width(), 40) : 80, options_.colour));
}

void Progress::say(const std::string& text) {
  erase();
  out_ << text << std::endl;
}

int terminal_width(int file) {
  winsize size{};
  return ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 80;  // the last column would wrap
}

}  // namespace heed::cli
