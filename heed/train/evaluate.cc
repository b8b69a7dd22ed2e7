#include "heed/train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "heed/core/parallel.h"
#include "heed/dist/split_work.h"
#include "heed/io/printable.h"
#include "heed/models/architecture.h"
#include "heed/models/finite.h"
#include "heed/models/image_processor.h"
#include "heed/models/translate.h"
#include "heed/train/batch_order.h"
#include "heed/train/scores.h"

namespace heed {
namespace {

constexpr int64_t kImagesPerBatch = 128;
constexpr int64_t kLogitsPerBatch = 1 << 26;  // logits of language models: 256 MiB

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 12); ++i) out += (i > 0 ? ", " : "") + in_quotes(names[i], 40);
  return names.size() > 12 ? out + ", ..." : out;
}

// Index of each name among the model's labels; -1 if missing.
std::vector<int64_t> places_by_name(const std::vector<std::string>& data, const std::vector<std::string>& model) {
  std::map<std::string_view, int64_t> places;
  for (const std::string& name : model) places.emplace(name, &name - model.data());
  std::vector<int64_t> out;
  for (const std::string& name : data) {
    const auto found = places.find(name);
    out.push_back(found == places.end() ? -1 : found->second);
  }
  return out;
}

std::vector<int64_t> places_by_number(const std::vector<std::string>& data, size_t labels) {
  std::vector<int64_t> out;
  for (const std::string& name : data) {
    const bool number = !name.empty() && name.size() < 10 && name.find_first_not_of("0123456789") == std::string::npos;
    const int64_t place = number ? std::stoll(name) : -1;
    out.push_back(place < static_cast<int64_t>(labels) ? place : -1);
  }
  return out;
}

bool all_found(const std::vector<int64_t>& places) { return std::find(places.begin(), places.end(), -1) == places.end(); }

bool has_label_names(const std::vector<std::string>& labels) {
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i] != "LABEL_" + std::to_string(i)) return true;
  return false;
}

Labels labels_of(const Model& model, const Path& folder) {
  Labels labels(model, (folder / "config.json").string());
  check<FileError>(labels.kind() == Labels::Kind::one, (folder / "config.json").string(), ": the model gives ",
                   labels.kind() == Labels::Kind::value ? "values" : "several labels per input", ", expected one label per input");
  return labels;
}

// Windows of a text for a language model, B at a time: ids (B L) and, after each, the next one.
struct Windows {
  std::shared_ptr<const std::vector<int64_t>> ids;  // of the whole text
  size_t begin, count;
  int64_t B;

  std::vector<double> scored(const TextModel& model) const {  // -> loss and right guesses, summed over tokens
    const std::span<const int64_t> input = std::span(*ids).subspan(begin, count), next = std::span(*ids).subspan(begin + 1, count);
    const int64_t L = std::ssize(input) / B;
    const Tensor logits = model.model({{"input_ids", Tensor::from(input, {B, L}, kCpu)}}).at("logits");
    const Tensor next_ids = Tensor::from(next, {B, L}, logits.device());
    const double loss = static_cast<double>(cross_entropy(logits, next_ids).item()) * static_cast<double>(B * L);
    double right = 0;
    const std::vector<int64_t> guesses = argmax(logits).to_vector<int64_t>();
    for (size_t i = 0; i < guesses.size(); ++i) right += guesses[i] == next[i];
    return {loss, right};
  }
};

GenerationOptions translation_options(const Model& model, int64_t beams, int64_t length) {
  GenerationOptions options = generation_options(model);
  options.count = 1;
  options.sample = false;
  if (beams > 0) options.beams = beams;
  const Json json = generation_settings(model);
  if (!json.contains("max_new_tokens") && options.max_length == 0) options.max_length = 512;
  if (length > 0) options.max_length = length;
  if (options.max_length > 0) options.max_length = std::min(options.max_length, max_tokens(model));
  return options;
}

}  // namespace

std::vector<int64_t> matched_labels(const std::vector<std::string>& data, const std::vector<std::string>& model,
                                    const std::string& source) {
  std::vector<int64_t> by_name = places_by_name(data, model);
  if (all_found(by_name)) return by_name;
  std::vector<int64_t> by_number = places_by_number(data, model.size());
  if (all_found(by_number)) return by_number;
  const auto unknown = static_cast<size_t>(std::find(by_name.begin(), by_name.end(), -1) - by_name.begin());
  fail<FileError>(source, ": found the label ", in_quotes(data[unknown], 40), " among ", joined(data),
                  ", expected labels of the model: ", joined(model), ", or their numbers");
}

Evaluation evaluate_images(const Model& model, const Path& folder, const ImageData& data, const Done& done) {
  const NoGrad no_grad;
  const Labels labels = labels_of(model, folder);
  const ImageProcessor reader(folder);
  std::vector<int64_t> places = places_by_name(data.classes, labels.names());
  if (!all_found(places) && !has_label_names(labels.names())) {
    check<FileError>(data.classes.size() == labels.names().size(), data.source, ": found ", data.classes.size(), " classes, expected ",
                     labels.names().size(), " as in the model, which has no label names");
    for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i);
  }
  const auto unknown = static_cast<size_t>(std::find(places.begin(), places.end(), -1) - places.begin());
  check<FileError>(unknown == places.size(), data.source, ": found the class ",
                   unknown < places.size() ? in_quotes(data.classes[unknown], 40) : "",
                   ", expected classes of the model: ", joined(labels.names()));
  ClassScores scores(labels.names());
  std::vector<std::string> bad;  // after the first error, images are only decoded to collect all errors
  const Batches batches = batches_in_order(data.count(), kImagesPerBatch);
  // -> 1 and the logits, or 0 and the errors
  const auto run = [&](int64_t number) -> std::string {
    const std::vector<int64_t>& which = batches[static_cast<size_t>(number)];
    std::vector<Image> images(which.size());
    std::vector<std::string> faults(which.size());
    parallel_tasks(std::ssize(which), [&](int64_t b) {
      const auto place = static_cast<size_t>(b);
      try {
        images[place] = reader.prepared(data.image(which[place]));
      } catch (const FileError& error) {
        faults[place] = error.what();
      }
    });
    std::erase(faults, "");
    if (!bad.empty() || !faults.empty()) {
      std::string text = "0";
      for (const std::string& fault : faults) text += fault + '\0';
      return text;
    }
    const Tensor pixels = reader.normalized(images);
    check_image_size(model, folder, pixels);
    const Tensor logits = model({{"pixel_values", pixels}}).at("logits");
    try {
      check_finite(model, logits);
    } catch (const NonfiniteOutput& error) {
      fail<FileError>(data.source, ": image ", which[static_cast<size_t>(error.item)] + 1, " of ", data.count(), ": ", error.what());
    }
    return "1" + bytes_of_numbers(logits.to_vector<float>());
  };
  split_work(world(), std::ssize(batches), run, [&](int64_t number, const std::string& result) {
    const std::vector<int64_t>& which = batches[static_cast<size_t>(number)];
    if (result[0] == '0')
      for (size_t begin = 1, end; begin < result.size(); begin = end + 1) {
        end = result.find('\0', begin);
        bad.push_back(result.substr(begin, end - begin));
      }
    if (result[0] == '0' || !bad.empty()) return;
    std::vector<int64_t> truth;
    for (const int64_t i : which) truth.push_back(places[static_cast<size_t>(data.labels[static_cast<size_t>(i)])]);
    scores.add(numbers_in<float>(result.substr(1)), truth);
    if (done) done(std::ssize(which));
  });
  check<FileError>(bad.empty(), data.source, ": ", bad.size(), " of ", data.count(), " images cannot be read:", listed_lines(bad));
  return scores.evaluation();
}

Evaluation evaluate_labelled(const TextModel& model, const std::vector<LabelledText>& texts, const std::string& source, int64_t* cut,
                             const Done& done) {
  const Labels labels = labels_of(model.model, model.folder);
  std::vector<std::string> names;
  for (const LabelledText& each : texts) names.push_back(each.label);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const std::vector<int64_t> places = matched_labels(names, labels.names(), source);
  std::vector<Sentence> sentences;
  for (const LabelledText& each : texts) sentences.push_back({each.text, each.pair});
  const EncodedSentences encoded = encode_sentences(model, sentences);
  if (cut) *cut = encoded.cut;
  ClassScores scores(labels.names());
  const auto score_batch = [&](const TextBatch& batch) {
    std::vector<int64_t> truth;
    for (const size_t place : batch.places) {
      const auto name = std::lower_bound(names.begin(), names.end(), texts[place].label);
      truth.push_back(places[static_cast<size_t>(name - names.begin())]);
    }
    scores.add(batch.out.at("logits").to_vector<float>(), truth);
    if (done) done(std::ssize(truth));
  };
  try {
    each_batch(
        model, encoded.encodings,
        [](const TextBatch& batch) -> TensorMap {
          return {{"logits", batch.out.at("logits")}};
        },
        score_batch);
  } catch (const NonfiniteOutput& error) {
    fail<FileError>(source, ": ", in_quotes(texts[static_cast<size_t>(error.item)].text, 60), ": ", error.what());
  }
  return scores.evaluation();
}

std::vector<NamedText> read_texts(const Path& path) {
  if (!std::filesystem::is_directory(path)) return {{path.string(), read_text_or_gzip(path)}};
  std::vector<Path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && (name.ends_with(".txt") || name.ends_with(".txt.gz"))) files.push_back(entry.path());
  }
  check<FileError>(!files.empty(), path.string(), ": found no texts in the folder, expected .txt or .txt.gz files");
  std::sort(files.begin(), files.end());
  std::vector<NamedText> out;
  for (const Path& file : files) out.push_back({file.string(), read_text_or_gzip(file)});
  return out;
}

Evaluation evaluate_language(const TextModel& model, const std::vector<NamedText>& texts, int64_t length, const Done& done) {
  const NoGrad no_grad;
  check<UsageError>(length >= 1 && length <= model.max_tokens, "evaluate: windows of ", length, " tokens, expected 1 to ", model.max_tokens,
                    ", the model's limit");
  const int64_t at_once = std::max<int64_t>(std::min(kDefaultBatchTokens, kLogitsPerBatch / model.tokenizer.id_limit()) / length, 1);
  double bytes = 0, all_loss = 0, right = 0, tokens = 0;
  std::vector<Windows> windows;
  for (const NamedText& each : texts) {
    const Encoding encoding = model.tokenizer.encode(each.text);
    const auto ids = std::make_shared<const std::vector<int64_t>>(encoding.ids.begin(), encoding.ids.end());
    if (each.text.empty() || ids->size() < 2) continue;
    bytes += static_cast<double>(each.text.size() - encoding.offsets[0].end);
    const int64_t targets = std::ssize(*ids) - 1;
    for (int64_t begin = 0; begin < targets;) {
      const int64_t B = std::clamp<int64_t>((targets - begin) / length, 1, at_once), count = std::min(B * length, targets - begin);
      windows.push_back({ids, static_cast<size_t>(begin), static_cast<size_t>(count), B});
      begin += count;
    }
  }
  split_work(
      world(), std::ssize(windows), [&](int64_t i) { return bytes_of_numbers(windows[static_cast<size_t>(i)].scored(model)); },
      [&](int64_t i, const std::string& sums) {
        const std::vector<double> numbers = numbers_in<double>(sums);
        const size_t count = windows[static_cast<size_t>(i)].count;
        all_loss += numbers[0];
        right += numbers[1];
        tokens += static_cast<double>(count);
        if (done) done(static_cast<int64_t>(count));
      });
  check<FileError>(tokens > 0, texts.empty() ? "evaluate" : texts[0].name, ": found no text of two or more tokens, expected at least one");
  const double loss = all_loss / tokens;
  return {.figures = {{"loss", loss},
                      {"perplexity", std::exp(loss)},
                      {"bits_per_byte", all_loss / std::log(2.0) / std::max(bytes, 1.0)},
                      {"accuracy", right / tokens}},
          .detail = {{"tokens", static_cast<int64_t>(tokens)}, {"bytes", static_cast<int64_t>(bytes)}, {"window", length}}};
}

TranslationEvaluation evaluate_translation(const Model& model, const Path& folder, const std::vector<Translation>& pairs, int64_t beams,
                                           int64_t length, const Done& done) {
  const NoGrad no_grad;
  check(!pairs.empty(), "evaluate: found 0 pairs of sentences, expected 1 or more");
  const Tokenizer source = Tokenizer::open(folder), target = Tokenizer::open_target(folder);
  const GenerationOptions options = translation_options(model, beams, length);
  const int64_t pad = source.padding_id().value_or(static_cast<int32_t>(options.pad));
  check<FileError>(pad >= 0, folder.string(), ": found no padding token in tokenizer and config, expected one");
  std::vector<std::string> sources, references;
  for (const Translation& pair : pairs) {
    sources.push_back(pair.source);
    references.push_back(pair.target);
  }
  TranslationEvaluation out;
  const EncodeOptions encode_options{.max_length = max_tokens(model)};
  for (Translated& each : translate(model, {source, target, pad}, source.encode_all(sources, encode_options), options, done))
    out.written.push_back(std::move(each.text));
  const BleuScore score = bleu(out.written, references);
  double exact = 0;
  for (size_t i = 0; i < pairs.size(); ++i) exact += out.written[i] == references[i];
  out.evaluation = {.figures = {{"bleu", score.bleu},
                                {"chrf", chrf(out.written, references)},
                                {"exact", exact / static_cast<double>(pairs.size())},
                                {"brevity", score.brevity}},
                    .detail = {{"precisions", score.precisions}}};
  return out;
}

}  // namespace heed
