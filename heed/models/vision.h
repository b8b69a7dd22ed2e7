// Shared by vision transformers (vit.cc, dinov2.cc, vision_encoder_decoder.cc): patch embedding, class token and registers, positions,
// layers, pooling.
#pragma once

#include "heed/models/architecture.h"
#include "heed/models/parts.h"
#include "heed/nn/pooling.h"

namespace heed {

constexpr int64_t kVitPatch = 16;  // default of patch_size

// The differences between families.
struct VisionOptions {
  LayerOptions layer = {};
  LayerNames names = {};
  bool distillation_token = false;  // after the class token
  int64_t registers = 0;            // tokens after the class token that have no positions
  bool mask_token = false;          // replaces the patches in bool_masked_pos
  bool pools_patches = false;       // pooled images are the class token and the mean of the patches, concatenated
  std::optional<GridFilter> other_sizes = {};
  int64_t usual_patch = kVitPatch;  // without patch_size
};

// The number of tokens of an image. others: tokens that are not patches; there are none if the pooling does not use the class token.
int64_t vision_tokens(const Config& config, int64_t others, int64_t usual_patch);

// The inner model.
struct Vision {
  PatchEmbedding patches = {};
  Tensor class_token, distillation_token;  // (1, 1, D) or undefined
  Tensor registers;                        // (1, R, D) or undefined
  Tensor mask_token;                       // (1, D) or undefined
  AddedPositions positions = {};
  std::vector<EncoderLayer> layers = {};
  Norm norm = {};  // final norm of pre-norm layers
  Pool pool = {};
  bool pools_patches = false;
  float dropout = 0;
  std::array<int64_t, 2> image = {};  // height and width
  TokenGrid grid = {};                // of patches of such images
  std::optional<GridFilter> other_sizes = {};

  Vision(const Scope& scope, const Config& config, const VisionOptions& options);
  // pixel_values (B, C, height, width) and optionally bool_masked_pos (B, patches) -> (B, N, D), or (B, 1, D) with pooled_only if pooled()
  // reads no other token. prefix: of the names of states and maps in `out`
  Tensor operator()(const TensorMap& inputs, const ForwardOptions& options, TensorMap& out, bool pooled_only = false,
                    const std::string& prefix = "") const;
  Tensor pooled(const Tensor& x, Mode mode) const;  // (B, N, D) -> (B, pooled_width())
  int64_t pooled_width() const;

 private:
  Tensor positioned(const Tensor& x, const TokenGrid& size) const;  // (B, N, D) -> (B, N, D)
};

// A ViT, or with distilled the DeiT with a second token (vit.cc).
Vision make_vit(const Scope& scope, const Config& config, bool distilled);

// A linear head; undefined if the config has no labels, and then x stays as it is.
Linear label_head(const Scope& scope, const Config& config, int64_t width);
inline Tensor apply_head(const Linear& head, const Tensor& x) { return head.defined() ? head(x) : x; }

// A classifier of pooled images, with the parameters "classifier".
Network image_classifier(const Scope& scope, const Config& config, const Vision& vision);

// The traits of such a family. others: the tokens that are not patches; usual_patch: without patch_size
Family vision_family(const std::string& name, const std::function<int64_t(const Config&)>& others, int64_t usual_patch = kVitPatch);

}  // namespace heed
