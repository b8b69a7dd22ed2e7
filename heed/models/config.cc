#include "heed/models/config.h"

#include <algorithm>
#include <sstream>

#include "heed/nn/feed_forward.h"

namespace heed {
namespace {

// Larger sizes are rejected, so that the product of two cannot overflow.
constexpr int64_t kLargest = int64_t{1} << 24;
// Layers and heads are created one by one before names are compared with the checkpoint.
constexpr int64_t kMostLayers = 1'000, kMostHeads = 4'096;
constexpr size_t kLongestList = 256;

int64_t most_of(std::string_view key) {
  if (key.ends_with("layer") || key.ends_with("layers") || key == "depths") return kMostLayers;
  return key.ends_with("heads") || key == "n_head" ? kMostHeads : kLargest;
}

// Strings without JSON quotes.
std::string shown_value(const Json& value, size_t longest) {
  return in_quotes(value.is_string() ? value.get_ref<const std::string&>() : value.dump(), longest);
}

std::string shown_number(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

}  // namespace

Config::Config(Json json, std::string source) : json_(std::move(json)), source_(std::move(source)) {
  check<FileError>(json_.is_object(), source_, ": found ", shown_value(json_, 40), ", expected a JSON object");
}

const Json* Config::find(std::string_view key) const {
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

void Config::refuse(std::string_view key, std::string_view expected) const {
  const Json* found = find(key);
  fail<FileError>(source_, ": ", path_, key, " is ", found ? shown_value(*found, 60) : "absent", ", expected ", expected);
}

int64_t Config::size(std::string_view key, int64_t fallback, int64_t least) const {
  const Json* found = find(key);
  if (!found) return fallback;
  const int64_t most = most_of(key);
  const bool whole = found->is_number_integer() && (!found->is_number_unsigned() || found->get<uint64_t>() <= static_cast<uint64_t>(most));
  if (!whole || found->get<int64_t>() < least || found->get<int64_t>() > most)
    refuse(key, "a whole number of " + std::to_string(least) + " or more, and at most " + std::to_string(most));
  return found->get<int64_t>();
}

float Config::number(std::string_view key, float fallback, double least, double most) const {
  const Json* found = find(key);
  if (!found) return fallback;
  if (!found->is_number()) refuse(key, "a number");
  const auto value = found->get<double>();
  if (!(value >= least && value <= most))
    refuse(key, least == -kLargestNumber ? "a finite number" : "a number from " + shown_number(least) + " to " + shown_number(most));
  return static_cast<float>(value);
}

float Config::probability(std::string_view key, float fallback) const {
  const float p = number(key, fallback);
  if (!(p >= 0 && p < 1)) refuse(key, "a probability from 0 to below 1");
  return p;
}

bool Config::flag(std::string_view key, bool fallback) const {
  const Json* found = find(key);
  if (found && !found->is_boolean()) refuse(key, "true or false");
  return found ? found->get<bool>() : fallback;
}

std::string Config::string(std::string_view key, std::string_view fallback) const {
  const Json* found = find(key);
  if (found && !found->is_string()) refuse(key, "a string");
  return found ? found->get<std::string>() : std::string(fallback);
}

Activation Config::activation(std::string_view key, std::string_view fallback) const {
  const std::string name = string(key, fallback);
  try {
    return activation_named(name);
  } catch (const Error& error) {
    fail<FileError>(source_, ": ", path_, key, ": ", error.what());
  }
}

std::vector<int64_t> Config::sizes(std::string_view key, std::vector<int64_t> fallback) const {
  const Json* found = find(key);
  if (!found) return fallback;
  if (found->is_number_integer()) return {size(key, 0)};
  if (!found->is_array() || found->empty()) refuse(key, "a whole number or a list of whole numbers");
  if (found->size() > kLongestList) refuse(key, "at most " + std::to_string(kLongestList) + " numbers");
  const int64_t most = most_of(key);
  std::vector<int64_t> out;
  for (const Json& each : *found) {
    if (!each.is_number_integer() || each.get<int64_t>() < 1 || each.get<int64_t>() > most)
      refuse(key, "whole numbers of 1 or more, and at most " + std::to_string(most));
    out.push_back(each.get<int64_t>());
  }
  return out;
}

std::array<int64_t, 2> Config::sides(std::string_view key, int64_t fallback) const {
  const std::vector<int64_t> both = sizes(key, {fallback});
  if (both.size() > 2 || std::max(both.front(), both.back()) > kLargestImageSide)
    refuse(key, "one or two numbers of pixels, at most " + std::to_string(kLargestImageSide));
  return {both.front(), both.back()};
}

Config Config::below(std::string_view key) const {
  const Json* found = find(key);
  if (found && !found->is_object()) refuse(key, "an object");
  Config inner(found ? *found : Json::object(), source_);
  inner.path_ = path_ + std::string(key) + ".";
  return inner;
}

int64_t Config::labels() const {
  if (const Json* names = find("id2label")) {
    if (!names->is_object()) refuse("id2label", "an object from numbers to names");
    const auto count = static_cast<int64_t>(names->size());
    if (has("num_labels") && size("num_labels", 0, 0) != count) refuse("num_labels", std::to_string(count) + " as in id2label");
    return count;
  }
  return size("num_labels", 2, 0);
}

void Config::only(std::string_view key, const Json& value) const {
  const Json* found = find(key);
  if (found && *found != value) refuse(key, value.dump() + "; heed supports no other value");
}

}  // namespace heed
