// A benchmark: its name, the work of one call and how to build that call. One file per family.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/core/tensor.h"

namespace heed::bench {

using Call = std::function<void()>;

enum class Unit { flops, bytes, none };  // the bound of the op, in which its rate is counted

struct Benchmark {
  std::string name;  // op/pass/group/sizes: a peer builds the same call from the name
  Unit unit = Unit::none;
  double work = 0;             // of one call, in units; bytes: the least that must be read and written
  std::function<Call()> make;  // builds the inputs
  std::string baseline = {};   // a reference call timed in the same rounds: "sgemm", "stream" or none
  std::function<Call()> make_baseline = {};
  double baseline_work = 0;
  bool memory = false;  // peak memory is measured too
};

std::vector<Benchmark> linear_benchmarks();     // linear.cc
std::vector<Benchmark> rows_benchmarks();       // rows.cc: norms, activations, softmax, losses, dropout on shapes of real models
std::vector<Benchmark> stream_benchmarks();     // stream.cc: the same on tensors larger than the caches
std::vector<Benchmark> optimizer_benchmarks();  // optimizer.cc
std::vector<Benchmark> graph_benchmarks();      // graph.cc
std::vector<Benchmark> image_benchmarks();      // image.cc: batched products and convolutions
std::vector<Benchmark> attention_benchmarks();  // attention.cc
std::vector<Benchmark> cheaper_benchmarks();    // cheaper.cc: linear and channel attention, pooled keys
std::vector<Benchmark> model_benchmarks();      // models.cc: whole models
std::vector<Benchmark> training_benchmarks();   // training.cc: whole training steps

// --- building calls --------------------------------------------------------------------------------------------- calls.cc
using Function = std::function<Tensor(const Tensors&)>;

std::string name_of(const std::string& start, const Shape& sizes);  // start/2x3x4

// function on normal random inputs of these shapes, without recording gradients.
std::function<Call()> forward_call(std::vector<Shape> shapes, Function function);
// The same with backward to every input, with fresh gradients each time.
std::function<Call()> train_call(std::vector<Shape> shapes, Function function);

// Peak memory of the call beyond what the process had before, measured by `heed_bench --memory NAME` in a separate process.
double memory_of_call(const Benchmark& benchmark);      // memory.cc
double memory_of_own_process(const std::string& name);  // runs heed_bench

Tensor random_targets(int64_t count, int64_t classes);  // (count) i64 in [0, classes)

}  // namespace heed::bench
