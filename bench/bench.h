// A benchmark describes itself: its name, the work of one call and how to build that call. One file per family lists them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/core/tensor.h"

namespace heed::bench {

using Call = std::function<void()>;

enum class Unit { flops, bytes, none };  // what bounds the op, and so what its rate is counted in

struct Benchmark {
  std::string name;  // op/pass/group/sizes: a peer builds the same call from it
  Unit unit = Unit::none;
  double work = 0;             // of one call, in units; bytes are those that must be read and written
  std::function<Call()> make;  // builds the inputs
  std::string beside = {};     // what else runs in the same rounds: "sgemm", "stream" or nothing
  std::function<Call()> make_beside = {};
  double beside_work = 0;
  bool memory = false;  // how much it takes is measured too
};

std::vector<Benchmark> linear_benchmarks();     // linear.cc
std::vector<Benchmark> rows_benchmarks();       // rows.cc: norms, activations, softmax, losses, dropout as models meet them
std::vector<Benchmark> stream_benchmarks();     // stream.cc: the same on tensors that no cache holds
std::vector<Benchmark> optimizer_benchmarks();  // optimizer.cc
std::vector<Benchmark> graph_benchmarks();      // graph.cc
std::vector<Benchmark> picture_benchmarks();    // picture.cc: batched products and convolutions
std::vector<Benchmark> attention_benchmarks();  // attention.cc
std::vector<Benchmark> cheaper_benchmarks();    // cheaper.cc: kernel and channel attention, pooled keys
std::vector<Benchmark> model_benchmarks();      // models.cc: whole models
std::vector<Benchmark> training_benchmarks();   // training.cc: whole steps of training

// --- building calls --------------------------------------------------------------------------------------------- calls.cc
using Function = std::function<Tensor(const Tensors&)>;

std::string name_of(const std::string& start, const Shape& sizes);  // start/2x3x4

// function on inputs of these shapes with normal random elements, nothing recorded.
std::function<Call()> forward_call(std::vector<Shape> shapes, Function function);
// The same and backward to every input, with fresh gradients each time.
std::function<Call()> train_call(std::vector<Shape> shapes, Function function);

// The most bytes that calls hold beyond what the process had before: run by `heed_bench --memory NAME` in a process of its own.
double memory_of_call(const Benchmark& benchmark);      // memory.cc
double memory_of_own_process(const std::string& name);  // asks heed_bench

Tensor random_targets(int64_t count, int64_t classes);  // (count) i64 in [0, classes)

}  // namespace heed::bench
