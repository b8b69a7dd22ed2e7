// The list of experiments: a new one is a file and a line here.
#pragma once

#include "heed/lab/experiment.h"

// clang-format off
#define HEED_EXPERIMENTS(X)         \
  X(softmax_temperature)  /* L1 */  \
  X(noisy_key) /* L2 */  \
  X(stretched_key) /* L3 */  \
  X(identity_and_permutations) /* L4 */  \
  X(running_linear_layer) /* L5 */  \
  X(heads_as_groups) /* L6 */  \
  X(dot_product_variance) /* L7 */  \
  X(softmax_saturation) /* L8 */  \
  X(kernel_smoother) /* L9 */  \
  X(parameter_counts) /* L10 */  \
  X(attention_cost) /* L11 */  \
  X(position_cost) /* L12 */  \
  X(permutation_equivariance) /* L13 */  \
  X(token_or_channel_map) /* L14 */  \
  X(channel_cost) /* L15 */  \
  X(new_token) /* L16 */  \
  X(cheaper_vision) /* L17 */  \
  X(kernel_cost) /* L18 */  \
  X(convolution_theorem) /* L19 */  \
  X(gaussian_limit) /* L20 */  \
  X(convolution_borders) /* L21 */  \
  X(convolution_dilation) /* L22 */  \
  X(convolution_stride) /* L23 */  \
  X(convolutional_heads) /* L24 */  \
  X(position_plots) /* L25 */  \
  X(gelu_forms) /* L26 */  \
  X(layer_norm_invariance) /* L27 */  \
  X(pooling_heads) /* L28 */  \
  X(patch_embedding) /* L30 */  \
  X(pretraining_tasks) /* L31 */  \
  X(softmax_axis) /* L32 */  \
  X(one_head_convolution) /* L33 */  \
  X(slices_or_projections) /* L34 */  \
  X(softmax_derivatives) /* L35 */  \
  X(when_positions_matter) /* L36 */  \
  X(block_parts) /* L37 */  \
  X(other_resolutions) /* L38 */  \
  X(training_set_size) /* L29, L39 */  \
  X(sparse_vision) /* L40 */  \
  X(recurrent_or_attention) /* L41 */  \
  X(parallel_heads) /* L42 */  \
  X(generative_or_contrastive) /* L43 */  \
  X(noisy_key_distribution) /* L44 */  \
  X(offsets_covered) /* L45 */  \
  X(overfitting) /* L46 */  \
  X(head_pruning) /* L47 */  \
  X(absolute_terms) /* L48 */  \
  X(copy_distance) /* L49 */  \
  /* the end */
// clang-format on

namespace heed::lab {

#define HEED_DECLARE(name) Experiment name();
HEED_EXPERIMENTS(HEED_DECLARE)
#undef HEED_DECLARE

}  // namespace heed::lab
