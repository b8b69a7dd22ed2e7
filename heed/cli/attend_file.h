// The input tensors of `heed attend`: validated, converted to f32, expanded over heads, requiring gradients if grad_out is present.
#pragma once

#include <map>
#include <string>

#include "heed/attention/terms.h"
#include "heed/cli/attend_options.h"
#include "heed/io/safetensors.h"

namespace heed::cli {

class AttendFile {
 public:
  AttendFile(const Path& path, const AttendOptions& options);

  bool has(const std::string& name) const { return names_.contains(name); }
  int rank() const { return rank_; }  // of q
  const AttentionSizes& sizes() const { return sizes_; }
  void set_keys(int64_t M) { sizes_.M = M; }  // after pooling

  // The file's shape, as f32, all finite. Learned tensors require a gradient if there is a grad_out.
  Tensor numbers(const std::string& name);
  Tensor queries_keys_values(const std::string& name);  // (B, H, N, D), missing leading axes added
  Tensor lengths();                                     // (B) i64

  // -> (H, sizes); the file may hold one value per head or one for all heads. Settings in the sizes are added to values, or must be the
  // same.
  Tensor per_head(const std::string& name, const std::vector<TermSize>& sizes, TermValues& values);
  Tensor per_head(const std::string& name, const std::vector<TermSize>& sizes);
  bool has_term(const TermInfo& info) const;  // has its first tensor; terms that share it differ in its axes
  Tensor addend(const std::string& name);     // broadcasts to (B, H, N, M); may be -infinity
  Tensor keep_mask(const std::string& name, const Shape& to, const Shape& shape);  // bool, broadcast to `to`, then reshaped to `shape`
  bool is_floating(const std::string& name) const;

  // grad_q and so on, in the shapes of the file; zeros for tensors without a gradient.
  NamedTensors gradients() const;

  template <class... Parts>
  [[noreturn]] void refuse(const std::string& name, const Parts&... parts) const {
    fail<FileError>(path_, ": ", name, parts...);
  }
  [[noreturn]] void refuse_shape(const std::string& name) const;

 private:
  void read_sizes(AttendKind kind);
  void check_finite(const std::string& name, const Tensor& x, bool may_mask) const;
  Tensor read(const std::string& name, bool may_mask);

  const std::string path_;
  const Safetensors file_;
  std::set<std::string> names_;
  std::map<std::string, Tensor> read_;  // learned tensors are leaves of the graph
  AttentionSizes sizes_{};
  int rank_ = 0;
};

Tensor with_axes(const Tensor& x, int rank);     // adds leading axes of size 1
Tensor without_axes(const Tensor& x, int rank);  // removes them

}  // namespace heed::cli
