// Linear layers of four kinds of models, with oneDNN's sgemm on the same shapes as the baseline.
#include <hwy/aligned_allocator.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <memory>

#include "bench/bench.h"
#include "heed/core/parallel.h"
#include "heed/ops/ops.h"

extern "C" void omp_set_num_threads(int threads);

namespace heed::bench {
namespace {

struct Group {
  const char* name;
  int64_t rows;
  std::vector<std::pair<int64_t, int64_t>> layers;  // inputs, outputs
};

const Group kGroups[] = {
    {"vit-b", 197, {{768, 768}, {768, 2304}, {768, 3072}, {3072, 768}}},               // ViT-B/16, one image
    {"bert", 8 * 128, {{768, 768}, {768, 3072}, {3072, 768}}},                         // BERT-base, 8 texts of 128 tokens
    {"cifar", 64 * 65, {{192, 192}, {192, 576}, {192, 768}, {768, 192}}},              // a ViT on CIFAR, 64 images
    {"decode", 1, {{768, 768}, {768, 2304}, {768, 3072}, {3072, 768}, {768, 50257}}},  // GPT-2, one token at a time
};

using Floats = std::shared_ptr<float[]>;

Floats floats(int64_t count) {
  Floats data = hwy::MakeUniqueAlignedArray<float>(static_cast<size_t>(count));
  std::fill_n(data.get(), count, 0.5f);
  return data;
}

// All products of the layer, with as many threads as heed, through OpenMP. heed's own tasks each limit oneDNN to one thread, so the setting
// goes back to 1 afterwards.
Call bare_products(int64_t rows, int64_t in, int64_t out, bool train) {
  const Floats x = floats(rows * in), w = floats(out * in), y = floats(rows * out);  // (rows, in), (out, in), (rows, out)
  const Floats dx = train ? floats(rows * in) : nullptr, dw = train ? floats(out * in) : nullptr;
  return [=] {
    omp_set_num_threads(thread_count());
    dnnl_sgemm('N', 'T', rows, out, in, 1, x.get(), in, w.get(), in, 0, y.get(), out);
    if (train) {
      dnnl_sgemm('N', 'N', rows, in, out, 1, y.get(), out, w.get(), in, 0, dx.get(), in);
      dnnl_sgemm('T', 'N', out, in, rows, 1, y.get(), out, x.get(), in, 0, dw.get(), in);
    }
    omp_set_num_threads(1);
  };
}

}  // namespace

std::vector<Benchmark> linear_benchmarks() {
  std::vector<Benchmark> list;
  for (const bool train : {false, true}) {
    for (const Group& group : kGroups) {
      for (const auto& [in, out] : group.layers) {
        const std::vector<Shape> shapes{{group.rows, in}, {out, in}, {out}};
        const Function function = [](const Tensors& t) { return linear(t[0], t[1], t[2]); };
        // With one row no weight is reused: the work is reading it (in training twice, and writing its gradient).
        const bool one_row = group.rows == 1;
        const double products = train ? 3 : 1, multiplies = static_cast<double>(group.rows * in * out);
        const double work = products * multiplies * (one_row ? 4 : 2);
        const std::string start = std::string("linear/") + (train ? "train/" : "forward/") + group.name;
        list.push_back({name_of(start, {group.rows, in, out}), one_row ? Unit::bytes : Unit::flops, work,
                        train ? train_call(shapes, function) : forward_call(shapes, function), "sgemm",
                        [rows = group.rows, i = in, o = out, train] { return bare_products(rows, i, o, train); }, work});
      }
    }
  }
  return list;
}

}  // namespace heed::bench
