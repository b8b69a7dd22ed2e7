#include "heed/train/retrieval.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "heed/core/parallel.h"
#include "heed/dist/split_work.h"
#include "heed/models/finite.h"
#include "heed/ops/ops.h"
#include "heed/train/batch_order.h"

namespace heed {
namespace {

constexpr int64_t kRetrievalBatch = 64, kLossBatch = 64;
constexpr int64_t kScoresAtOnce = 1 << 24;

// Rows of a model's output for `count` inputs, in batches that processes share. -> (count, E)
Tensor vectors_of(int64_t count, const std::function<Tensor(std::span<const int64_t> which)>& rows,
                  const std::function<void(int64_t count)>& done) {
  const Batches batches = batches_in_order(count, kRetrievalBatch);
  std::vector<float> all;
  split_work(
      world(), std::ssize(batches), [&](int64_t i) { return bytes_of_numbers(rows(batches[static_cast<size_t>(i)]).to_vector<float>()); },
      [&](int64_t i, const std::string& bytes) {
        const std::vector<float> numbers = numbers_in<float>(bytes);
        all.insert(all.end(), numbers.begin(), numbers.end());
        if (done) done(std::ssize(batches[static_cast<size_t>(i)]));
      });
  return Tensor::from(all, {count, std::ssize(all) / count}, kCpu);
}

// For every row of a: how many rows of b that do not belong to it come before the closest one that does, ordered by distance and, if that
// is equal, by number.
std::vector<int64_t> ranks(const Tensor& a, const Tensor& b, const std::vector<std::set<int64_t>>& belong) {
  const int64_t A = a.size(0), B = b.size(0), rows = std::clamp<int64_t>(kScoresAtOnce / B, 1, A);
  const Tensor columns = transpose(b, 0, 1);
  std::vector<int64_t> out;
  for (int64_t first = 0; first < A; first += rows) {
    const int64_t last = std::min(first + rows, A);
    const std::vector<float> scores = matmul(slice(a, 0, first, last), columns).to_vector<float>();
    for (int64_t i = first; i < last; ++i) {
      const std::span<const float> row = std::span(scores).subspan(static_cast<size_t>((i - first) * B), static_cast<size_t>(B));
      const std::set<int64_t>& own = belong[static_cast<size_t>(i)];
      const int64_t best = *std::max_element(
          own.begin(), own.end(), [&](int64_t j, int64_t k) { return row[static_cast<size_t>(j)] < row[static_cast<size_t>(k)]; });
      const auto comes_before = [&](int64_t j) {
        const float score = row[static_cast<size_t>(j)], score_of_best = row[static_cast<size_t>(best)];
        return score > score_of_best || (score == score_of_best && j < best);
      };
      int64_t before = 0;
      for (int64_t j = 0; j < B; ++j) before += comes_before(j);
      out.push_back(before);
    }
  }
  return out;
}

double share_below(const std::vector<int64_t>& numbers, int64_t limit) {
  return static_cast<double>(std::count_if(numbers.begin(), numbers.end(), [&](int64_t each) { return each < limit; })) /
         static_cast<double>(numbers.size());
}

}  // namespace

Evaluation Retrieval::evaluation() const {
  std::vector<std::set<int64_t>> texts_of(static_cast<size_t>(images.size(0))), images_of(static_cast<size_t>(texts.size(0)));
  for (size_t c = 0; c < image_of.size(); ++c) {
    texts_of[static_cast<size_t>(image_of[c])].insert(text_of[c]);
    images_of[static_cast<size_t>(text_of[c])].insert(image_of[c]);
  }
  double loss = 0;
  for (const std::vector<int64_t>& batch : batches_in_order(std::ssize(image_of), kLossBatch)) {
    const int64_t B = std::ssize(batch);
    std::vector<int64_t> image, text, numbers;
    for (const int64_t c : batch) {
      image.push_back(image_of[static_cast<size_t>(c)]);
      text.push_back(text_of[static_cast<size_t>(c)]);
      numbers.push_back(std::ssize(numbers));
    }
    const Tensor x = index_select(images, 0, Tensor::from(image, {B}, kCpu)), y = index_select(texts, 0, Tensor::from(text, {B}, kCpu));
    const Tensor logits = matmul(x, transpose(y, 0, 1)) * factor, labels = Tensor::from(numbers, {B}, kCpu);
    const float both = cross_entropy(logits, labels).item() + cross_entropy(transpose(logits, 0, 1), labels).item();
    loss += static_cast<double>(both) / 2 * static_cast<double>(B);
  }
  const std::vector<int64_t> of_images = ranks(images, texts, texts_of), of_texts = ranks(texts, images, images_of);
  return {.figures = {{"loss", loss / static_cast<double>(image_of.size())},
                      {"image_to_text_accuracy", share_below(of_images, 1)},
                      {"image_to_text_top5_accuracy", share_below(of_images, 5)},
                      {"text_to_image_accuracy", share_below(of_texts, 1)},
                      {"text_to_image_top5_accuracy", share_below(of_texts, 5)}},
          .detail = {{"images", images.size(0)}, {"captions", image_of.size()}, {"different_captions", texts.size(0)}}};
}

std::vector<float> Retrieval::text_probabilities(int64_t image) const {
  return softmax(matmul(slice(images, 0, image, image + 1), transpose(texts, 0, 1)) * factor).to_vector<float>();
}

Retrieval encode_for_retrieval(const Model& model, const Tokenizer& tokenizer, const ImageProcessor& reader, const CaptionedImages& data,
                               int64_t max_length, const std::function<void(int64_t count)>& done) {
  const NoGrad no_grad;
  Retrieval out{.image_of = data.image_of};
  std::map<std::string_view, int64_t> numbers;
  for (const std::string& caption : data.captions) {
    const auto [at, is_new] = numbers.try_emplace(caption, std::ssize(numbers));
    if (is_new) out.captions.push_back(caption);
    out.text_of.push_back(at->second);
  }
  const std::vector<Encoding> encodings = tokenizer.encode_all(out.captions, {.max_length = max_length});
  const auto checked = [&](const Tensor& vectors) {
    check_finite(model, vectors);
    return vectors;
  };
  out.images = vectors_of(
      data.images.count(),
      [&](std::span<const int64_t> which) {
        std::vector<Image> images(which.size());
        parallel_tasks(std::ssize(which),
                       [&](int64_t b) { images[static_cast<size_t>(b)] = data.images.image(which[static_cast<size_t>(b)]); });
        return checked(model({{"pixel_values", reader.normalized(images)}}).at("image_embeds"));
      },
      done);
  out.texts = vectors_of(
      std::ssize(encodings),
      [&](std::span<const int64_t> which) {
        std::vector<Encoding> some;
        for (const int64_t i : which) some.push_back(encodings[static_cast<size_t>(i)]);
        const EncodedBatch batch = tokenizer.batch(some);
        return checked(model({{"input_ids", batch.input_ids}, {"attention_mask", batch.attention_mask}}).at("text_embeds"));
      },
      done);
  // The logit of an image and a text with the same vector.
  const Image first = data.images.image(0);
  TensorMap one{{"pixel_values", reader.normalized(std::span(&first, 1))}};
  one["text_embeds"] = model(one).at("image_embeds");
  out.factor = model(one).at("logits_per_image").item();
  return out;
}

}  // namespace heed
