// heed predict for sentences: labels of sentences, labels of words, words for [MASK], or answers to questions.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>

#include "heed/cli/display_text.h"
#include "heed/cli/nonfinite_flag.h"
#include "heed/cli/predict_file.h"
#include "heed/models/answer.h"
#include "heed/models/architecture.h"
#include "heed/models/finite.h"
#include "heed/text/unicode.h"

namespace heed::cli {
namespace {

enum class Task { sentences, words, masks, answers };

Task task_of(const TextModel& model, const PredictOptions& options) {
  const std::string& name = model.model.architecture();
  const bool pairs = options.inputs.pairs;
  switch (model.model.traits().task) {
    case ModelTask::sequence_classification: return Task::sentences;
    case ModelTask::next_sentence:
      check<UsageError>(pairs, "predict: ", name, " classifies pairs of sentences, found single sentences; expected --pairs");
      return Task::sentences;
    case ModelTask::pretraining: return pairs ? Task::sentences : Task::masks;
    case ModelTask::masked_lm: return Task::masks;
    case ModelTask::token_classification:
      check<UsageError>(!pairs, "predict: ", name, " labels the words of single sentences, found --pairs");
      return Task::words;
    case ModelTask::question_answering: return Task::answers;
    default: break;
  }
  fail<FileError>(
      (model.folder / "config.json").string(), ": ", name,
      " has no labels to predict, expected a model for classification or masked words; heed embed computes sentence embeddings");
}

// A chunk of sentences, with their table rows if they come from a table.
struct Chunk {
  const std::vector<Sentence>& sentences;
  const std::vector<std::string>& columns;  // of the input
  const TextRows* table;
  size_t first_row;

  const TableRow* row(size_t i) const { return table ? &table->table.rows[first_row + i] : nullptr; }
  Json json(size_t i) const {
    Json out{{"text", sentences[i].text}};
    if (sentences[i].pair) out["pair"] = *sentences[i].pair;
    if (table) out["columns"] = Json(row_json(sentences[i], row(i), columns));
    return out;
  }
};

std::string shown_pair(const Sentence& sentence) {
  return sentence.pair ? display_text(sentence.text, 40) + " | " + display_text(*sentence.pair, 40) : display_text(sentence.text);
}

// Processes the input in chunks of some thousand sentences: print(chunk, encodings) computes and prints the predictions.
template <class Print>
void each_chunk(const TextModel& model, const PredictOptions& options, const Print& print) {
  SentenceOptions inputs = options.inputs;
  inputs.pairs_by_name = model.model.traits().task == ModelTask::sequence_classification;
  SentenceReader reader(inputs, "predict");
  std::vector<std::string> columns = reader.table() ? reader.table()->names() : std::vector<std::string>{"text"};
  if (!reader.table() && inputs.pairs) columns.push_back("pair");
  int64_t cut = 0;
  for (std::vector<Sentence> sentences = reader.next(); !sentences.empty(); sentences = reader.next()) {
    // Answers are found in texts of any length.
    const bool in_windows = model.model.traits().task == ModelTask::question_answering && options.max_length == 0;
    const EncodedSentences encoded =
        in_windows ? encode_sentences(model.tokenizer, sentences) : encode_sentences(model, sentences, options.max_length);
    cut += encoded.cut;
    try {
      print(Chunk{sentences, columns, reader.table(), reader.first_row()}, encoded.encodings);
    } catch (const NonfiniteOutput& error) {
      fail<FileError>("predict: ", in_quotes(sentences[static_cast<size_t>(error.item)].text, 60), ": ", error.what());
    }
  }
  print_truncated(cut, options.max_length > 0 ? std::min(options.max_length, model.max_tokens) : model.max_tokens);
}

void predict_sentences(const TextModel& model, const PredictOptions& options) {
  const Labels labels(model.model, (model.folder / "config.json").string());
  const int64_t top = options.top > 0 ? options.top : labels.kind() == Labels::Kind::one ? 1 : 5;
  SentenceCounter counter;
  std::optional<LabelTable> table;
  std::unique_ptr<LabelFile> file;
  std::optional<TextModel> f32_model;
  Agreement agreement;
  if (options.agreement)
    f32_model.emplace(
        load_text_model(model.folder, {.names = {.allow_nonfinite = nonfinite_warning(options.nonfinite)}, .weights = Weights::packed}));
  each_chunk(model, options, [&](const Chunk& chunk, std::span<const Encoding> encodings) {
    const std::vector<Sentence>& sentences = chunk.sentences;
    auto predictions = classify(model, encodings, f32_model ? 0 : top, [&](int64_t done) { counter.add(done); });
    if (f32_model) {
      const auto expected = classify(*f32_model, encodings, 0);
      for (size_t i = 0; i < predictions.size(); ++i) {
        agreement.add(predictions[i], expected[i]);
        if (std::ssize(predictions[i]) > top) predictions[i].resize(static_cast<size_t>(top), {});
      }
    }
    counter.clear();
    if (!options.output.empty()) {
      if (!file)
        file = std::make_unique<LabelFile>(options.output, chunk.columns, labels.kind(), std::min(top, std::ssize(labels.names())));
      for (size_t i = 0; i < sentences.size(); ++i) file->add(sentences[i], chunk.row(i), predictions[i]);
      return;
    }
    if (!options.json && !table) table.emplace("label", labels.names(), labels.kind(), "sentence");
    for (size_t i = 0; i < sentences.size(); ++i) {
      if (table) {
        table->add(predictions[i], shown_pair(sentences[i]));
        continue;
      }
      Json json = chunk.json(i);
      json["labels"] = cli::to_json(predictions[i]);
      print_json_line(json);
    }
  });
  if (f32_model) agreement.print();
  if (!file) return;
  file->finish();
  if (options.json) return print_json_line({{"rows", file->rows()}, {"file", options.output}});
  std::cout << options.output << ": " << file->rows() << (file->rows() == 1 ? " row\n" : " rows\n");
}

void predict_words(const TextModel& model, const PredictOptions& options) {
  SentenceCounter counter;
  each_chunk(model, options, [&](const Chunk& chunk, std::span<const Encoding> encodings) {
    const std::vector<Sentence>& sentences = chunk.sentences;
    const auto predictions = label_words(model, encodings, [&](int64_t done) { counter.add(done); });
    counter.clear();
    for (size_t i = 0; i < sentences.size(); ++i) {
      const std::string& text = sentences[i].text;
      const auto word = [&](const LabelledWord& each) { return text.substr(each.at.begin, each.at.end - each.at.begin); };
      if (options.json) {
        Json json = chunk.json(i);
        json["words"] = Json::array();
        for (const LabelledWord& each : predictions[i])
          json["words"].push_back({{"word", word(each)},
                                   {"start", each.at.begin},
                                   {"end", each.at.end},
                                   {"label", each.label.name},
                                   {"score", each.label.score}});
        print_json_line(json);
        continue;
      }
      std::cout << display_text(text) << '\n';
      int64_t widest = 0, widest_label = 0;
      for (const LabelledWord& each : predictions[i]) {
        widest = std::max(widest, text::count_chars(display_text(word(each), 30)));
        widest_label = std::max(widest_label, text::count_chars(each.label.name));
      }
      for (const LabelledWord& each : predictions[i])
        std::cout << "  " << padded(display_text(word(each), 30), widest) << "  " << padded(each.label.name, widest_label) << "  "
                  << std::setw(7) << percent(each.label.score) << '\n';
    }
  });
}

void predict_masks(const TextModel& model, const PredictOptions& options) {
  const std::optional<int32_t> mask = model.tokenizer.mask_id();
  check<FileError>(mask.has_value(), model.folder.string(), ": the tokenizer has no token [MASK] or <mask>, expected one");
  SentenceCounter counter;
  int64_t before = 0;
  std::optional<LabelTable> table;
  each_chunk(model, options, [&](const Chunk& chunk, std::span<const Encoding> encodings) {
    const std::vector<Sentence>& sentences = chunk.sentences;
    for (size_t i = 0; i < sentences.size(); ++i) {
      const std::vector<int32_t>& ids = encodings[i].ids;
      check<FileError>(std::find(ids.begin(), ids.end(), *mask) != ids.end(), "predict: sentence ", before + static_cast<int64_t>(i) + 1,
                       " has no ", model.tokenizer.token(*mask), " among its ", ids.size(), " tokens, expected one for ",
                       model.model.architecture(), " to fill");
    }
    before += std::ssize(sentences);
    const auto predictions = fill_masks(model, encodings, options.top > 0 ? options.top : 5, [&](int64_t done) { counter.add(done); });
    counter.clear();
    if (!options.json && !table) table.emplace("word        ", std::vector<std::string>(), Labels::Kind::one, "sentence");
    for (size_t i = 0; i < sentences.size(); ++i) {
      if (!table) {
        Json json = chunk.json(i);
        json["masks"] = Json::array();
        for (const FilledMask& each : predictions[i])
          json["masks"].push_back({{"start", each.at.begin}, {"end", each.at.end}, {"words", cli::to_json(each.words, "word")}});
        print_json_line(json);
        continue;
      }
      for (size_t m = 0; m < predictions[i].size(); ++m)
        table->add(predictions[i][m].words,
                   m == 0 ? shown_pair(sentences[i]) : model.tokenizer.token(*mask) + " number " + std::to_string(m + 1));
    }
  });
}

// Two arguments are a question and a text; otherwise lines have a tab between them, or a table has both columns.
SentenceOptions question_inputs(SentenceOptions inputs) {
  inputs.pairs = inputs.questions = true;
  std::vector<std::string>& texts = inputs.texts;
  if (texts.size() == 2 && texts[0].find('\t') == std::string::npos && texts[1].find('\t') == std::string::npos)
    texts = {texts[0] + '\t' + texts[1]};
  return inputs;
}

void predict_answers(const TextModel& model, PredictOptions options) {
  options.inputs = question_inputs(options.inputs);
  SentenceCounter counter;
  std::optional<LabelTable> table;
  each_chunk(model, options, [&](const Chunk& chunk, std::span<const Encoding> encodings) {
    const auto answers = find_answers(model, encodings, options.top, [&](int64_t done) { counter.add(done); });
    counter.clear();
    if (!options.json && !table) table.emplace("answer          ", std::vector<std::string>(), Labels::Kind::one, "question");
    for (size_t i = 0; i < answers.size(); ++i) {
      const std::string& text = chunk.sentences[i].pair.value();
      std::vector<Label> shown;
      Json json = chunk.json(i);
      json["answers"] = Json::array();
      for (const AnswerSpan& each : answers[i]) {
        shown.push_back({text.substr(each.at.begin, each.at.end - each.at.begin), 0, each.score});
        json["answers"].push_back({{"answer", shown.back().name}, {"start", each.at.begin}, {"end", each.at.end}, {"score", each.score}});
      }
      if (table)
        table->add(shown, display_text(chunk.sentences[i].text));
      else
        print_json_line(json);
    }
  });
}

}  // namespace

void predict_text(const PredictOptions& options, Model loaded) {
  const TextModel model = with_tokenizer(std::move(loaded), options.model);
  const Task task = task_of(model, options);
  check<UsageError>(!options.agreement || task == Task::sentences,
                    "predict: --agreement compares labels of whole sentences and images, found ", model.model.architecture());
  if (!options.output.empty()) LabelFile::check_name(options.output);
  check<UsageError>(options.output.empty() || task == Task::sentences, "predict: -o writes labels of whole sentences, found ",
                    model.model.architecture(), "; expected --json");
  switch (task) {
    case Task::sentences: return predict_sentences(model, options);
    case Task::words: return predict_words(model, options);
    case Task::masks: return predict_masks(model, options);
    case Task::answers: return predict_answers(model, options);
  }
}

}  // namespace heed::cli
