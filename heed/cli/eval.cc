// heed eval: evaluates a model on data. The model determines the kind of data: images, labelled sentences, text or translations.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include "heed/cli/eval_captions.h"
#include "heed/cli/eval_run.h"
#include "heed/cli/image_size_flag.h"
#include "heed/cli/int8_flag.h"
#include "heed/cli/model_name.h"
#include "heed/cli/nonfinite_flag.h"
#include "heed/cli/parts_file.h"
#include "heed/cli/print_evaluation.h"
#include "heed/cli/print_json.h"
#include "heed/cli/run_columns.h"
#include "heed/cli/sentence_reader.h"
#include "heed/core/parse.h"
#include "heed/dist/group.h"
#include "heed/io/paths.h"
#include "heed/models/architecture.h"
#include "heed/train/answer_scores.h"
#include "heed/train/evaluate.h"
#include "heed/train/model_folder.h"
#include "heed/train/translate_data.h"

namespace heed::cli {
namespace {

constexpr int64_t kLongestWindow = 512, kLongestSample = 128;

struct EvalFlags {
  bool nonfinite = false;
  std::string model, data, part, out, parts;
  std::string typed = {};   // the MODEL argument as typed, possibly a run
  std::string folder = {};  // of the model as it is loaded: not `model` with --image
  TextColumns columns = {};
  LanguageCodes languages = {};            // of a folder of parallel text
  DataSettings other = {};                 // columns of captions and questions
  std::vector<std::string> settings = {};  // text_column=review and so on
  std::optional<int64_t> length, beams;
  std::optional<uint64_t> seed;
  bool json = false, confusion = false, int8 = false;
  ImageSizeFlag image = {};
};

struct EvalResult {
  Evaluation evaluation = {};
  std::string what = {};  // a description such as "1000 images, test"
  ChosenColumns columns = {};
  std::string columns_text = {};  // of captions and questions
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
                                                           {"source=", !options.languages.source.empty()},
                                                           {"target=", !options.languages.target.empty()},
                                                           {"-o", !options.out.empty()},
                                                           {"--confusion", options.confusion}};
  for (const auto& [flag, is_given] : given)
    check<UsageError>(!is_given || std::find(accepted.begin(), accepted.end(), flag) != accepted.end(), "eval: found ", flag,
                      ", which does not apply to ", what);
}

const std::vector<std::pair<std::string, DataPart>> kPartNames = {
    {"test", DataPart::test}, {"validation", DataPart::validation}, {"train", DataPart::train}};

EvalResult eval_images(const EvalFlags& options, const Model& model, const Done& done) {
  refuse_other_flags(options, model.architecture(), {"--part", "--confusion"});
  for (const auto& [name, part] : kPartNames) {
    if (!options.part.empty() && name != options.part) continue;
    const ImageData data = read_images(options.data, part);
    if (data.count() == 0) continue;
    for (const std::string& note : data.notes) std::cerr << "heed: " << note << '\n';
    return {evaluate_images(model, options.folder, data, done), std::to_string(data.count()) + " images, " + name};
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
  refuse_other_flags(options, model.architecture(),
                     {"--length", "--beams", "-o", "--source-column", "--target-column", "--part", "source=", "target="});
  check<UsageError>(options.part.empty() || std::filesystem::is_directory(options.data),
                    "eval: found --part, expected it with a folder of parallel text");
  const auto part = std::find_if(kPartNames.begin(), kPartNames.end(), [&](const auto& each) { return each.first == options.part; });
  ChosenColumns columns;
  const std::vector<Translation> pairs = read_translation_data(options.data, part == kPartNames.end() ? DataPart::test : part->second,
                                                               options.columns, options.languages, &columns);
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

EvalResult eval_on_captions(const EvalFlags& options, const Model& model, const Done& done) {
  refuse_other_flags(options, model.architecture(), {"--part"});
  CaptionEvaluation found = evaluate_on_captions(model, options.model, options.data, options.part, options.other, done);
  return {.evaluation = std::move(found.evaluation), .what = found.what, .columns_text = found.columns};
}

EvalResult eval_answers(const EvalFlags& options, Model loaded, const Done& done) {
  refuse_other_flags(options, loaded.architecture(), {});
  const TextModel model = with_tokenizer(std::move(loaded), options.model);
  const Questions questions = read_questions(options.data, options.other.questions);
  return {.evaluation = evaluate_answers(model, questions.items, done),
          .what = std::to_string(questions.items.size()) + " questions",
          .columns_text = questions.columns};
}

// Without DATA: evaluates on the data of the run.
EvalResult eval_run(EvalFlags& options) {
  check<FileError>(path_exists(options.typed), options.typed, ": there is no such folder, expected a model or a run");
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
      load(options.folder, {.names = {.allow_nonfinite = nonfinite_warning(options.nonfinite)}, .weights = weights_for(options.int8)});
  switch (model.traits().task) {
    case ModelTask::image_classification: return eval_images(options, model, done);
    case ModelTask::sequence_classification: return eval_labelled(options, std::move(model), done);
    case ModelTask::pretraining:
    case ModelTask::masked_lm:
    case ModelTask::next_sentence: return eval_pretraining(options, std::move(model), done);
    case ModelTask::causal_lm: return eval_language(options, std::move(model), done);
    case ModelTask::seq2seq_lm: return eval_translation(options, model, done);
    case ModelTask::image_text_matching:
    case ModelTask::image_captioning: return eval_on_captions(options, model, done);
    case ModelTask::question_answering: return eval_answers(options, std::move(model), done);
    default: break;
  }
  fail<FileError>((Path(options.model) / "config.json").string(), ": found ", model.architecture(),
                  ", expected a model for image or sentence classification, masked or causal language modelling, translation, captions or ",
                  "answers");
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
  std::cout << result.what << '\n';
  if (!result.columns.empty()) std::cout << columns_text(options.data, result.columns) << '\n';
  if (!result.columns_text.empty()) std::cout << result.columns_text << '\n';
  print_metrics(found.figures);
  if (found.detail.contains("per_class")) print_classes(found.detail);
  if (options.confusion) print_confusion(found.detail);
}

// data: a path, or two with a comma between them
std::vector<Path> paths_in(const std::string& data) {
  const size_t comma = data.find(',');
  return comma == data.npos ? std::vector<Path>{data} : std::vector<Path>{data.substr(0, comma), data.substr(comma + 1)};
}

// The first argument after MODEL is parsed as DATA: exchanges it with DATA if it is a setting.
void take_data_first(EvalFlags& options) {
  std::vector<std::string>& rest = options.settings;
  const auto is_data = [](const std::string& argument) { return !parse_key_value(argument) || path_exists(argument); };
  if (options.data.empty() || is_data(options.data)) return;
  const auto data = std::find_if(rest.begin(), rest.end(), is_data);
  check<UsageError>(data != rest.end(), "eval: found ", in_quotes(options.data), " without DATA, expected both; a run without DATA is ",
                    "evaluated on its own data, with the run's settings");
  std::swap(options.data, *data);
}

const Command eval_command("eval", "Evaluate a model on data", [](Flags& flags) {
  auto options = std::make_shared<EvalFlags>();
  flags.option("model", options->model, "Folder of a model or of a run").value("MODEL").required();
  flags.option("data", options->data, "Data to evaluate on, see below; for a run, by default the run's own data").value("DATA");
  flags.option("--part", options->part, "Part of images or of a run's data: test, validation or train; by default the first that exists")
      .value("PART")
      .must_be(one_of({"test", "validation", "train"}));
  flags
      .option("settings", options->settings,
              "Columns of a table as in heed train: text_column=review; languages of a folder: source=en target=de; of a run, by default "
              "as in the run")
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
  flags.option(kOutputFlag, options->out, "Write the translations to FILE, one per line").value("FILE");
  flags.flag("--confusion", options->confusion, "Print the confusion matrix");
  flags.flag("--json", options->json, "One JSON object, with all details");
  add_parts_flag(flags, options->parts);
  options->image.add_to(flags);
  add_int8_flag(flags, options->int8);
  add_nonfinite_flag(flags, options->nonfinite);
  flags.footer(
      "DATA depends on the model:\n"
      "  images                   a folder as for heed train classify, or shapes\n"
      "  labelled sentences, pairs\n"
      "                           a .tsv, .csv or .jsonl file, opinions/test or entailment/test\n"
      "  language models, masked words, next sentences\n"
      "                           a text file or a folder of them\n"
      "  translations             a .tsv, .csv or .jsonl file of pairs, two files separated by a comma, a folder with test.en,\n"
      "                           test.de, ..., or numbers, numbers:german:french\n"
      "  captions, CLIP           a table of images and captions, or scenes\n"
      "  questions                a .json file in SQuAD format, a table of questions, contexts and answers, or facts/test\n"
      "Columns of tables are found by name, or set as in heed train: text_column=review. A run remembers those that it was trained with.\n"
      "Classes are matched by name; labels of sentences also by number: 1 is the model's label 1.\n"
      "A run without DATA is evaluated on its own data: on the test part or, with --part validation, on the examples held out from\n"
      "training.\n\nExamples:\n"
      "  heed eval runs/classify/001\n  heed eval runs/classify/001 --part validation\n"
      "  heed eval runs/classify/001 cifar10 --confusion\n  heed eval sentiment dev.tsv text_column=sentence label_column=label\n"
      "  heed eval gpt2 wikitext-test.txt --length 1024\n  heed eval opus-mt-en-de test.en,test.de --beams 4 -o written.de --json\n"
      "  heed eval runs/translate/001 multi30k source=en target=de --part validation");
  return [options] {
    options->typed = options->model;
    options->model = resolve_model(options->model);
    take_data_first(*options);
    take_data_settings("eval", options->settings, options->columns, options->languages, options->other);
    add_data_settings_of_run(options->model, options->data, options->columns, options->languages, options->other);
    check<UsageError>(options->image.size.empty() || !options->data.empty(), "eval: found --image without DATA, expected both");
    options->folder = options->image.folder_for("eval", options->model, options->nonfinite);
    const std::unique_ptr<PartsFile> parts = parts_file(options->parts, options->model);  // not the folder, which --image makes anew
    if (parts) parts->check_same("data", contents_of(paths_in(options->data)));
    run_eval(*options);
    if (parts) parts->remove();
  };
});

}  // namespace
}  // namespace heed::cli
