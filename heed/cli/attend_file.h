// The tensors of a file as `heed attend` needs them: checked, in f32, spread over the heads, and with gradients if asked for.
#pragma once

#include <map>
#include <string>

#include "heed/attention/term.h"
#include "heed/cli/attend_options.h"
#include "heed/io/safetensors.h"

namespace heed::cli {

class AttendFile {
 public:
  AttendFile(const Path& path, const AttendOptions& options);

  bool has(const std::string& name) const { return names_.contains(name); }
  int rank() const { return rank_; }  // of q
  const AttentionSizes& sizes() const { return sizes_; }
  void set_keys(int64_t M) { sizes_.M = M; }  // pooled keys are fewer

  // As in the file, but f32 and finite; learned ones require a gradient if there is a grad_out.
  Tensor numbers(const std::string& name);
  Tensor queries_keys_values(const std::string& name);  // with the axes that are missing: (B, H, N, D)
  Tensor lengths();                                     // (B) i64

  // (H, rest): what the file has for every head, or once for all of them. -1 in rest is any odd number.
  Tensor per_head(const std::string& name, const Shape& rest);
  Tensor addend(const std::string& name);                                    // broadcasts to (B, H, N, M); may be -infinity
  Tensor kept(const std::string& name, const Shape& to, const Shape& seen);  // bool that broadcasts to `to`, seen as another shape
  bool is_floating(const std::string& name) const;

  // The gradients that arrived, zeros where none did: grad_q and so on, as the tensors lie in the file.
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
  std::map<std::string, Tensor> read_;  // learned ones are the leaves of the graph
  AttentionSizes sizes_{};
  int rank_ = 0;
};

Tensor with_axes(const Tensor& x, int rank);     // leading axes of size 1 are added
Tensor without_axes(const Tensor& x, int rank);  // and taken away again

}  // namespace heed::cli
