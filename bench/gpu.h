// A line of the GPU benchmark: its name, the work of one call and how to build the call. One file per family.
#pragma once

#include "bench/bench.h"

namespace heed::bench {

struct GpuSetup {
  Device device = {};
  bool tiny = false;  // small sizes, to try the program on a CPU
};

struct GpuLine {
  std::string name;            // op/pass/sizes or op/pass/kind/sizes; gpu_peers.py has the same names
  std::function<Call()> make;  // builds the inputs
  double flops = 0;            // of one call; 0: not counted
  double bytes = 0;            // the least that one call must read and write; 0: not counted
  double items = 0;            // of one call; 0: none
  std::string item = {};       // what they are: images, sequences, tokens
};
using GpuLines = std::vector<GpuLine>;

// The product and the copy that show what the machine can do: the first one counts operations, the second one bytes.
GpuLines gpu_ceilings(const GpuSetup& setup);         // gpu_ops.cc
GpuLines gpu_op_lines(const GpuSetup& setup);         // linear layers, norms, activations, losses, AdamW
GpuLines gpu_attention_lines(const GpuSetup& setup);  // gpu_attention.cc
GpuLines gpu_decode_lines(const GpuSetup& setup);     // gpu_decode.cc: the kernels of a decoding step
GpuLines gpu_model_lines(const GpuSetup& setup);      // gpu_models.cc: training steps and inference

// --- building calls ----------------------------------------------------------------------------------------------- gpu_ops.cc
Tensor gpu_random(const Shape& shape, const GpuSetup& setup, DType dtype = DType::bf16);  // normal
Call gpu_forward_call(const Tensors& inputs, const Function& function);                   // without recording gradients
// The backward alone, to every input: the forward runs once, here, and its graph is kept.
Call gpu_backward_call(Tensors inputs, const Function& function, const GpuSetup& setup);

}  // namespace heed::bench
