#include "heed/lab/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace heed::lab {
namespace {

// 1.5e-07 -> 1.5e-7
std::string short_power(std::string text) {
  const size_t e = text.find('e');
  if (e == std::string::npos) return text;
  const size_t digits = text.find_first_not_of("+-0", e + 1);
  return text.substr(0, e + 1) + (text[e + 1] == '-' ? "-" : "") + text.substr(std::min(digits, text.size()));
}

// 67108864 -> 67 108 864 with narrow no-break spaces, from five digits on.
std::string in_thousands(int64_t number) {
  std::string out = std::to_string(std::abs(number));
  for (size_t at = out.size(); out.size() > 4 && at > 3;) out.insert(at -= 3, "\u202f");
  return number < 0 ? "-" + out : out;
}

// Without trailing zeros: 0.5, not 0.5000.
std::string brief_text(double value) {
  if (value == std::round(value) && std::abs(value) < 1e9) return number_text(value);
  const std::string usual = number_text(value), exact = setting_text(value);
  return exact.size() < usual.size() && std::abs(std::stod(exact) - value) <= 1e-12 * std::abs(value) ? exact : usual;
}

}  // namespace

std::string verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds: return "holds";
    case Verdict::corrected: return "holds, corrected";
    case Verdict::fails: return "does not hold";
    case Verdict::undecided: return "not decided";
  }
  return "";
}

bool Measured::passes() const {
  const double distance = std::abs(measured - predicted);
  if (!std::isfinite(measured) || !std::isfinite(predicted)) return false;
  switch (rule) {
    case Rule::share: return distance <= tolerance * std::abs(predicted);
    case Rule::distance: return distance <= tolerance;
    case Rule::at_most: return measured <= predicted;
    case Rule::at_least: return measured >= predicted;
    case Rule::contradicts: return distance > tolerance * std::abs(measured);
  }
  return false;
}

std::string Measured::prediction() const {
  const std::string number = brief_text(predicted);
  switch (rule) {
    case Rule::share: return number + " ± " + brief_text(100 * tolerance) + " %";
    case Rule::distance: return tolerance == 0 ? number : number + " ± " + brief_text(tolerance);
    case Rule::at_most: return "≤ " + number;
    case Rule::at_least: return "≥ " + number;
    case Rule::contradicts: return number;
  }
  return "";
}

Measured close_to(std::string name, double predicted, double measured, double share) {
  return {std::move(name), predicted, measured, share, Measured::Rule::share};
}
Measured equal_to(std::string name, double predicted, double measured, double distance) {
  return {std::move(name), predicted, measured, distance, Measured::Rule::distance};
}
Measured at_most(std::string name, double limit, double measured) { return {std::move(name), limit, measured, 0, Measured::Rule::at_most}; }
Measured at_least(std::string name, double limit, double measured) {
  return {std::move(name), limit, measured, 0, Measured::Rule::at_least};
}
Measured contradicts(std::string name, double published, double measured, double share) {
  return {std::move(name), published, measured, share, Measured::Rule::contradicts};
}

Measured by_clock(Measured measured) {
  measured.by_clock = true;
  return measured;
}

Verdict verdict_of(const Report& report) {
  const auto& all = report.measured;
  if (all.empty() || !std::all_of(all.begin(), all.end(), [](const Measured& each) { return each.passes(); })) return Verdict::fails;
  if (!report.undecided.empty()) return Verdict::undecided;
  const bool corrected = std::any_of(all.begin(), all.end(), [](const Measured& each) { return each.rule == Measured::Rule::contradicts; });
  return corrected ? Verdict::corrected : Verdict::holds;
}

std::string finding_of(const Report& report) {
  constexpr size_t kNamed = 3;
  const Verdict verdict = verdict_of(report);
  if (verdict == Verdict::undecided) return report.undecided;
  if (verdict != Verdict::fails) return report.statement + (report.agrees.empty() ? "" : " " + report.agrees);
  if (report.measured.empty()) return "Nothing was measured.";
  std::string out;
  size_t failed = 0;
  for (const Measured& each : report.measured) {
    if (each.passes() || ++failed > kNamed) continue;
    const bool against = each.rule == Measured::Rule::contradicts;
    out += (out.empty() ? "" : "; ") + each.name + " is " + number_text(each.measured) +
           (against ? ", as published" : ", predicted was " + each.prediction());
  }
  return "Not as predicted at these settings: " + out + (failed > kNamed ? "; and " + std::to_string(failed - kNamed) + " more." : ".");
}

std::string setting_text(double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return short_power(text.data());
}

std::string about_text(double value) {
  if (value == 0 || !std::isfinite(value)) return number_text(value);
  const double unit = std::pow(10, std::floor(std::log10(std::abs(value))) - 1);
  return setting_text(std::round(value / unit) * unit);
}

std::string number_text(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "no number" : value > 0 ? "∞" : "-∞";
  std::array<char, 64> text{};
  if (value == std::round(value) && std::abs(value) < 1e12) return in_thousands(static_cast<int64_t>(value));
  std::snprintf(text.data(), text.size(), "%.3e", value);
  const double size = std::abs(std::strtod(text.data(), nullptr));  // as displayed: 0.99999 is 1.000
  if (size >= 1e4 && size < 1e7) return in_thousands(std::llround(value));
  if (size >= 1e-3 && size < 1e7)
    std::snprintf(text.data(), text.size(), "%.*f", std::max(0, 3 - static_cast<int>(std::floor(std::log10(size) + 1e-9))), value);
  else
    std::snprintf(text.data(), text.size(), "%.2e", value);
  return short_power(text.data());
}

}  // namespace heed::lab
