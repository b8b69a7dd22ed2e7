// Pre-training samples for encoders: masked words (Devlin et al. 2019) and segment pairs with a label that says whether the second belongs
// to the first. Every sample is a function of a random key.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heed/core/random.h"
#include "heed/data/text_data.h"
#include "heed/io/json.h"
#include "heed/text/tokenizer.h"
#include "heed/train/task.h"

namespace heed {

class Draws;

enum class PairTask { none, next, inversion, inference };

struct PretrainOptions {
  bool masked = true, next = true, inversion = false, inference = false;
  float masked_share = 0.15f;
  int64_t max_length = 128;  // tokens, including special tokens

  std::vector<PairTask> pair_tasks() const;
};

struct SentencePair {
  std::string first, second;
  bool follows = false;
};

// ids, types and labels have one entry per token.
struct PretrainSample {
  std::vector<int64_t> ids = {}, types = {};
  std::vector<int64_t> labels = {};  // the original token where one is masked, else -100
  PairTask task = PairTask::none;
  int64_t pair_label = -100;  // 0: the second segment belongs to the first, 1: it does not
  int64_t first_document = -1, second_document = -1;
};

class PretrainData {
 public:
  // documents: the sentences of each. pairs: for inference. what: names the data in messages
  PretrainData(Tokenizer tokenizer, const PretrainOptions& options, std::span<const std::vector<std::string>> documents,
               std::span<const SentencePair> pairs, const std::string& what);

  int64_t count() const { return std::ssize(windows_); }  // about one pass over the text
  // The number of samples in a batch of evaluation, whose logits are (tokens, vocabulary).
  int64_t samples_per_evaluation() const { return std::max<int64_t>(2048 / options_.max_length, 1); }
  // A sample from window i, starting at a random sentence of it; the inference task uses `pairs` instead.
  PretrainSample sample(RandomKey key, int64_t i) const;
  // Inputs and labels of BertForPreTraining; extra: the PairTask of every sample.
  Batch batch(uint64_t seed, int64_t epoch, std::span<const int64_t> which) const;

 private:
  struct Sentence {
    std::vector<int32_t> ids;
    std::vector<size_t> words;  // index of the first token of each word
  };
  struct Window {
    int64_t document, first, count;  // sentences
  };
  struct Segment {
    std::vector<int32_t> ids;
    int64_t document, end;  // end: index of the next sentence
  };

  Sentence read(const std::string& text, const Encoding& encoding) const;
  Segment fill(int64_t document, int64_t first, int64_t last, int64_t max_tokens) const;
  Segment first_segment(const Window& window, Draws& draws) const;
  void make_next(PretrainSample& sample, const Window& window, Draws& draws) const;
  void make_inversion(PretrainSample& sample, const Window& window, Draws& draws) const;
  void make_inference(PretrainSample& sample, Draws& draws) const;
  void join(PretrainSample& sample, std::span<const int32_t> first, std::span<const int32_t> second) const;
  void mask(PretrainSample& sample, Draws draws) const;
  int64_t pair_tokens() const { return options_.max_length - 3; }  // tokens available for both segments

  Tokenizer tokenizer_;
  PretrainOptions options_;
  std::vector<PairTask> tasks_;
  std::vector<std::vector<Sentence>> documents_;
  std::vector<Window> windows_;
  std::vector<std::pair<Sentence, Sentence>> pairs_;
  std::vector<bool> follows_;          // per pair
  std::vector<int32_t> plain_tokens_;  // all non-special tokens
  int32_t cls_, sep_, mask_;           // [CLS], [SEP], [MASK]
};

// Pairs for the inference task. One of the labels must mean "follows". source: names the data in messages
std::vector<SentencePair> inference_pairs(const std::vector<LabelledText>& texts, const std::string& source);
Json fingerprint_of_texts(std::span<const std::vector<std::string>> documents,
                          std::span<const SentencePair> pairs);  // see data_fingerprint.h

}  // namespace heed
