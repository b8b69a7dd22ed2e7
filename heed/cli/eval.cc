// heed eval: evaluates a model on data. The model determines the kind of data: images, labelled sentences, text or translations.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

#include "heed/cli/eval_run.h"
#include "heed/cli/int8_flag.h"
#include "heed/cli/model_name.h"
#include "heed/cli/nonfinite_flag.h"
#include "heed/cli/print_json.h"
#include "heed/cli/sentence_reader.h"
#include "heed/dist/group.h"
#include "heed/text/unicode.h"
#include "heed/train/evaluate.h"
#include "heed/train/model_folder.h"
#include "heed/train/translate_data.h"

namespace heed::cli {
namespace {

constexpr int64_t kLongestWindow = 512, kLongestSample = 128;
constexpr size_t kMaxShownClassWidth = 32, kShownClasses = 200;

struct EvalFlags {
  bool nonfinite = false;
  std::string model, data, part, out;
  std::string typed = {};  // the MODEL argument as typed, possibly a run
  TextColumns columns = {};
  std::vector<std::string> settings = {};  // text_column=review and so on
  std::optional<int64_t> length, beams;
  std::optional<uint64_t> seed;
  bool json = false, confusion = false, int8 = false;
};

struct EvalResult {
  Evaluation evaluation = {};
  std::string what = {};  // a description such as "1000 images, test"
  ChosenColumns columns = {};
};

// Throws if a flag is given that is not in `accepted`. what: describes the model in the error
void refuse_other_flags(const EvalFlags& options, const std::string& what, const std::vector<std::string>& accepted) {
  const std::vector<std::pair<std::string, bool>> given = {{"--part", !options.part.empty()},
                                                           {"--text-column", !options.columns.text.empty()},
                                                           {"--pair-column", !options.columns.pair.empty()},
                                                           {"--label-column", !options.columns.label.empty()},
                                                           {"--source-column", !options.columns.source.empty()},
                                                           {"--target-column", !options.columns.target.empty()},
                                                           {"--length", options.length.has_value()},
                                                           {"--beams", options.beams.has_value()},
                                                           {"--seed", options.seed.has_value()},
                                                           {"-o", !options.out.empty()},
                                                           {"--confusion", options.confusion}};
  for (const auto& [flag, is_given] : given)
    check<UsageError>(!is_given || std::find(accepted.begin(), accepted.end(), flag) != accepted.end(), "eval: found ", flag,
                      ", which does not apply to ", what);
}

EvalResult eval_images(const EvalFlags& options, const Model& model, const Done& done) {
  refuse_other_flags(options, model.architecture(), {"--part", "--confusion"});
  const std::vector<std::pair<std::string, DataPart>> parts = {
      {"test", DataPart::test}, {"validation", DataPart::validation}, {"train", DataPart::train}};
  for (const auto& [name, part] : parts) {
    if (!options.part.empty() && name != options.part) continue;
    const ImageData data = read_images(options.data, part);
    if (data.count() == 0) continue;
    for (const std::string& note : data.notes) std::cerr << "heed: " << note << '\n';
    return {evaluate_images(model, options.model, data, done), std::to_string(data.count()) + " images, " + name};
  }
  fail<FileError>(options.data, ": found no images", options.part.empty() ? "" : " in the part " + options.part, ", expected at least one");
}

EvalResult eval_labelled(const EvalFlags& options, Model loaded, const Done& done) {
  refuse_other_flags(options, loaded.architecture(), {"--text-column", "--pair-column", "--label-column", "--confusion"});
  const TextModel model = with_tokenizer(std::move(loaded), options.model);
  ChosenColumns columns;
  const std::vector<LabelledText> texts = read_labelled(options.data, options.columns, &columns);
  check<FileError>(!texts.empty(), options.data, ": found no labelled sentences, expected at least one");
  int64_t cut = 0;
  EvalResult out{evaluate_labelled(model, texts, options.data, &cut, done),
                 std::to_string(texts.size()) + (texts[0].pair ? " pairs of sentences" : " sentences"), columns};
  print_truncated(cut, model.max_tokens);
  return out;
}

EvalResult eval_language(const EvalFlags& options, Model loaded, const Done& done) {
  refuse_other_flags(options, loaded.architecture(), {"--length"});
  const TextModel model = with_tokenizer(std::move(loaded), options.model);
  const int64_t length = options.length.value_or(std::min(model.max_tokens, kLongestWindow));
  const Evaluation found = evaluate_language(model, read_texts(options.data), length, done);
  return {found, std::to_string(found.detail.at("tokens").get<int64_t>()) + " tokens of " +
                     std::to_string(found.detail.at("bytes").get<int64_t>()) + " bytes, in windows of " + std::to_string(length)};
}

EvalResult eval_translation(const EvalFlags& options, const Model& model, const Done& done) {
  refuse_other_flags(options, model.architecture(), {"--length", "--beams", "-o", "--source-column", "--target-column"});
  ChosenColumns columns;
  const std::vector<Translation> pairs = read_translation_data(options.data, DataPart::test, options.columns, {}, &columns);
  check<FileError>(!pairs.empty(), options.data, ": found no pairs of sentences, expected at least one");
  auto found = evaluate_translation(model, options.model, pairs, options.beams.value_or(0), options.length.value_or(0), done);
  if (!options.out.empty()) {
    std::string lines;
    for (const std::string& line : found.written) lines += line + '\n';
    if (world().is_first()) write_text(options.out, lines);
  }
  return {std::move(found.evaluation), std::to_string(pairs.size()) + " translations", columns};
}

EvalResult eval_pretraining(const EvalFlags& options, Model loaded, const Done& done) {
  refuse_other_flags(options, loaded.architecture(), {"--length", "--seed"});
  const TextModel model = with_tokenizer(std::move(loaded), options.model);
  const int64_t length = options.length.value_or(std::min(model.max_tokens, kLongestSample));
  const Evaluation found =
      evaluate_pretraining(model, read_evaluation_documents(options.data), options.data, length, options.seed.value_or(1), done);
  return {found, std::to_string(found.detail.at("samples").get<int64_t>()) + " samples of at most " + std::to_string(length) + " tokens"};
}

bool generates_text(const Model& model) {
  try {
    model.decoder();
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Without DATA: evaluates on the data of the run.
EvalResult eval_run(EvalFlags& options) {
  const Path run = run_of_model(options.typed);
  check<UsageError>(!run.empty(), "eval: found no DATA, expected data for ", options.typed,
                    "; only a run has data of its own: heed eval runs/classify/001");
  refuse_other_flags(options, "a run evaluated on its own data", {"--part", "--confusion"});
  RunEvaluation result = evaluate_on_run_data(run, options.model, options.part, options.int8);
  options.data = result.data;
  return {std::move(result.evaluation), std::move(result.what)};
}

EvalResult eval_model(EvalFlags& options, const Done& done) {
  if (options.data.empty()) return eval_run(options);
  Model model =
      load(options.model, {.names = {.allow_nonfinite = nonfinite_warning(options.nonfinite)}, .weights = weights_for(options.int8)});
  const std::string& name = model.architecture();
  if (name.find("ForImageClassification") != std::string::npos) return eval_images(options, model, done);
  if (name.ends_with("ForSequenceClassification")) return eval_labelled(options, std::move(model), done);
  const auto is_for = [&](const char* head) { return name.ends_with(head); };
  if (is_for("ForPreTraining") || is_for("ForMaskedLM") || is_for("ForNextSentencePrediction"))
    return eval_pretraining(options, std::move(model), done);
  check<FileError>(generates_text(model), (Path(options.model) / "config.json").string(), ": found ", name,
                   ", expected a model for image or sentence classification, masked or causal language modelling, or translation");
  return model.decoder().encoder ? eval_translation(options, model, done) : eval_language(options, std::move(model), done);
}

std::string fixed(double value, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value;
  return text.str();
}

std::string readable(const std::string& name, double value) {
  if (name.ends_with("accuracy") || name == "top5" || name == "exact") return fixed(100 * value, 2) + '%';
  return fixed(value, name == "bleu" || name == "chrf" || name == "perplexity" ? 2 : 4);
}

void print_metrics(const EvalFlags& options, const EvalResult& result) {
  std::cout << result.what << '\n';
  if (!result.columns.empty()) std::cout << columns_text(options.data, result.columns) << '\n';
  for (const auto& [name, value] : result.evaluation.figures) {
    std::string label = name;
    std::replace(label.begin(), label.end(), '_', ' ');
    std::cout << padded(label, 18) << std::setw(10) << readable(name, value) << '\n';
  }
}

int64_t widest_of(const Json& names, size_t count) {
  int64_t widest = 5;
  for (size_t i = 0; i < count; ++i)
    widest = std::max(widest, text::count_chars(display_text(names[i].get<std::string>(), kMaxShownClassWidth)));
  return widest;
}

// Prints at most kShownClasses classes; --json has more.
void print_classes(const Json& detail) {
  Json names = Json::array();
  for (const Json& each : detail.at("per_class")) names.push_back(each.at("class"));
  const size_t count = std::min(names.size(), kShownClasses);
  const int64_t widest = widest_of(names, count);
  std::cout << '\n' << padded("class", widest) << "  precision  recall      f1   count\n";
  for (size_t i = 0; i < count; ++i) {
    const Json& each = detail.at("per_class")[i];
    std::cout << padded(display_text(each.at("class").get<std::string>(), kMaxShownClassWidth), widest) << std::setw(11)
              << fixed(each.at("precision").get<double>(), 4) << std::setw(8) << fixed(each.at("recall").get<double>(), 4) << std::setw(8)
              << fixed(each.at("f1").get<double>(), 4) << std::setw(8) << each.at("count").get<int64_t>() << '\n';
  }
  const auto all = detail.at("class_count").get<size_t>();
  if (count < all) std::cout << "... and " << all - count << " more classes; --json lists " << names.size() << " of them\n";
}

// For many classes, instead of a confusion matrix that would not fit a screen.
void print_mistakes(const Json& detail) {
  std::cout << "\ncount  truth -> guess\n";
  for (const Json& each : detail.at("most_confused"))
    std::cout << std::setw(5) << each.at("count").get<int64_t>() << "  "
              << display_text(each.at("truth").get<std::string>(), kMaxShownClassWidth) << " -> "
              << display_text(each.at("guess").get<std::string>(), kMaxShownClassWidth) << '\n';
}

void print_confusion(const Json& detail) {
  if (!detail.contains("confusion")) return print_mistakes(detail);
  const Json& classes = detail.at("classes");
  const int64_t name_width = std::max<int64_t>(widest_of(classes, classes.size()) + 5, 13);
  size_t column = std::to_string(classes.size()).size();
  for (const Json& row : detail.at("confusion"))
    for (const Json& count : row) column = std::max(column, std::to_string(count.get<int64_t>()).size());
  const int width = static_cast<int>(column) + 2;
  std::cout << '\n' << padded("truth \\ guess", name_width);
  for (size_t i = 0; i < classes.size(); ++i) std::cout << std::setw(width) << i;
  std::cout << '\n';
  for (size_t i = 0; i < classes.size(); ++i) {
    std::cout << padded(std::to_string(i) + ' ' + display_text(classes[i].get<std::string>(), kMaxShownClassWidth), name_width);
    for (const Json& count : detail.at("confusion")[i]) std::cout << std::setw(width) << count.get<int64_t>();
    std::cout << '\n';
  }
}

void run_eval(EvalFlags& options) {
  const EvalResult result = [&] {
    SentenceCounter counter;
    return eval_model(options, [&](int64_t more) { counter.add(more); });
  }();
  const Evaluation& found = result.evaluation;
  for (const auto& [name, value] : found.figures)
    check<FileError>(std::isfinite(value), "eval: ", name, " is ", value, ": the outputs of ", options.model, " for ", options.data,
                     " are NaN or infinite");
  if (options.json) {
    Json figures = Json::object();
    for (const auto& [name, value] : found.figures) figures[name] = value;
    Json json{{"model", options.model}, {"data", options.data}, {"what", result.what}, {"figures", figures}, {"detail", found.detail}};
    for (const ChosenColumn& each : result.columns) json["columns"][each.setting] = each.word();
    print_json_line(json);
    return;
  }
  check<UsageError>(!options.confusion || found.detail.contains("per_class"), "eval: found --confusion, expected a model with classes");
  print_metrics(options, result);
  if (found.detail.contains("per_class")) print_classes(found.detail);
  if (options.confusion) print_confusion(found.detail);
}

const Command eval_command("eval", "Evaluate a model on data", [](Flags& flags) {
  auto options = std::make_shared<EvalFlags>();
  flags.option("model", options->model, "Folder of a model or of a run").value("MODEL").required();
  flags.option("data", options->data, "Data to evaluate on, see below; for a run, by default the run's own data").value("DATA");
  flags.option("--part", options->part, "Of images, and of a run's own data: test, validation or train; by default the first that exists")
      .value("PART")
      .must_be(one_of({"test", "validation", "train"}));
  flags.option("settings", options->settings, "Columns of a table as in heed train: text_column=review")
      .usage("[COLUMN=NAME ...]")
      .many()
      .one_value();
  add_column_flags(flags, options->columns, {"text_column", "pair_column", "label_column"}, true);
  add_column_flags(flags, options->columns, {"source_column", "target_column"});
  flags
      .option("--length", options->length,
              "Tokens per window (by default the model's maximum, at most 512; for masked words 128), or per translation")
      .value("N")
      .must_be(positive());
  flags.option("--beams", options->beams, "Beams of a translation; by default as in generation_config.json, or 1")
      .value("N")
      .must_be(whole_within(1, 256));
  flags.option("--seed", options->seed, "Seed of masks and next sentences; 1").value("N");
  flags.option("-o,--out", options->out, "Write the translations to FILE, one per line").value("FILE");
  flags.flag("--confusion", options->confusion, "Print the confusion matrix");
  flags.flag("--json", options->json, "One JSON object, with all details");
  add_int8_flag(flags, options->int8);
  add_nonfinite_flag(flags, options->nonfinite);
  flags.footer(
      "DATA depends on the model. Images: a folder as for heed train classify, or shapes. Labelled sentences and pairs: a .tsv, .csv\n"
      "or .jsonl file, or opinions/test or entailment/test. Language models, masked words and next sentences: a text file or a folder\n"
      "of them. Translations: a .tsv, .csv or .jsonl file of pairs, two files separated by a comma, or numbers,\n"
      "numbers:german:french. Columns of tables are found by name, or set as in heed train: text_column=review.\n"
      "Classes are matched by name; labels of sentences also by number: 1 is the model's label 1.\n"
      "A run without DATA is evaluated on the data it was trained on: on the test part or, with --part validation, on the examples\n"
      "held out from training.\n\nExamples:\n"
      "  heed eval runs/classify/001\n  heed eval runs/classify/001 --part validation\n"
      "  heed eval runs/classify/001 cifar10 --confusion\n  heed eval sentiment dev.tsv text_column=sentence label_column=label\n"
      "  heed eval gpt2 wikitext-test.txt --length 1024\n  heed eval opus-mt-en-de test.en,test.de --beams 4 -o written.de --json");
  return [options] {
    options->typed = options->model;
    options->model = resolve_model(options->model);
    take_column_settings(options->settings, options->columns);
    check<UsageError>(options->settings.empty(), "eval: found ", options->settings.empty() ? "" : in_quotes(options->settings[0]),
                      ", expected text_column=NAME, pair_column=NAME, label_column=NAME, source_column=NAME or target_column=NAME");
    run_eval(*options);
  };
});

}  // namespace
}  // namespace heed::cli
