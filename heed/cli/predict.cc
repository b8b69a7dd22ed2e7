// heed predict: labels for sentences or images, depending on the model.
#include "heed/cli/predict.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

#include "heed/cli/display_text.h"
#include "heed/cli/int8_flag.h"
#include "heed/cli/model_name.h"
#include "heed/cli/nonfinite_flag.h"
#include "heed/cli/parts_file.h"
#include "heed/models/architecture.h"
#include "heed/text/unicode.h"

namespace heed::cli {
namespace {

constexpr size_t kMaxLabelWidth = 32;

void run_predict(PredictOptions& options) {
  options.model = options.image.folder_for("predict", options.model, options.nonfinite);
  check<UsageError>(!options.agreement || options.int8, "predict: found --agreement without --int8, expected both");
  Model model =
      load(options.model, {.names = {.allow_nonfinite = nonfinite_warning(options.nonfinite)}, .weights = weights_for(options.int8)});
  const bool by_texts = model.traits().task == ModelTask::image_text_matching;
  check<UsageError>(by_texts == !options.labels.empty(), "predict: ", model.architecture(),
                    by_texts ? " compares images with texts, expected --label TEXT for each of them"
                             : " has labels of its own, found --label, which is for models such as CLIP");
  if (model.family().pixels) {
    check<UsageError>(options.output.empty() && !any_column_set(options.inputs.columns), "predict: ", model.architecture(),
                      " takes images, found ", options.output.empty() ? "the name of a column" : "-o", ", which is for sentences");
    if (model.traits().task == ModelTask::image_captioning) return predict_captions(options, model);
    return by_texts ? predict_images_by_texts(options, std::move(model)) : predict_images(options, model);
  }
  check<UsageError>(!options.skip_bad, "predict: ", model.architecture(), " takes sentences, found --skip-bad, which is for images");
  predict_text(options, std::move(model));
}

const Command predict_command("predict", "Labels for sentences or images, with their probabilities", [](Flags& flags) {
  auto options = std::make_shared<PredictOptions>();
  flags.option("model", options->model, "Folder of a model or of a run").value("MODEL").required();
  add_sentence_flags(flags, options->inputs, true, "input");
  flags.option("--label", options->labels, "CLIP: a text that images are compared with, once for each label").usage("TEXT").one_value();
  flags.option("--top", options->top, "Number of labels, best first; 0: depends on the model").value("K").must_be(non_negative());
  flags.option("--max-length", options->max_length, "Truncate sentences to N tokens; 0: the model's maximum")
      .value("N")
      .must_be(non_negative());
  flags
      .option(kOutputFlag, options->output,
              "Write predictions to a .csv, .tsv or .jsonl file: the columns of the input, then label and probability")
      .value("FILE");
  flags.flag("--json", options->json, "One JSON object per line");
  add_parts_flag(flags, options->parts);
  options->image.add_to(flags);
  add_int8_flag(flags, options->int8);
  add_nonfinite_flag(flags, options->nonfinite);
  flags.flag("--agreement", options->agreement, "With --int8: also compute in f32 and print how often the first label is the same");
  flags.flag("--skip-bad", options->skip_bad, "Images: skip unreadable ones, and exit with code 1 after the rest");
  flags.footer(
      "INPUT is a sentence, a file of sentences (.txt: one per line; .csv, .tsv, .jsonl: a table, whose columns are found by name;\n"
      "each also .gz), an image (PNG, JPEG, WebP, BMP) or a folder of images, depending on the model. Supported are classification and\n"
      "regression of sentences and pairs, token classification, [MASK] filling, answers to questions, image classification, images\n"
      "compared with texts (CLIP) and captions of images. For answers, the two arguments are the question and the text\n"
      "that contains the answer.\n\nExamples:\n"
      "  heed predict sentiment reviews.csv text_column=sentence -o labelled.csv\n"
      "  heed predict sentiment 'a fine film' 'a waste of time'\n  heed predict sentiment --file reviews.txt --json > labels.jsonl\n"
      "  zcat reviews.gz | heed predict sentiment\n  heed predict nli --pairs --file pairs.tsv\n"
      "  heed predict bert-base 'The capital of France is [MASK].' --top 3\n"
      "  heed predict bert-squad 'Where does Anna live?' 'Anna lives in Berlin and works in Potsdam.'\n"
      "  heed predict vit photo.jpg holidays/ --skip-bad\n  heed predict vit photo.jpg --image 48\n"
      "  heed predict clip photo.jpg --label 'a photo of a cat' --label 'a photo of a dog'\n"
      "  heed predict sentiment --file reviews.txt --int8 --agreement");
  return [options] {
    options->model = options->inputs.model = resolve_model(options->model);
    const std::unique_ptr<PartsFile> parts = parts_file(options->parts, options->model);
    run_predict(*options);
    if (parts) parts->remove();
  };
});

}  // namespace

LabelTable::LabelTable(const std::string& label, const std::vector<std::string>& names, Labels::Kind kind, const std::string& about)
    : kind_(kind) {
  width_ = text::count_chars(label);
  for (const std::string& name : names) width_ = std::max(width_, text::count_chars(display_text(name, kMaxLabelWidth)));
  std::cout << padded(label, width_) << (kind == Labels::Kind::value ? "     value  " : "  probability  ") << about << '\n';
}

void LabelTable::add(const std::vector<Label>& labels, const std::string& about) const {
  for (const Label& label : labels) {
    std::ostringstream score;
    if (kind_ == Labels::Kind::value)
      score << std::setw(10) << std::fixed << std::setprecision(4) << label.score;
    else
      score << std::setw(13) << percent(label.score);
    std::cout << padded(display_text(label.name, kMaxLabelWidth), width_) << score.str();
    if (&label == &labels.front()) std::cout << "  " << about;
    std::cout << '\n';
  }
}

void Agreement::add(const std::vector<Label>& int8, const std::vector<Label>& f32) {
  ++inputs_;
  same_ += int8.empty() || int8.front().id == f32.front().id;
  for (const Label& label : int8)
    for (const Label& other : f32)
      if (other.id == label.id) max_difference_ = std::max(max_difference_, std::abs(label.score - other.score));
}

void Agreement::add(const Json& other) {
  inputs_ += other.at(0).get<int64_t>();
  same_ += other.at(1).get<int64_t>();
  max_difference_ = std::max(max_difference_, other.at(2).get<float>());
}

void Agreement::print() const {
  std::cout.flush();
  std::cerr << "heed: the first label is the same in int8 and f32 for " << same_ << " of " << inputs_ << " inputs ("
            << percent(static_cast<float>(same_) / static_cast<float>(std::max<int64_t>(inputs_, 1))) << "); scores differ by at most "
            << max_difference_ << '\n';
}

std::string percent(float probability) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(2) << 100 * static_cast<double>(probability) << '%';
  return text.str();
}

Json to_json(const std::vector<Label>& labels, const char* name) {
  Json out = Json::array();
  for (const Label& label : labels) out.push_back({{name, label.name}, {"id", label.id}, {"score", label.score}});
  return out;
}

}  // namespace heed::cli
