// The parameters of a model, by name. Modules request them one by one while the model is built; the store reads each from a file
// or initializes it from (seed, name), so values do not depend on the order. Modules keep the tensors, not the store.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/api.h"
#include "heed/io/safetensors.h"
#include "heed/nn/initializer.h"

namespace HEED_API heed {

// How a parameter is trained and stored.
struct ParameterOptions {
  bool learned = true;             // takes a gradient; false: buffers such as running statistics, which are saved too
  bool decays = true;              // weight decay applies: to matrices, not to norms, biases and positions
  bool stored_transposed = false;  // files store (I, O), as GPT-2 does; the tensor here is (O, I)
};

// A parameter of a model.
struct Parameter {
  std::string name;
  Tensor tensor;  // f32; a placeholder of the same shape if the weight is packed
  ParameterOptions options;
  bool read = false;          // from the file
  DType stored = DType::f32;  // in the file
  bool packed = false;        // stored packed in a linear layer
};

// How linear layers store their weights: f32 with gradients, packed for fast products, or packed and quantized to int8.
enum class Weights { trainable, packed, int8 };

// Takes a message for the user.
using Warn = std::function<void(const std::string& message)>;

// Name fragments of parameters that a file may lack, and of tensors that may be unused. {""} matches every name.
struct LoadOptions {
  std::vector<std::string> allow_missing = {};  // initialized if missing in the file or of another shape
  std::vector<std::string> allow_unused = {};   // not worth a warning
  Device device = default_device();
  bool shapes_only = false;   // tensors have shapes but neither values nor memory: to inspect models of any size
  Warn warn = {};             // called with a message if tensors of the file are not used; unset: such files are an error
  Warn allow_nonfinite = {};  // called with a message if weights are NaN or infinite; unset: such files are an error
};

// All parameters of a model.
class Params {
 public:
  explicit Params(uint64_t seed, LoadOptions options = {}, Weights weights = Weights::trainable)
      : seed_(seed), weights_(weights), options_(std::move(options)) {}
  // A safetensors file, an index of several, or a folder with either. Half precision is converted to f32.
  Params(const Path& file, uint64_t seed, LoadOptions options = {}, Weights weights = Weights::trainable);
  Params(std::shared_ptr<const Safetensors> file, uint64_t seed, LoadOptions options = {}, Weights weights = Weights::trainable);

  // The parameter of that name. A second call returns the same tensor: this is how weights are tied.
  Tensor get(const std::string& name, const Shape& shape, const Initializer& initializer, const ParameterOptions& options = {});
  // Frees the memory of a parameter that a layer has packed. A later get() reads it again.
  void release(const std::string& name);
  Weights weights() const { return weights_; }
  Device device() const { return options_.device; }
  // Files may store `name` as `other`, or both. Call it before get(name).
  void alias(const std::string& other, const std::string& name);
  const std::shared_ptr<const Safetensors>& file() const { return file_; }  // null: there is none
  bool file_has(std::string_view name) const { return file_ && file_->contains(name); }
  // Whether get(name) finds values: in the file, under this or another name, or without a file.
  bool provides(const std::string& name) const { return !file_ || !names_in_file(name).empty(); }
  std::vector<std::string> file_names() const { return file_ ? file_->names() : std::vector<std::string>(); }
  // Whether the file has both, under these or other names, with different contents.
  bool file_differs(const std::string& a, const std::string& b) const;

  // Call it when the model is built. Throws an error listing all names that are missing or of another shape and not allowed, and warns of
  // tensors that are not used.
  void finish() const;
  std::vector<std::string> unused() const;  // tensors of the file that no parameter uses and that are not allowed to be

  const std::vector<Parameter>& all() const { return all_; }  // in the order of get()
  int64_t count() const;                                      // of learned numbers
  std::string nonfinite() const;  // message listing weights of the file that are NaN or infinite; empty if there are none
  NamedTensors stored() const;    // in the layout of files: write_safetensors(path, params.stored())

 private:
  Parameter create(const std::string& name, const Shape& shape, const Initializer& initializer, const ParameterOptions& options);
  std::vector<std::string> names_in_file(const std::string& name) const;
  void find_nonfinite(const std::string& name_in_file, const Tensor& tensor);
  void count_numbers(const Shape& shape, bool in_file);
  std::optional<std::string> name_in_file(const std::string& name, const Shape& shape, bool transposed);  // none: absent or wrong shape

  uint64_t seed_;
  Weights weights_;
  std::shared_ptr<const Safetensors> file_ = {};
  LoadOptions options_ = {};
  std::vector<Parameter> all_ = {};
  std::map<std::string, size_t, std::less<>> places_ = {};                     // in all_
  std::map<std::string, std::vector<std::string>, std::less<>> aliases_ = {};  // other names
  std::set<std::string, std::less<>> used_ = {};                               // names in the file
  std::vector<std::string> missing_ = {}, mismatched_ = {};                    // formatted for messages
  std::vector<std::string> nonfinite_ = {};                                    // "3 of 9216 in NAME"
  int64_t numbers_ = 0, initialized_ = 0;                                      // of all parameters; of those missing in the file
};

// A name prefix in a store, and the initializers of the parameters below it.
class Scope {
 public:
  Scope(Params& params, Initializers initializer)
      : params_(&params), initializers_(std::make_shared<const Initializers>(std::move(initializer))) {}

  // The scope below: "encoder" / 3 is the prefix "encoder.3.".
  Scope operator/(std::string_view name) const;
  Scope operator/(int64_t number) const { return *this / std::to_string(number); }
  Scope with(Initializers initializer) const;  // the same path, other initializers

  // As in Params, with names below this scope.
  Tensor get(std::string_view name, const Shape& shape, const Initializer& initializer, const ParameterOptions& options = {}) const;
  void release(std::string_view name) const { params_->release((*this / name).path_); }
  // What the scope was made of.
  const Initializers& initializer() const { return *initializers_; }
  const std::string& path() const { return path_; }
  Params& params() const { return *params_; }
  bool provides(std::string_view name) const { return params_->provides((*this / name).path_); }
  Device device() const { return params_->device(); }

 private:
  Params* params_;
  std::string path_ = {};
  std::shared_ptr<const Initializers> initializers_;
};

}  // namespace heed
