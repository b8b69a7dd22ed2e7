#include "heed/models/config.h"

#include "heed/nn/feed_forward.h"

namespace heed {
namespace {

// Larger ones are no sizes of models: the product of two cannot overflow, and a list of that length is no burden.
constexpr int64_t kLargest = int64_t{1} << 24;
// A layer is built before the checkpoint is found to lack it.
constexpr int64_t kMostLayers = 2'000;

int64_t most_of(std::string_view key) { return key.ends_with("layer") || key.ends_with("layers") ? kMostLayers : kLargest; }

}  // namespace

Config::Config(Json json, std::string source) : json_(std::move(json)), source_(std::move(source)) {
  check<FileError>(json_.is_object(), source_, ": found ", in_quotes(json_.dump(), 40), ", expected a JSON object of keys and values");
}

const Json* Config::find(std::string_view key) const {
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

void Config::refuse(std::string_view key, std::string_view expected) const {
  const Json* found = find(key);
  fail<FileError>(source_, ": ", path_, key, " is ", found ? in_quotes(found->dump(), 60) : "absent", ", expected ", expected);
}

int64_t Config::size(std::string_view key, int64_t otherwise, int64_t least) const {
  const Json* found = find(key);
  if (!found) return otherwise;
  const int64_t most = most_of(key);
  const bool whole = found->is_number_integer() && (!found->is_number_unsigned() || found->get<uint64_t>() <= static_cast<uint64_t>(most));
  if (!whole || found->get<int64_t>() < least || found->get<int64_t>() > most)
    refuse(key, "a whole number of " + std::to_string(least) + " or more, and at most " + std::to_string(most));
  return found->get<int64_t>();
}

float Config::number(std::string_view key, float otherwise) const {
  const Json* found = find(key);
  if (!found) return otherwise;
  if (!found->is_number()) refuse(key, "a number");
  return found->get<float>();
}

float Config::probability(std::string_view key, float otherwise) const {
  const float p = number(key, otherwise);
  if (!(p >= 0 && p < 1)) refuse(key, "a probability from 0 to below 1");
  return p;
}

bool Config::flag(std::string_view key, bool otherwise) const {
  const Json* found = find(key);
  if (found && !found->is_boolean()) refuse(key, "true or false");
  return found ? found->get<bool>() : otherwise;
}

std::string Config::word(std::string_view key, std::string_view otherwise) const {
  const Json* found = find(key);
  if (found && !found->is_string()) refuse(key, "a string");
  return found ? found->get<std::string>() : std::string(otherwise);
}

Activation Config::activation(std::string_view key, std::string_view otherwise) const {
  const std::string name = word(key, otherwise);
  try {
    return activation_named(name);
  } catch (const Error& error) {
    fail<FileError>(source_, ": ", path_, key, ": ", error.what());
  }
}

std::vector<int64_t> Config::sizes(std::string_view key, std::vector<int64_t> otherwise) const {
  const Json* found = find(key);
  if (!found) return otherwise;
  if (found->is_number_integer()) return {size(key, 0)};
  if (!found->is_array() || found->empty()) refuse(key, "a whole number or a list of them");
  std::vector<int64_t> out;
  for (const Json& each : *found) {
    if (!each.is_number_integer() || each.get<int64_t>() < 1 || each.get<int64_t>() > kLargest)
      refuse(key, "whole numbers of 1 or more, and at most " + std::to_string(kLargest));
    out.push_back(each.get<int64_t>());
  }
  return out;
}

Config Config::below(std::string_view key) const {
  const Json* found = find(key);
  if (found && !found->is_object()) refuse(key, "an object of keys and values");
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
  if (found && *found != value) refuse(key, value.dump() + "; heed knows no other");
}

}  // namespace heed
