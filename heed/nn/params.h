// The parameters of a model, by name. A model asks for them one by one while it is built; the store reads each from a file
// or initialises it from (seed, name), so values never depend on the order. Modules keep the tensors, not the store.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "heed/io/safetensors.h"
#include "heed/nn/initial.h"

namespace heed {

struct ParameterOptions {
  bool learned = true;             // takes a gradient; false: running statistics and the like, saved all the same
  bool decays = true;              // weight decay is for matrices: norms, biases and positions take none
  bool stored_transposed = false;  // files hold (I, O), as GPT-2's do; the tensor here is (O, I)
};

struct Parameter {
  std::string name;
  Tensor tensor;  // f32; a stand-in of the same shape where the weight is packed
  ParameterOptions options;
  bool read = false;          // from the file
  DType stored = DType::f32;  // in the file
  bool packed = false;        // lives in a linear layer, in another form
};

// How linear layers keep their weights: to be trained, laid out for the machine, or that as bytes. Without gradients but for
// the first.
enum class Weights { trainable, packed, int8 };

using Warn = std::function<void(const std::string& message)>;

// What a file may lack or hold too much: names that contain one of these. {""} allows every name.
struct LoadOptions {
  std::vector<std::string> allow_missing = {};  // these are initialised where the file lacks them or has another shape
  std::vector<std::string> allow_unused = {};
  bool shapes_only = false;   // for looking at a model of any size: tensors have shapes, but no values and no memory
  Warn allow_nonfinite = {};  // called with a message where weights are NaN or infinite; such files are refused without it
};

class Params {
 public:
  explicit Params(uint64_t seed, LoadOptions options = {}, Weights weights = Weights::trainable)
      : seed_(seed), weights_(weights), options_(std::move(options)) {}
  // A safetensors file, an index of several, or a folder that holds either. Half precision becomes f32.
  Params(const Path& file, uint64_t seed, LoadOptions options = {}, Weights weights = Weights::trainable);
  // A checkpoint that is open already.
  Params(std::shared_ptr<const Safetensors> file, uint64_t seed, LoadOptions options = {}, Weights weights = Weights::trainable);

  // The parameter of that name. Asking again gives the same tensor: that is how weights are tied.
  Tensor get(const std::string& name, const Shape& shape, const Initialiser& initial, const ParameterOptions& options = {});
  // A layer has packed the parameter: its memory is free again. Who asks for it once more gets it as it was.
  void release(const std::string& name);
  Weights weights() const { return weights_; }
  // Files may hold `name` as `other`, or hold both. To be said before `name` is asked for.
  void alias(const std::string& other, const std::string& name);
  bool file_has(std::string_view name) const { return file_ && file_->contains(name); }
  std::vector<std::string> file_names() const { return file_ ? file_->names() : std::vector<std::string>(); }
  bool file_differs(const std::string& a, const std::string& b) const;  // the file has both, with different contents

  // When the model is built: an error that lists every name missing, unused or of another shape, unless it was allowed.
  void finish() const;

  const std::vector<Parameter>& all() const { return all_; }  // as they were asked for
  int64_t count() const;                                      // of numbers that are learned
  std::string nonfinite() const;  // which weights of the file are NaN or infinite, for a message; empty where there are none
  NamedTensors stored() const;    // as files hold them: write_safetensors(path, params.stored())

 private:
  Parameter made(const std::string& name, const Shape& shape, const Initialiser& initial, const ParameterOptions& options);
  std::vector<std::string> names_in_file(const std::string& name) const;
  void find_nonfinite(const std::string& name_in_file, const Tensor& tensor);
  void count_numbers(const Shape& shape, bool in_file);
  std::optional<std::string> name_in_file(const std::string& name, const Shape& shape, bool transposed);  // none: absent, or a misfit

  uint64_t seed_;
  Weights weights_;
  std::shared_ptr<const Safetensors> file_ = {};
  LoadOptions options_ = {};
  std::vector<Parameter> all_ = {};
  std::map<std::string, size_t, std::less<>> places_ = {};                     // in all_
  std::map<std::string, std::vector<std::string>, std::less<>> aliases_ = {};  // other names
  std::set<std::string, std::less<>> used_ = {};                               // names in the file
  std::vector<std::string> missing_ = {}, misfits_ = {};                       // as messages show them
  std::vector<std::string> nonfinite_ = {};                                    // "3 of 9216 in NAME"
  int64_t numbers_ = 0, initialised_ = 0;                                      // of all parameters; of those that the file lacks
};

// A path into a store, and how what lies below it begins.
class Scope {
 public:
  Scope(Params& params, Initialisation initial) : params_(&params), initial_(std::make_shared<const Initialisation>(std::move(initial))) {}

  Scope operator/(std::string_view name) const;
  Scope operator/(int64_t number) const { return *this / std::to_string(number); }
  Scope with(Initialisation initial) const;  // the same place, other beginnings

  Tensor get(std::string_view name, const Shape& shape, const Initialiser& initial, const ParameterOptions& options = {}) const;
  void release(std::string_view name) const { params_->release((*this / name).path_); }
  const Initialisation& initial() const { return *initial_; }
  const std::string& path() const { return path_; }
  Params& params() const { return *params_; }

 private:
  Params* params_;
  std::string path_ = {};
  std::shared_ptr<const Initialisation> initial_;
};

}  // namespace heed
