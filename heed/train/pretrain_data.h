// What encoders are pre-trained on: texts with words hidden (Devlin et al. 2019), and pairs of which one says whether the second belongs
// to the first. Every sample is made anew from the numbers of a random key.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heed/core/random.h"
#include "heed/data/text_data.h"
#include "heed/io/json.h"
#include "heed/text/tokenizer.h"

namespace heed {

class Draws;

enum class PairTask { none, next, inversion, inference };

struct PretrainOptions {
  bool masked = true, next = true, inversion = false, inference = false;
  float masked_share = 0.15f;
  int64_t max_length = 128;  // tokens, the special ones among them

  std::vector<PairTask> pair_tasks() const;
};

struct SentencePair {
  std::string first, second;
  bool follows = false;
};

// One entry a token in every list.
struct PretrainSample {
  std::vector<int64_t> ids = {}, types = {};
  std::vector<int64_t> labels = {};  // the word that was there; -100 where nobody asks
  PairTask task = PairTask::none;
  int64_t pair_label = -100;  // 0: the second belongs to the first, 1: it does not
  int64_t first_document = -1, second_document = -1;
};

class PretrainData {
 public:
  // documents: sentences of each. pairs: of inference. what: for messages
  PretrainData(Tokenizer tokenizer, const PretrainOptions& options, std::span<const std::vector<std::string>> documents,
               std::span<const SentencePair> pairs, const std::string& what);

  int64_t count() const { return std::ssize(windows_); }  // about as many as fill all the text once
  // The i-th stretch of text, from one of its sentences on; a task that needs no documents has pairs of its own.
  PretrainSample sample(RandomKey key, int64_t i) const;

 private:
  struct Sentence {
    std::vector<int32_t> ids;
    std::vector<size_t> words;  // where each begins
  };
  struct Window {
    int64_t document, first, count;  // sentences
  };
  struct Stretch {
    std::vector<int32_t> ids;
    int64_t document, end;  // end: the sentence that follows
  };

  Sentence read(const std::string& text, const Encoding& encoding) const;
  Stretch fill(int64_t document, int64_t first, int64_t last, int64_t room) const;
  Stretch first_of(const Window& window, Draws& chance) const;
  void make_next(PretrainSample& sample, const Window& window, Draws& chance) const;
  void make_inversion(PretrainSample& sample, const Window& window, Draws& chance) const;
  void make_inference(PretrainSample& sample, Draws& chance) const;
  void join(PretrainSample& sample, std::span<const int32_t> first, std::span<const int32_t> second) const;
  void mask(PretrainSample& sample, Draws chance) const;
  int64_t room() const { return options_.max_length - 3; }  // of two segments

  Tokenizer tokenizer_;
  PretrainOptions options_;
  std::vector<PairTask> tasks_;
  std::vector<std::vector<Sentence>> documents_;
  std::vector<Window> windows_;
  std::vector<std::pair<Sentence, Sentence>> pairs_;
  std::vector<bool> follows_;    // of pairs_
  std::vector<int32_t> words_;   // all tokens that are not special
  int32_t begin_, part_, mask_;  // [CLS], [SEP], [MASK]
};

// labels: those of classes of which one says that the second sentence follows. source: for messages
std::vector<SentencePair> pairs_of(const std::vector<LabelledText>& texts, const std::string& source);
Json print_of_texts(std::span<const std::vector<std::string>> documents, std::span<const SentencePair> pairs);  // see data_print.h

}  // namespace heed
