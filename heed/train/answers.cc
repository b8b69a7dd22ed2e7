// Extractive question answering (Rajpurkar et al. 2016): the first and the last token of the answer in a text.
#include <algorithm>
#include <map>
#include <numeric>

#include "heed/data/questions.h"
#include "heed/dist/split_work.h"
#include "heed/models/cost.h"
#include "heed/models/inspect.h"
#include "heed/train/answer_scores.h"
#include "heed/train/batch_order.h"
#include "heed/train/data_fingerprint.h"
#include "heed/train/labels.h"
#include "heed/train/vocabulary.h"

namespace heed {
namespace {

constexpr int64_t kAnswerEvaluationTokens = 4096, kShownAnswers = 16;

struct AnswersOptions {
  std::string data = "facts", validation_data = {}, test_data = {};
  QuestionColumns columns = {};
  VocabularyOptions vocabulary = {};
  int64_t max_length = 128, overlap = 32, limit = 0;
};

std::vector<Encoding> windows_of_question(const Question& item, const Encoding& encoding, int64_t max_length, int64_t overlap) {
  try {
    return answer_windows(encoding, max_length, overlap);
  } catch (const UsageError& error) {
    fail<UsageError>(error.what(), "; increase max_length, or shorten the question ", in_quotes(item.question, 60));
  }
}

// Windows of the texts, with the first and last token of the first answer; 0, 0 if the window does not contain it.
struct QuestionPart {
  std::vector<Question> items = {};
  std::vector<Encoding> windows = {};
  std::vector<int64_t> item_of = {}, starts = {}, ends = {};  // of every window

  int64_t count() const { return std::ssize(windows); }
};

QuestionPart windows_of(std::vector<Question> items, const Tokenizer& tokenizer, int64_t max_length, int64_t overlap) {
  QuestionPart out;
  std::vector<Sentence> pairs;
  for (const Question& item : items) pairs.push_back({item.question, item.context});
  const std::vector<Encoding> encodings = encode_sentences(tokenizer, pairs).encodings;
  for (size_t i = 0; i < items.size(); ++i)
    for (Encoding& window : windows_of_question(items[i], encodings[i], max_length, overlap)) {
      const auto [start, end] = tokens_of_answer(window, items[i].answers[0].begin, items[i].answers[0].text.size());
      out.windows.push_back(std::move(window));
      out.item_of.push_back(static_cast<int64_t>(i));
      out.starts.push_back(start);
      out.ends.push_back(end);
    }
  out.items = std::move(items);
  return out;
}

struct AnswersTask {
  QuestionPart train, validation, test;
  TaskTokenizer tokenizer;
  TrainOptions train_options;
  std::shared_ptr<Model> model;
  std::vector<int64_t> lengths;  // of the training windows
  double multiply_adds;          // per token, for windows of 64 tokens

  TensorMap inputs(const QuestionPart& part, std::span<const int64_t> which) const {
    std::vector<int64_t> starts, ends;
    for (const int64_t i : which) {
      starts.push_back(part.starts[static_cast<size_t>(i)]);
      ends.push_back(part.ends[static_cast<size_t>(i)]);
    }
    TensorMap out = text_inputs(*model, tokenizer.tokenizer, part.windows, which);
    out["start_positions"] = Tensor::from(starts, {std::ssize(which)}, kCpu);
    out["end_positions"] = Tensor::from(ends, {std::ssize(which)}, kCpu);
    return out;
  }

  StepOutput forward(const Batch& batch, ForwardOptions forward_options) const {
    forward_options.label_smoothing = train_options.label_smoothing;
    const TensorMap out = (*model)(batch.inputs, forward_options);
    return {.loss = out.at("loss"),
            .metrics = {{"start_accuracy", accuracy_of(out.at("start_logits"), batch.inputs.at("start_positions"))}},
            .multiply_adds = multiply_adds * static_cast<double>(batch.inputs.at("input_ids").count())};
  }

  struct Found {
    double loss = 0;                                  // mean over windows
    std::vector<std::vector<AnswerSpan>> spans = {};  // of every question, the best first
  };
  Found found(const QuestionPart& part) const {
    Batches batches;
    for (const std::vector<size_t>& places : batches_by_length(part.windows, kAnswerEvaluationTokens))
      batches.emplace_back(places.begin(), places.end());
    Found out{.spans = std::vector<std::vector<AnswerSpan>>(part.items.size())};
    const auto run = [&](int64_t i) {
      const TensorMap all = (*model)(inputs(part, batches[static_cast<size_t>(i)]));
      return bytes_of_tensors({{"loss", all.at("loss")}, {"starts", all.at("start_logits")}, {"ends", all.at("end_logits")}});
    };
    split_work(world(), std::ssize(batches), run, [&](int64_t i, const std::string& bytes) {
      const std::vector<int64_t>& which = batches[static_cast<size_t>(i)];
      const std::map<std::string, Tensor> tensors = tensors_in(bytes);
      out.loss += static_cast<double>(tensors.at("loss").item()) * static_cast<double>(which.size());
      const std::vector<float> starts = tensors.at("starts").to_vector<float>(), ends = tensors.at("ends").to_vector<float>();
      const size_t N = starts.size() / which.size();
      for (size_t b = 0; b < which.size(); ++b) {
        const auto window = static_cast<size_t>(which[b]);
        std::vector<AnswerSpan>& to = out.spans[static_cast<size_t>(part.item_of[window])];
        for (const AnswerSpan& each :
             answers_in(part.windows[window], std::span(starts).subspan(b * N, N), std::span(ends).subspan(b * N, N)))
          to.push_back(each);
      }
    });
    out.loss /= static_cast<double>(part.count());
    for (std::vector<AnswerSpan>& each : out.spans) each = best_of_windows(std::move(each));
    return out;
  }

  Evaluation evaluate(const QuestionPart& part) const {
    const Found answers = found(part);
    Evaluation out = answer_evaluation(part.items, answers.spans);
    out.figures.insert(out.figures.begin(), {"loss", answers.loss});
    return out;
  }

  // Attention rollout from the first token of the answer to the tokens of the window.
  std::vector<Sample> samples() const {
    const QuestionPart& part = test.count() > 0 ? test : validation;
    std::vector<Sample> out;
    for (int64_t i = 0; i < part.count() && std::ssize(out) < kShownAnswers; ++i) {
      const Question& item = part.items[static_cast<size_t>(part.item_of[static_cast<size_t>(i)])];
      if (part.ends[static_cast<size_t>(i)] == 0) continue;  // a window without the answer
      const TensorMap out_of_model = (*model)(inputs(part, std::span(&i, 1)), {.attentions = has_maps(*model)});
      const std::vector<AnswerSpan> best =
          answers_in(part.windows[static_cast<size_t>(i)], out_of_model.at("start_logits").to_vector<float>(),
                     out_of_model.at("end_logits").to_vector<float>());
      Sample sample{.truth = item.answers[0].text, .source = item.question};
      if (!best.empty())
        sample.guess = item.context.substr(best[0].at.begin, best[0].at.end - best[0].at.begin), sample.score = best[0].score;
      sample.right = exact_answer(sample.guess, item);
      for (const int32_t id : part.windows[static_cast<size_t>(i)].ids) sample.columns.push_back(tokenizer.tokenizer.display(id));
      const int64_t N = std::ssize(sample.columns);
      if (out_of_model.contains("attentions.0") && out_of_model.at("attentions.0").size(3) == N) {
        const std::vector<float> flow = rollout(out_of_model, "attentions.");
        const int64_t row = part.starts[static_cast<size_t>(i)];
        sample.map_rows = 1;
        sample.map_columns = N;
        sample.map.assign(flow.begin() + row * N, flow.begin() + (row + 1) * N);
      }
      out.push_back(std::move(sample));
    }
    return out;
  }
};

Json fingerprint_of_questions(const std::vector<Question>& items) {
  DataFingerprint fingerprint;
  for (const Question& item : items) {
    fingerprint.add(item.question);
    fingerprint.add(item.context);
    for (const Question::Answer& answer : item.answers) {
      fingerprint.add(answer.text);
      fingerprint.add(std::to_string(answer.begin));
    }
    fingerprint.next();
  }
  return fingerprint.json();
}

std::string questions_file(const AnswersOptions& options, bool test) {
  const std::string& named = test ? options.test_data : options.validation_data;
  if (!named.empty()) return named;
  if (options.data == "facts") return test ? "facts/test" : "facts/validation";
  return test ? "" : sibling_table(options.data, kValidationNames);
}

// All questions about a text are held out, or none: a text of training would make validation too easy. With a single text, some of its
// questions are held out.
std::vector<Question> hold_out_questions(std::vector<Question>& items, const TrainOptions& train_options) {
  std::map<std::string_view, int64_t> texts;
  std::vector<int64_t> text_of;
  for (const Question& item : items) text_of.push_back(texts.try_emplace(item.context, std::ssize(texts)).first->second);
  if (texts.size() == 1) std::iota(text_of.begin(), text_of.end(), 0);
  const int64_t count = texts.size() == 1 ? std::ssize(items) : std::ssize(texts);
  std::vector<bool> is_out(static_cast<size_t>(count));
  for (const int64_t i : split(count, std::max(train_options.validation, 1e-6f), train_options.seed).held_out)
    is_out[static_cast<size_t>(i)] = true;
  std::vector<Question> kept, held_out;
  for (size_t i = 0; i < items.size(); ++i) (is_out[static_cast<size_t>(text_of[i])] ? held_out : kept).push_back(items[i]);
  items = std::move(kept);
  return held_out;
}

Task make_answers_task(AnswersOptions options, const JobOptions& chosen) {
  options.data = train_table_of(options.data);
  Questions read = read_questions(options.data, options.columns);
  if (options.limit > 0 && options.limit < std::ssize(read.items)) read.items.resize(static_cast<size_t>(options.limit));
  const std::string validation = questions_file(options, false), test = questions_file(options, true);
  std::vector<Question> held_out = validation.empty() ? hold_out_questions(read.items, chosen.train_options)
                                                      : read_questions(validation, options.columns).items,
                        tested = test.empty() ? std::vector<Question>() : read_questions(test, options.columns).items;
  check<FileError>(!read.items.empty(), options.data, ": found one question, which is held out for validation; expected more");
  const Json data{{"train", fingerprint_of_questions(read.items)},
                  {"validation", fingerprint_of_questions(held_out)},
                  {"test", fingerprint_of_questions(tested)}};
  std::vector<std::string> texts;
  for (const Question& item : read.items) texts.insert(texts.end(), {item.question, item.context});
  TaskTokenizer tokenizer = tokenizer_for(chosen, options.vocabulary, texts);
  Json config = chosen.from.empty() ? model_config(chosen.model) : config_from(chosen.from, ModelTask::question_answering);
  if (chosen.from.empty()) {
    set_task(config, ModelTask::question_answering, chosen.model.preset);
    config.erase("num_labels");
    set_vocabulary(config, tokenizer.tokenizer);
  }
  const auto model = model_for(chosen, config);
  const int64_t limit = max_tokens(*model), max_length = std::min(options.max_length, limit);
  const auto windows = [&](std::vector<Question>& items) {
    return windows_of(std::move(items), tokenizer.tokenizer, max_length, options.overlap);
  };
  const int64_t length = std::min<int64_t>(64, limit);
  const auto all = std::make_shared<AnswersTask>(
      AnswersTask{.train = windows(read.items),
                  .validation = windows(held_out),
                  .test = windows(tested),
                  .tokenizer = tokenizer,
                  .train_options = chosen.train_options,
                  .model = model,
                  .lengths = {},
                  .multiply_adds =
                      static_cast<double>(cost_of(*model, {.tokens = length}).total.training_multiply_adds) / static_cast<double>(length)});
  for (const Encoding& window : all->train.windows) all->lengths.push_back(window.size());
  Task task{.name = "answers", .model = model, .metric = "f1"};
  if (!read.columns.empty()) task.notes.push_back(read.columns);
  if (read.without_answer > 0) task.notes.push_back(std::to_string(read.without_answer) + " questions without an answer are left out");
  task.counts = {{"train", all->train.count()}, {"validation", all->validation.count()}, {"test", all->test.count()}};
  task.data = data;
  task.batches = [all](int64_t epoch) {
    return length_bucketed_batches(all->lengths, all->train_options.batch, all->train_options.seed, epoch);
  };
  task.batch = [all](int64_t, const std::vector<int64_t>& which) {
    return Batch{.inputs = all->inputs(all->train, which), .samples = std::ssize(which)};
  };
  task.forward = [all](const Batch& batch, const ForwardOptions& forward_options) { return all->forward(batch, forward_options); };
  task.evaluate = [all] { return all->evaluate(all->validation); };
  if (all->test.count() > 0) task.test = [all] { return all->evaluate(all->test); };
  task.samples = [all] { return all->samples(); };
  const int64_t first = 0;
  task.tracked = tracked_text(all->inputs(all->validation, std::span(&first, 1)), all->tokenizer.tokenizer);
  task.save_preprocessing = [all](const Path& folder) { all->tokenizer.save(folder); };
  return task;
}

}  // namespace

TaskKind answers_kind() {
  return {.name = "answers",
          .summary = "Questions answered by a part of a text, with a BERT encoder",
          .preset = "bert-mini",
          .families = {"bert"},
          .examples = {"data=facts epochs=5", "data=squad/train-v1.1.json validation_data=squad/dev-v1.1.json from=bert-base rate=3e-5",
                       "data=faq.csv question_column=question context_column=page answer_column=answer"},
          .declare = [](Settings& settings) {
            const auto options = std::make_shared<AnswersOptions>();
            const Allowed file{.path = true, .synthetic = {"facts"}};
            settings.heading("Questions");
            settings.add("data", options->data,
                         "A .json file in SQuAD format or a .tsv, .csv or .jsonl file of questions, contexts and answers, also .gz; facts: "
                         "synthetic",
                         file);
            settings.add("validation_data", options->validation_data,
                         "Validation data; empty: dev.* next to train.*, or a fraction of data", file);
            settings.add("test_data", options->test_data, "Test data", file);
            settings.add("question_column", options->columns.question, "Name or number of the question column; empty: detected");
            settings.add("context_column", options->columns.context, "Name or number of the column of texts; empty: detected");
            settings.add("answer_column", options->columns.answer, "Name or number of the answer column; empty: detected");
            settings.add("limit", options->limit, "Train on this many questions; 0: all", {.least = 0});
            settings.add("max_length", options->max_length, "Maximum tokens of a question with its text; longer texts are cut into windows",
                         {.least = 16, .most = 1e6});
            settings.add("overlap", options->overlap, "Tokens that two windows of a text share", {.least = 0, .most = 1e6});
            declare(settings, options->vocabulary);
            return [options](const JobOptions& chosen) { return make_answers_task(*options, chosen); };
          }};
}

}  // namespace heed
