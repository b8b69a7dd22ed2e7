#include "heed/nn/params.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "heed/core/dry_run.h"
#include "heed/ops/all_finite.h"
#include "heed/ops/ops.h"

namespace heed {
namespace {

// FNV-1a hash (Fowler, Noll and Vo): every name has its own stream of random numbers.
uint64_t stream_of(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

bool allowed(const std::vector<std::string>& fragments, std::string_view name) {
  return std::any_of(fragments.begin(), fragments.end(),
                     [&](const std::string& fragment) { return name.find(fragment) != std::string_view::npos; });
}

// ": a, b, c and 7 more"
std::string first_of(const std::vector<std::string>& items) {
  constexpr size_t shown = 20;
  std::string text;
  for (size_t i = 0; i < std::min(items.size(), shown); ++i) text += (i ? ", " : ": ") + items[i];
  return items.size() > shown ? text + " and " + std::to_string(items.size() - shown) + " more" : text;
}

std::string listed(const char* what, const std::vector<std::string>& items) {
  return items.empty() ? "" : "\n  " + std::to_string(items.size()) + what + first_of(items);
}

constexpr int64_t kLarge = int64_t{1} << 23;  // numbers

std::string text_of(const Shape& shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

// A tensor of any shape with the memory of one number: all strides are 0.
Tensor placeholder(const Shape& shape, Device device) {
  Shape strides = shape;
  for (int axis = 0; axis < strides.rank(); ++axis) strides[axis] = 0;
  return Tensor::zeros({1}, DType::f32, device).view(shape, strides);
}

}  // namespace

Params::Params(const Path& file, uint64_t seed, LoadOptions options, Weights weights)
    : Params(std::make_shared<const Safetensors>(Safetensors::open(file)), seed, std::move(options), weights) {}

Params::Params(std::shared_ptr<const Safetensors> file, uint64_t seed, LoadOptions options, Weights weights)
    : seed_(seed), weights_(weights), file_(std::move(file)), options_(std::move(options)) {}

Tensor Params::get(const std::string& name, const Shape& shape, const Initializer& initializer, const ParameterOptions& options) {
  if (const auto place = places_.find(name); place != places_.end()) {
    const Parameter& before = all_[place->second];
    check(before.tensor.shape() == shape, "params: ", name, " requested with shape ", shape, ", before with ", before.tensor.shape());
    return before.packed ? create(name, shape, initializer, options).tensor : before.tensor;
  }
  check(!options.stored_transposed || shape.rank() == 2, "params: ", name, " is stored transposed and has shape ", shape,
        ", expected two axes");
  all_.push_back(create(name, shape, initializer, options));
  places_[name] = all_.size() - 1;
  return all_.back().tensor;
}

Parameter Params::create(const std::string& name, const Shape& shape, const Initializer& initializer, const ParameterOptions& options) {
  const std::optional<std::string> found = name_in_file(name, shape, options.stored_transposed);
  count_numbers(shape, found.has_value());
  Parameter parameter{.name = name, .tensor = {}, .options = options, .read = found.has_value()};
  Tensor& tensor = parameter.tensor;
  if (found) parameter.stored = file_->entry(*found).dtype;
  // A parameter that is missing and not allowed to be gets a placeholder: finish() will report it.
  if (DryRun::newest()) {
    tensor = Tensor::empty(shape, DType::f32, device());
  } else if (options_.shapes_only || (!found && file_ && !allowed(options_.allow_missing, name))) {
    tensor = placeholder(shape, device());
  } else if (found) {
    tensor = converted(file_->tensor(*found), DType::f32);
    find_nonfinite(*found, tensor);
    if (options.stored_transposed) tensor = contiguous(transpose(tensor, 0, 1));
    // Drop the file's pages: the tensor was copied, or it is large and was only scanned for NaN (few rows of an embedding are used).
    if (options.stored_transposed || parameter.stored != DType::f32 || tensor.count() >= kLarge) file_->release(*found);
  } else {
    check(static_cast<bool>(initializer), "params: ", name, " has no initializer");
    Rng rng(seed_, stream_of(name));
    tensor = initializer(shape, rng);
    check(tensor.shape() == shape, "params: the initializer of ", name, " gives shape ", tensor.shape(), ", expected ", shape);
  }
  tensor = tensor.to(device());
  if (options.learned && weights_ == Weights::trainable) tensor.require_grad();
  return parameter;
}

void Params::find_nonfinite(const std::string& name, const Tensor& tensor) {
  if (all_finite(tensor)) return;
  const std::vector<float> values = tensor.to_vector<float>();
  const int64_t bad = std::count_if(values.begin(), values.end(), [](float x) { return !std::isfinite(x); });
  const std::string found = std::to_string(bad) + " of " + std::to_string(values.size()) + " in " + in_quotes(name);
  if (std::find(nonfinite_.begin(), nonfinite_.end(), found) == nonfinite_.end())
    nonfinite_.push_back(found);  // tied weights are read twice
}

std::string Params::nonfinite() const { return nonfinite_.empty() ? "" : "weights that are NaN or infinite" + first_of(nonfinite_); }

// Rejects models of malicious configs before memory is allocated for them.
void Params::count_numbers(const Shape& shape, bool in_file) {
  constexpr int64_t most = int64_t{1} << 44, most_new = int64_t{1} << 24;  // 17 trillion; 64 MiB of f32
  const int64_t count = heed::count(shape);
  check(count <= most - numbers_, "params: the model has more than ", most, " parameters, expected at most that");
  numbers_ += count;
  if (!file_ || in_file || options_.shapes_only) return;
  initialized_ += count;
  const int64_t allowed_new = std::max(most_new, file_->numbers());
  check(initialized_ <= allowed_new, "params: ", initialized_, " numbers missing in the checkpoint would be initialized, expected at most ",
        allowed_new, ", as many as the checkpoint has");
}

void Params::release(const std::string& name) {
  Parameter& parameter = all_[places_.at(name)];
  parameter.tensor = placeholder(parameter.tensor.shape(), device());
  parameter.packed = true;
  if (parameter.read)
    for (const std::string& each : names_in_file(name)) file_->release(each);
}

std::vector<std::string> Params::names_in_file(const std::string& name) const {
  std::vector<std::string> names{name};
  if (const auto others = aliases_.find(name); others != aliases_.end())
    names.insert(names.end(), others->second.begin(), others->second.end());
  std::erase_if(names, [&](const std::string& each) { return !file_->contains(each); });
  return names;
}

std::optional<std::string> Params::name_in_file(const std::string& name, const Shape& shape, bool transposed) {
  if (!file_) return std::nullopt;
  const std::vector<std::string> names = names_in_file(name);
  if (names.empty()) {
    if (!allowed(options_.allow_missing, name)) missing_.push_back(in_quotes(name));
    return std::nullopt;
  }
  used_.insert(names.begin(), names.end());
  const Shape& found = file_->entry(names[0]).shape;
  const Shape expected = transposed ? Shape{shape[1], shape[0]} : shape;
  if (found != expected) {
    if (!allowed(options_.allow_missing, name))
      mismatched_.push_back(in_quotes(names[0]) + " " + text_of(found) + ", expected " + text_of(expected));
    return std::nullopt;
  }
  return names[0];
}

void Params::alias(const std::string& other, const std::string& name) {
  check(!places_.contains(name), "params: ", name, " was requested before its alias ", other, " was set");
  aliases_[name].push_back(other);
}

bool Params::file_differs(const std::string& a, const std::string& b) const {
  if (!file_) return false;
  const std::vector<std::string> first = names_in_file(a), second = names_in_file(b);
  return !first.empty() && !second.empty() && !file_->same(first[0], second[0]);
}

std::vector<std::string> Params::unused() const {
  std::vector<std::string> out;
  for (const std::string& name : file_names())
    if (!used_.contains(name) && !allowed(options_.allow_unused, name)) out.push_back(in_quotes(name));
  return out;
}

void Params::finish() const {
  if (!file_) return;
  const std::vector<std::string> not_used = unused();
  const bool complete = missing_.empty() && mismatched_.empty();
  check<FileError>(complete && (not_used.empty() || options_.warn), file_->source(), ": does not fit the model",
                   listed(" missing", missing_), listed(" not used", not_used), listed(" of another shape", mismatched_));
  if (!not_used.empty())
    options_.warn(file_->source() + ": " + std::to_string(not_used.size()) + (not_used.size() == 1 ? " tensor" : " tensors") +
                  " that the model does not use" + first_of(not_used));
  if (nonfinite_.empty()) return;
  const std::string message = file_->source() + ": has " + nonfinite() + "; the checkpoint is damaged";
  check<FileError>(static_cast<bool>(options_.allow_nonfinite), message, ". Use another one, or load it anyway with --allow-nonfinite");
  options_.allow_nonfinite(message);
}

int64_t Params::count() const {
  int64_t total = 0;
  for (const Parameter& parameter : all_)
    if (parameter.options.learned) total += parameter.tensor.count();
  return total;
}

NamedTensors Params::stored() const {
  NamedTensors out;
  for (const Parameter& parameter : all_) {
    check(!parameter.packed, "params: ", parameter.name, " is packed for inference, expected a model loaded for training");
    const Tensor tensor = parameter.tensor.detach();
    out.emplace_back(parameter.name, parameter.options.stored_transposed ? transpose(tensor, 0, 1) : tensor);
  }
  return out;
}

Scope Scope::operator/(std::string_view name) const {
  Scope below = *this;
  if (name.empty()) return below;
  if (!below.path_.empty()) below.path_ += '.';
  below.path_ += name;
  return below;
}

Scope Scope::with(Initializers initializer) const {
  Scope same = *this;
  same.initializers_ = std::make_shared<const Initializers>(std::move(initializer));
  return same;
}

Tensor Scope::get(std::string_view name, const Shape& shape, const Initializer& initializer, const ParameterOptions& options) const {
  return params_->get((*this / name).path_, shape, initializer, options);
}

}  // namespace heed
