#include "heed/models/config.h"

#include <algorithm>

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

}  // namespace

Config::Config(Json json, std::string source) : json_(std::move(json)), source_(std::move(source)) {
  if (!json_.is_object()) JsonReader(json_, source_).expected("a JSON object");
}

void Config::refuse(std::string_view key, std::string_view expected) const {
  if (has(key)) at(key).expected(expected);
  fail<FileError>(source_, ": ", path_, path_.empty() ? "" : ".", key, " is absent, expected ", expected);
}

int64_t Config::size(std::string_view key, int64_t fallback, int64_t least) const {
  return has(key) ? at(key).whole(least, most_of(key)) : fallback;
}

float Config::number(std::string_view key, float fallback, double least, double most) const {
  return has(key) ? static_cast<float>(at(key).number(least, most)) : fallback;
}

float Config::probability(std::string_view key, float fallback) const {
  const float p = number(key, fallback);
  if (!(p >= 0 && p < 1)) refuse(key, "a probability from 0 to below 1");
  return p;
}

Activation Config::activation(std::string_view key, std::string_view fallback) const {
  const std::string name = string(key, fallback);
  try {
    return activation_named(name);
  } catch (const Error& error) {
    at(key).refuse(error.what());
  }
}

std::vector<int64_t> Config::sizes(std::string_view key, std::vector<int64_t> fallback) const {
  if (!has(key)) return fallback;
  const Json& found = at(key).json();
  if (found.is_number_integer()) return {size(key, 0)};
  if (!found.is_array() || found.empty()) refuse(key, "a whole number or a list of whole numbers");
  if (found.size() > kLongestList) refuse(key, "at most " + std::to_string(kLongestList) + " numbers");
  const int64_t most = most_of(key);
  std::vector<int64_t> out;
  for (const Json& each : found) {
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
  Config inner(has(key) ? at(key).object() : Json::object(), source_);
  inner.path_ = path_ + (path_.empty() ? "" : ".") + std::string(key);
  return inner;
}

Config Config::below_or_dict(std::string_view key) const {
  const Config usual = below(key);
  const std::string older = std::string(key) + "_dict";
  if (!has(older)) return usual;
  Config out = below(older);
  if (usual.has("heed") && !out.has("heed")) out.json_["heed"] = usual.json_["heed"];
  return out;
}

int64_t Config::labels() const {
  if (has("id2label")) {
    const auto count = static_cast<int64_t>(at("id2label").object().size());
    if (has("num_labels") && size("num_labels", 0, 0) != count) refuse("num_labels", std::to_string(count) + " as in id2label");
    return count;
  }
  return size("num_labels", 2, 0);
}

std::string Config::architecture() const {
  const auto found = json_.find("architectures");
  return found != json_.end() && found->is_array() && !found->empty() && found->front().is_string() ? found->front().get<std::string>()
                                                                                                    : "";
}

void Config::only(std::string_view key, const Json& value) const {
  if (has(key) && at(key).json() != value) refuse(key, value.dump() + "; heed supports no other value");
}

}  // namespace heed
