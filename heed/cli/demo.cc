// heed demo: a two-layer perceptron learns to tell the pictures of Fashion-MNIST apart (Xiao, Rasul and Vollgraf 2017).
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "heed/cli/command.h"
#include "heed/cli/progress.h"
#include "heed/core/isa.h"
#include "heed/core/parallel.h"
#include "heed/data/idx.h"
#include "heed/ops/ops.h"
#include "heed/train/optimizer.h"

namespace heed::cli {
namespace {

constexpr int64_t kPixels = 28 * 28, kHidden = 256, kClasses = 10, kBatch = 128;
constexpr const char* kDebianFolder = "/usr/share/datasets/fashion-mnist";

struct Options {
  std::string data = kDebianFolder;
  int64_t epochs = 10;
  float rate = 2e-3f;
  uint64_t seed = 1;
};

struct Pictures {
  Tensor pixels;  // (N, kPixels) f32, mean about 0, deviation about 1
  std::vector<int64_t> labels;
  int64_t count() const { return pixels.size(0); }
};

Tensor read_part(const std::string& path) { return read_idx(std::filesystem::exists(path + ".gz") ? path + ".gz" : path); }

Pictures read_pictures(const std::string& folder, const std::string& set) {
  const std::string pixel_path = folder + "/" + set + "-images-idx3-ubyte", label_path = folder + "/" + set + "-labels-idx1-ubyte";
  const Tensor pixels = read_part(pixel_path), labels = read_part(label_path);
  check<FileError>(pixels.rank() == 3 && pixels.size(1) * pixels.size(2) == kPixels, pixel_path, ": shape ", pixels.shape(),
                   ", expected (N, 28, 28)");
  check<FileError>(labels.rank() == 1 && labels.count() == pixels.size(0) && labels.count() > 0, label_path, ": shape ", labels.shape(),
                   " beside ", pixels.size(0), " pictures");
  const std::vector<int64_t> classes = labels.to_vector<int64_t>();
  for (int64_t label : classes) check<FileError>(label < kClasses, label_path, ": label ", label, ", expected less than ", kClasses);
  constexpr float mean = 0.286f, deviation = 0.353f;  // of the training pictures, pixels in [0, 1]
  const Tensor flat = converted(reshape(pixels, {-1, kPixels}), DType::f32);
  return {scale(flat, 1 / (255 * deviation), -mean / deviation), classes};
}

// x: (B, kPixels) -> (B, kClasses)
struct Network {
  Tensor w1, b1, w2, b2;  // (kHidden, kPixels), (kHidden), (kClasses, kHidden), (kClasses)

  explicit Network(Rng& rng)
      : w1(random_normal({kHidden, kPixels}, 0, std::sqrt(2.0f / kPixels), rng)),
        b1(Tensor::zeros({kHidden})),
        w2(random_normal({kClasses, kHidden}, 0, std::sqrt(1.0f / kHidden), rng)),
        b2(Tensor::zeros({kClasses})) {
    for (Tensor* parameter : {&w1, &b1, &w2, &b2}) parameter->require_grad();
  }
  Tensor operator()(const Tensor& x) const { return linear(linear(x, w1, b1, Activation::relu), w2, b2); }
};

// logits: (B, kClasses), labels: B of them
int64_t count_right(const Tensor& logits, const std::vector<int64_t>& labels) {
  const std::vector<int64_t> guesses = argmax(logits).to_vector<int64_t>();
  int64_t right = 0;
  for (size_t i = 0; i < labels.size(); ++i) right += guesses[i] == labels[i];
  return right;
}

struct Batch {
  Tensor pixels;  // (B, kPixels)
  std::vector<int64_t> labels;
};

Batch choose(const Pictures& pictures, std::span<const int64_t> which) {
  Batch batch{index_select(pictures.pixels, 0, Tensor::from(which, {std::ssize(which)})), {}};
  for (int64_t i : which) batch.labels.push_back(pictures.labels[static_cast<size_t>(i)]);
  return batch;
}

void train(const Network& network, const Pictures& pictures, const Options& options, Rng& rng) {
  Adam adam({{{network.w1, network.w2}, 0.01f}, {{network.b1, network.b2}, 0}}, {});
  const int64_t steps = (pictures.count() + kBatch - 1) / kBatch;
  Progress progress(std::cout, is_terminal_output(), terminal_width(), options.epochs, steps);
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    const std::vector<int64_t> order = random_permutation(pictures.count(), rng);
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t begin = step * kBatch, size = std::min(kBatch, pictures.count() - begin);
      const Batch batch = choose(pictures, std::span(order).subspan(static_cast<size_t>(begin), static_cast<size_t>(size)));
      const Tensor logits = network(batch.pixels), loss = cross_entropy(logits, Tensor::from(batch.labels, {size}));
      const float value = loss.item();
      check<DivergedError>(std::isfinite(value), "demo: the loss is ", value, " in epoch ", epoch + 1, " step ", step + 1);
      adam.zero_grad();
      backward(loss);
      const float done = static_cast<float>(epoch * steps + step) / static_cast<float>(options.epochs * steps);
      adam.step(options.rate * 0.5f * (1 + std::cos(std::numbers::pi_v<float> * done)));  // down to zero along a cosine
      progress.step(size, value, count_right(logits, batch.labels));
    }
  }
}

double test_accuracy(const Network& network, const Pictures& pictures) {
  const NoGrad quiet;
  return static_cast<double>(count_right(network(pictures.pixels), pictures.labels)) / static_cast<double>(pictures.count());
}

void run_demo(const Options& options) {
  check<FileError>(std::filesystem::is_directory(options.data), options.data,
                   ": no such folder. Debian's package dataset-fashion-mnist brings the pictures; --data names another folder");
  const Pictures training = read_pictures(options.data, "train"), testing = read_pictures(options.data, "t10k");
  std::cout << "Fashion-MNIST: " << training.count() << " pictures to learn from, " << testing.count() << " to be tested on\n"
            << "Network: " << kPixels << " -> " << kHidden << " (relu) -> " << kClasses << "; batches of " << kBatch << "; "
            << instruction_set() << "; threads: " << thread_count() << std::endl;
  Rng rng(options.seed);
  const Network network(rng);
  train(network, training, options, rng);
  std::cout << "Test accuracy: " << std::fixed << std::setprecision(2) << 100 * test_accuracy(network, testing) << "%\n\n"
            << "Next: heed demo --help has other lengths and seeds. heed/cli/demo.cc is all of this demo;\n"
            << "docs/architecture.md explains the engine under it.\n";
}

const Command demo("demo", "Train a small network on Fashion-MNIST", [](Flags& flags) {
  auto options = std::make_shared<Options>();
  flags.option("--data", options->data, "Folder with the four IDX files, plain or .gz").value("FOLDER");
  flags.option("--epochs", options->epochs, "Passes over the pictures").value("N").must_be(whole_within(1, 1000));
  flags.option("--rate", options->rate, "Learning rate at the start").value("R").must_be(positive());
  flags.option("--seed", options->seed, "Another seed, other random numbers").value("N");
  flags.footer("Examples:\n  heed demo\n  heed demo --epochs 3 --seed 7\n  heed demo --data my-pictures");
  return [options] { run_demo(*options); };
});

}  // namespace
}  // namespace heed::cli
