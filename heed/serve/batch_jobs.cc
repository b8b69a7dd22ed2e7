#include "heed/serve/batch_jobs.h"

#include <map>

#include "heed/models/finite.h"
#include "heed/ops/ops.h"
#include "heed/serve/answer.h"

namespace heed::serve {
namespace {

using JobKind = BatchJob::Kind;
using Jobs = std::vector<BatchJob*>;

constexpr int64_t kImageTokens = 128;
constexpr int64_t kMostTokens = 4096;          // of sentences in a call
constexpr int64_t kMostLabelledTokens = 1024;  // the same where the output has a row of the vocabulary's size for each

const Tensor& output_in(const LoadedModel& model, const TensorMap& out, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto found = out.find(name); found != out.end()) return found->second;
  throw HttpError(422, model.info().id + ": " + model.info().architecture + " has no output " + *names.begin());
}

Tensor row_of(const Tensor& x, int64_t row) { return reshape(slice(x, 0, row, row + 1), {x.count() / x.size(0)}); }

// The part of each sentence. x: (1, T, D) for tokens, or (sentences, D)
Tensors outputs_of(const LoadedModel& model, JobKind kind, const Tensor& x, std::span<const Encoding> sentences) {
  Tensors out;
  int64_t begin = 0;
  for (int64_t i = 0; i < std::ssize(sentences); ++i) {
    const int64_t length = sentences[static_cast<size_t>(i)].size();
    if (x.rank() == 2) {
      out.push_back(row_of(x, i));
    } else {
      const Tensor own = slice(x, 1, begin, begin + length);
      out.push_back(kind == JobKind::vectors ? row_of(pool_sentences(own, std::span(&length, 1), model.info().embed), 0)
                                             : reshape(own, {length, x.size(2)}));
    }
    begin += length;
  }
  return out;
}

Tensors run_call(LoadedModel& model, JobKind kind, std::span<const Encoding> sentences) {
  const TensorMap out = run_together(kind == JobKind::vectors ? model.embedder() : model.text(), sentences);
  const Tensor& wanted = kind == JobKind::vectors  ? output_in(model, out, {"text_embeds", "last_hidden_state"})
                         : kind == JobKind::labels ? output_in(model, out, {"logits", "seq_relationship_logits"})
                                                   : output_in(model, out, {"logits", "prediction_logits"});
  return outputs_of(model, kind, wanted, sentences);
}

// In as many calls as their memory needs.
Tensors run_sentences(LoadedModel& model, JobKind kind, std::span<const Encoding> sentences) {
  const int64_t most = kind == JobKind::token_labels ? kMostLabelledTokens : kMostTokens;
  Tensors out;
  for (size_t begin = 0, end = 0; begin < sentences.size(); begin = end) {
    int64_t tokens = 0;
    do tokens += sentences[end++].size();
    while (end < sentences.size() && tokens + sentences[end].size() <= most);
    for (Tensor& each : run_call(model, kind, sentences.subspan(begin, end - begin))) out.push_back(std::move(each));
  }
  return out;
}

Tensors run_images(const LoadedModel& model, const std::vector<Image>& images) {
  const Tensor pixels = model.images()(images);
  check_image_size(model.model(), model.info().folder, pixels);
  const Tensor logits = model.model()({{"pixel_values", pixels}}).at("logits");
  check_finite(model.model(), logits);
  Tensors out;
  for (int64_t i = 0; i < logits.size(0); ++i) out.push_back(row_of(logits, i));
  return out;
}

std::vector<Translated> run_translations(const LoadedModel& model, const std::vector<Encoding>& sentences,
                                         const GenerationOptions& options) {
  const Tokenizer& source = model.text().tokenizer;
  const int64_t pad = source.padding_id().value_or(static_cast<int32_t>(options.pad));
  return translate(model.model(), {source, model.target(), pad}, sentences, options);
}

// Jobs of one kind and group.
void run_group(LoadedModel& model, const Jobs& jobs, Metrics& metrics) {
  const JobKind kind = jobs[0]->kind;
  std::vector<Encoding> sentences;
  std::vector<Image> images;
  int64_t tokens = 0;
  for (BatchJob* each : jobs) {
    tokens += each->tokens();
    sentences.insert(sentences.end(), each->sentences.begin(), each->sentences.end());
    images.insert(images.end(), std::make_move_iterator(each->images.begin()), std::make_move_iterator(each->images.end()));
  }
  const auto count = [&](const BatchJob& job) { return kind == JobKind::images ? job.images.size() : job.sentences.size(); };
  metrics.batch(std::ssize(sentences) + std::ssize(images), tokens);
  metrics.prompt_tokens += tokens;
  if (kind == JobKind::translations) {
    const std::vector<Translated> all = run_translations(model, sentences, jobs[0]->translation(model));
    size_t begin = 0;
    for (const BatchJob* each : jobs) {
      each->translated(model, std::span(all).subspan(begin, count(*each)));
      begin += count(*each);
    }
    return;
  }
  const Tensors all = kind == JobKind::images ? run_images(model, images) : run_sentences(model, kind, sentences);
  auto begin = all.begin();
  for (const BatchJob* each : jobs) {
    const auto end = begin + static_cast<int64_t>(count(*each));
    each->done(model, Tensors(begin, end));
    begin = end;
  }
}

// Jobs of the same kind and group share a call. Images of different sizes do not, because the pixels of a call are one tensor.
std::string call_group(const LoadedModel& model, const BatchJob& job) {
  std::string out = job.group;
  for (const Image& each : job.images) {
    const ImageProcessor::Size size = model.images().prepared_size(each);
    out += " " + std::to_string(size.width) + "x" + std::to_string(size.height);
  }
  return out;
}

}  // namespace

int64_t BatchJob::tokens() const {
  int64_t out = kImageTokens * std::ssize(images);
  for (const Encoding& each : sentences) out += each.size();
  return out;
}

int64_t BatchJob::image_bytes() const {
  int64_t out = 0;
  for (const Image& each : images) out += std::ssize(each.pixels);
  return out;
}

void run_batch_jobs(LoadedModel& model, std::vector<BatchJob>& jobs, Metrics& metrics) {
  std::map<std::pair<JobKind, std::string>, Jobs> groups;
  for (BatchJob& each : jobs) try {
      groups[{each.kind, call_group(model, each)}].push_back(&each);
    } catch (...) {
      each.failed(std::current_exception());
    }
  for (const auto& [key, group] : groups) try {
      run_group(model, group, metrics);
    } catch (...) {
      for (const BatchJob* each : group) each->failed(std::current_exception());
    }
}

}  // namespace heed::serve
