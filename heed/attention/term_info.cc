#include "heed/attention/term_info.h"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace heed {
namespace {

std::string upper(std::string text) {
  for (char& letter : text)
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  return text;
}

}  // namespace

std::string TermSetting::expected() const {
  if (type == Type::flag) return name + ", true or false";
  std::ostringstream text;
  text << (type == Type::whole ? "a whole number of " : "a number above ") << least << (type == Type::whole ? " or more" : "");
  return text.str();
}

Shape TermParameter::shape(int64_t heads, const TermValues& values) const {
  Shape out{heads};
  for (const TermSize& size : sizes)
    out.push_back(size.plus + (size.times == 0 ? 0 : size.times * static_cast<int64_t>(values.at(size.setting))));
  return out;
}

std::string TermParameter::shape_text() const { return sizes.empty() ? "(H)" : "(H, " + headless_text().substr(1); }

std::string TermParameter::headless_text() const {
  if (sizes.empty()) return "(1)";
  std::ostringstream text;
  for (const TermSize& size : sizes) {
    text << (&size == sizes.data() ? "(" : ", ");
    if (size.times > 1) text << size.times << ' ';
    text << size.setting;
    if (size.times > 0 && size.plus > 0) text << " + ";
    if (size.times == 0 || size.plus > 0) text << size.plus;
  }
  return text.str() + ")";
}

bool TermInfo::is_named(const std::string& typed) const {
  return typed == name || std::find(aliases.begin(), aliases.end(), typed) != aliases.end();
}

std::string TermInfo::settings_text(const std::string& separator) const {
  std::string out;
  for (const TermSetting& each : settings)
    out += (out.empty() ? "" : separator) + (each.type == TermSetting::Type::flag ? each.name : upper(each.name));
  return out;
}

std::string TermInfo::usage() const { return settings.empty() ? name : name + ":" + settings_text(":"); }

void complete_settings(const TermInfo& info, TermValues& values, const TermPlace& place) {
  for (const TermSetting& each : info.settings)
    if (!values.contains(each.name)) values[each.name] = each.usual.of(place, values);
  for (const auto& given : values) {
    const auto is_given = [&](const TermSetting& each) { return each.name == given.first; };
    check(std::any_of(info.settings.begin(), info.settings.end(), is_given), info.name, " has no setting ", given.first);
  }
}

double parse_setting(const TermSetting& setting, const std::string& text) {
  using Type = TermSetting::Type;
  if (setting.type == Type::flag && (text == setting.name || text == "true" || text == "false")) return text == "false" ? 0 : 1;
  const char* end = text.data() + text.size();
  double value = 0;
  int32_t whole = 0;
  const auto [stop, error] =
      setting.type == Type::number ? std::from_chars(text.data(), end, value) : std::from_chars(text.data(), end, whole);
  if (setting.type == Type::whole) value = whole;
  const auto narrow = static_cast<float>(value);
  const bool in_range = setting.type == Type::number ? narrow > setting.least && narrow < HUGE_VALF : value >= setting.least;
  check(setting.type != Type::flag && error == std::errc() && stop == end && in_range, setting.name, "='", text, "', expected ",
        setting.expected());
  return value;
}

TermValues parse_settings(const TermInfo& info, const std::string& text, char separator) {
  TermValues out;
  if (text.empty()) return out;
  std::istringstream in(text + separator);
  size_t next = 0;
  for (std::string part; std::getline(in, part, separator); ++next) {
    check(next < info.settings.size(), "found ", next + 1, " parts, expected ", info.usage());
    out[info.settings[next].name] = parse_setting(info.settings[next], part);
  }
  return out;
}

}  // namespace heed
