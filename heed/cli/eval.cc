// heed eval: how good a model is on data. The model says what the data must be: pictures, labelled sentences, text or translations.
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
#include "heed/cli/sentences.h"
#include "heed/text/unicode.h"
#include "heed/train/evaluate.h"
#include "heed/train/model_folder.h"
#include "heed/train/translate_data.h"

namespace heed::cli {
namespace {

constexpr int64_t kLongestWindow = 512, kLongestSample = 128;
constexpr size_t kWidestClass = 32, kShownClasses = 200;

struct EvalFlags {
  bool nonfinite = false;
  std::string model, data, part, out;
  std::string typed = {};  // model as it was typed: perhaps a run
  TextColumns columns = {};
  std::vector<std::string> words = {};  // text_column=review and the like
  std::optional<int64_t> length, beams;
  std::optional<uint64_t> seed;
  bool json = false, confusion = false, int8 = false;
};

struct Judged {
  Evaluation evaluation = {};
  std::string what = {};  // "1000 pictures, test", for people
  ChosenColumns columns = {};
};

// Flags that are for other models than this one.
void refuse_others(const EvalFlags& options, const std::string& what, const std::vector<std::string>& mine) {
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
  for (const auto& [flag, there] : given)
    check<UsageError>(!there || std::find(mine.begin(), mine.end(), flag) != mine.end(), "eval: found ", flag, ", which is not for ", what);
}

Judged judge_pictures(const EvalFlags& options, const Model& model, const Done& done) {
  refuse_others(options, model.architecture(), {"--part", "--confusion"});
  const std::vector<std::pair<std::string, DataPart>> parts = {
      {"test", DataPart::test}, {"validation", DataPart::validation}, {"train", DataPart::train}};
  for (const auto& [name, part] : parts) {
    if (!options.part.empty() && name != options.part) continue;
    const PictureData data = read_pictures(options.data, part);
    if (data.count() == 0) continue;
    for (const std::string& note : data.notes) std::cerr << "heed: " << note << '\n';
    return {evaluate_pictures(model, options.model, data, done), std::to_string(data.count()) + " pictures, " + name};
  }
  fail<FileError>(options.data, ": found no pictures", options.part.empty() ? "" : " in the part " + options.part, ", expected some");
}

Judged judge_labelled(const EvalFlags& options, Model loaded, const Done& done) {
  refuse_others(options, loaded.architecture(), {"--text-column", "--pair-column", "--label-column", "--confusion"});
  const TextModel model = with_tokenizer(std::move(loaded), options.model);
  ChosenColumns columns;
  const std::vector<LabelledText> texts = read_labelled(options.data, options.columns, &columns);
  check<FileError>(!texts.empty(), options.data, ": found no labelled sentences, expected some");
  int64_t cut = 0;
  Judged out{evaluate_labelled(model, texts, options.data, &cut, done),
             std::to_string(texts.size()) + (texts[0].pair ? " pairs of sentences" : " sentences"), columns};
  tell_cut(cut, model.most_tokens);
  return out;
}

Judged judge_language(const EvalFlags& options, Model loaded, const Done& done) {
  refuse_others(options, loaded.architecture(), {"--length"});
  const TextModel model = with_tokenizer(std::move(loaded), options.model);
  const int64_t length = options.length.value_or(std::min(model.most_tokens, kLongestWindow));
  const Evaluation found = evaluate_language(model, read_texts(options.data), length, done);
  return {found, std::to_string(found.detail.at("tokens").get<int64_t>()) + " tokens of " +
                     std::to_string(found.detail.at("bytes").get<int64_t>()) + " bytes, in windows of " + std::to_string(length)};
}

Judged judge_translation(const EvalFlags& options, const Model& model, const Done& done) {
  refuse_others(options, model.architecture(), {"--length", "--beams", "-o", "--source-column", "--target-column"});
  ChosenColumns columns;
  const std::vector<Translation> pairs = read_translation_data(options.data, DataPart::test, options.columns, {}, &columns);
  check<FileError>(!pairs.empty(), options.data, ": found no pairs of sentences, expected some");
  TranslatedSet found = evaluate_translation(model, options.model, pairs, options.beams.value_or(0), options.length.value_or(0), done);
  if (!options.out.empty()) {
    std::string lines;
    for (const std::string& line : found.written) lines += line + '\n';
    write_text(options.out, lines);
  }
  return {std::move(found.evaluation), std::to_string(pairs.size()) + " translations", columns};
}

Judged judge_pretraining(const EvalFlags& options, Model loaded, const Done& done) {
  refuse_others(options, loaded.architecture(), {"--length", "--seed"});
  const TextModel model = with_tokenizer(std::move(loaded), options.model);
  const int64_t length = options.length.value_or(std::min(model.most_tokens, kLongestSample));
  const Evaluation found =
      evaluate_pretraining(model, read_judged_documents(options.data), options.data, length, options.seed.value_or(1), done);
  return {found, std::to_string(found.detail.at("samples").get<int64_t>()) + " samples of at most " + std::to_string(length) + " tokens"};
}

bool writes(const Model& model) {
  try {
    model.decoder();
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Without DATA: by those of the run.
Judged judge_run(EvalFlags& options) {
  const Path run = run_of_model(options.typed);
  check<UsageError>(!run.empty(), "eval: found no DATA, expected what to judge ", options.typed,
                    " by; only the folder of a run brings its own: heed eval runs/classify/001");
  refuse_others(options, "a run judged by its own data", {"--part", "--confusion"});
  JudgedRun judged = judge_by_run(run, options.model, options.part, options.int8);
  options.data = judged.data;
  return {std::move(judged.evaluation), std::move(judged.what)};
}

Judged judge(EvalFlags& options, const Done& done) {
  if (options.data.empty()) return judge_run(options);
  Model model =
      load(options.model, {.names = {.allow_nonfinite = nonfinite_warning(options.nonfinite)}, .weights = weights_for(options.int8)});
  const std::string& name = model.architecture();
  if (name.find("ForImageClassification") != std::string::npos) return judge_pictures(options, model, done);
  if (name.ends_with("ForSequenceClassification")) return judge_labelled(options, std::move(model), done);
  const auto is_for = [&](const char* head) { return name.ends_with(head); };
  if (is_for("ForPreTraining") || is_for("ForMaskedLM") || is_for("ForNextSentencePrediction"))
    return judge_pretraining(options, std::move(model), done);
  check<FileError>(
      writes(model), (Path(options.model) / "config.json").string(), ": found ", name,
      ", expected a model for classes of pictures or sentences, for masked words or next sentences, for language, or for translation");
  return model.decoder().encoder ? judge_translation(options, model, done) : judge_language(options, std::move(model), done);
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

void print_figures(const EvalFlags& options, const Judged& judged) {
  std::cout << judged.what << '\n';
  if (!judged.columns.empty()) std::cout << columns_text(options.data, judged.columns) << '\n';
  for (const auto& [name, value] : judged.evaluation.figures) {
    std::string words = name;
    std::replace(words.begin(), words.end(), '_', ' ');
    std::cout << padded(words, 18) << std::setw(10) << readable(name, value) << '\n';
  }
}

int64_t widest_of(const Json& names, size_t count) {
  int64_t widest = 5;
  for (size_t i = 0; i < count; ++i) widest = std::max(widest, text::count_chars(shown(names[i].get<std::string>(), kWidestClass)));
  return widest;
}

// The first classes of many: nobody reads thousands of lines, and --json has more of them.
void print_classes(const Json& detail) {
  Json names = Json::array();
  for (const Json& each : detail.at("per_class")) names.push_back(each.at("class"));
  const size_t count = std::min(names.size(), kShownClasses);
  const int64_t widest = widest_of(names, count);
  std::cout << '\n' << padded("class", widest) << "  precision  recall      f1   count\n";
  for (size_t i = 0; i < count; ++i) {
    const Json& each = detail.at("per_class")[i];
    std::cout << padded(shown(each.at("class").get<std::string>(), kWidestClass), widest) << std::setw(11)
              << fixed(each.at("precision").get<double>(), 4) << std::setw(8) << fixed(each.at("recall").get<double>(), 4) << std::setw(8)
              << fixed(each.at("f1").get<double>(), 4) << std::setw(8) << each.at("count").get<int64_t>() << '\n';
  }
  const auto all = detail.at("class_count").get<size_t>();
  if (count < all) std::cout << "... and " << all - count << " more classes; --json lists " << names.size() << " of them\n";
}

// Of many classes: a matrix of them would fit no screen.
void print_mistakes(const Json& detail) {
  std::cout << "\ntimes  truth -> guess\n";
  for (const Json& each : detail.at("most_confused"))
    std::cout << std::setw(5) << each.at("count").get<int64_t>() << "  " << shown(each.at("truth").get<std::string>(), kWidestClass)
              << " -> " << shown(each.at("guess").get<std::string>(), kWidestClass) << '\n';
}

// Columns are classes by their numbers: names would not fit beside each other.
void print_confusion(const Json& detail) {
  if (!detail.contains("confusion")) return print_mistakes(detail);
  const int64_t widest = widest_of(detail.at("classes"), detail.at("classes").size()) + 5;
  size_t column = std::to_string(detail.at("classes").size()).size();
  for (const Json& row : detail.at("confusion"))
    for (const Json& count : row) column = std::max(column, std::to_string(count.get<int64_t>()).size());
  const int width = static_cast<int>(column) + 2;
  std::cout << '\n' << padded("truth \\ guess", std::max<int64_t>(widest, 13));
  for (size_t i = 0; i < detail.at("classes").size(); ++i) std::cout << std::setw(width) << i;
  std::cout << '\n';
  for (size_t i = 0; i < detail.at("classes").size(); ++i) {
    const std::string name = std::to_string(i) + ' ' + shown(detail.at("classes")[i].get<std::string>(), kWidestClass);
    std::cout << padded(name, std::max<int64_t>(widest, 13));
    for (const Json& count : detail.at("confusion")[i]) std::cout << std::setw(width) << count.get<int64_t>();
    std::cout << '\n';
  }
}

void run_eval(EvalFlags& options) {
  const Judged judged = [&] {
    SentenceCounter counter;
    return judge(options, [&](int64_t more) { counter.add(more); });
  }();
  const Evaluation& found = judged.evaluation;
  for (const auto& [name, value] : found.figures)
    check<FileError>(std::isfinite(value), "eval: ", name, " is ", value, ": the outputs of ", options.model, " for ", options.data,
                     " are NaN or infinite");
  if (options.json) {
    Json figures = Json::object();
    for (const auto& [name, value] : found.figures) figures[name] = value;
    Json json{{"model", options.model}, {"data", options.data}, {"what", judged.what}, {"figures", figures}, {"detail", found.detail}};
    for (const ChosenColumn& each : judged.columns) json["columns"][each.setting] = each.word();
    print_json_line(json);
    return;
  }
  check<UsageError>(!options.confusion || found.detail.contains("per_class"), "eval: found --confusion, but this model has no classes");
  print_figures(options, judged);
  if (found.detail.contains("per_class")) print_classes(found.detail);
  if (options.confusion) print_confusion(found.detail);
}

const Command eval_command("eval", "How good a model is on data", [](Flags& flags) {
  auto options = std::make_shared<EvalFlags>();
  flags.option("model", options->model, "Folder of a model or of a run").value("MODEL").required();
  flags.option("data", options->data, "What to judge it by; see below. Of a run, without it: the run's own data").value("DATA");
  flags
      .option("--part", options->part,
              "Of pictures, and of a run's own data: test, validation or train; unless it is given, the first of them that there is")
      .value("PART")
      .must_be(one_of({"test", "validation", "train"}));
  flags.option("settings", options->words, "Columns of a table as in heed train: text_column=review")
      .shown("[COLUMN=NAME ...]")
      .many()
      .one_value();
  add_column_flags(flags, options->columns, {"text_column", "pair_column", "label_column"}, true);
  add_column_flags(flags, options->columns, {"source_column", "target_column"});
  flags
      .option("--length", options->length,
              "Tokens of a window (what a language model can read, at most 512; of masked words 128), or of a translation")
      .value("N")
      .must_be(positive());
  flags.option("--beams", options->beams, "Of translations: as generation_config.json says, or 1").value("N").must_be(whole_within(1, 256));
  flags.option("--seed", options->seed, "Of masks and next sentences; 1").value("N");
  flags.option("-o,--out", options->out, "Write the translations there, one a line").value("FILE");
  flags.flag("--confusion", options->confusion, "How often each class was taken for each other, as a table");
  flags.flag("--json", options->json, "One JSON object, with all details");
  add_int8_flag(flags, options->int8);
  add_nonfinite_flag(flags, options->nonfinite);
  flags.footer(
      "DATA is what the model is for. Pictures: a folder as heed train classify takes it, or shapes. Labelled sentences\n"
      "and pairs: a .tsv, .csv or .jsonl file, or opinions/test or entailment/test. Language models, masked words and next sentences:\n"
      "a text file or a folder of them. Translations: a .tsv, .csv or .jsonl file of pairs, two files with a comma between them, or\n"
      "numbers, numbers:german:french. Columns of tables are found by their names, or said as in heed train: text_column=review.\n"
      "Classes are matched by name; labels of sentences also by number: 1 is the model's label 1.\n"
      "A run without DATA is judged by the data that it learned from: by their test part or, with --part validation, by what it kept out\n"
      "of its training data.\n\nExamples:\n"
      "  heed eval runs/classify/001\n  heed eval runs/classify/001 --part validation\n"
      "  heed eval runs/classify/001 cifar10 --confusion\n  heed eval sentiment dev.tsv text_column=sentence label_column=label\n"
      "  heed eval gpt2 wikitext-test.txt --length 1024\n  heed eval opus-mt-en-de test.en,test.de --beams 4 -o written.de --json");
  return [options] {
    options->typed = options->model;
    options->model = named_model(options->model);
    take_column_words(options->words, options->columns);
    check<UsageError>(options->words.empty(), "eval: found ", options->words.empty() ? "" : in_quotes(options->words[0]),
                      ", expected text_column=NAME, pair_column=NAME, label_column=NAME, source_column=NAME or target_column=NAME");
    run_eval(*options);
  };
});

}  // namespace
}  // namespace heed::cli
