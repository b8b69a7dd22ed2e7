// heed predict: what a classifier says about sentences or pictures. The model says which of the two it takes.
#include "heed/cli/predict.h"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

#include "heed/text/unicode.h"

namespace heed::cli {
namespace {

constexpr size_t kWidestLabel = 32;

void run_predict(const PredictOptions& options) {
  const Path folder = options.model;
  Model model = load(folder);
  const std::vector<std::string>& inputs = model.inputs();
  check<FileError>(std::find(inputs.begin(), inputs.end(), "pixel_values") == inputs.end(), folder.string(), ": no pictures yet");
  predict_text(options, std::move(model));
}

const Command predict("predict", "Labels for sentences or pictures, with their probabilities", [](CLI::App& flags) {
  auto options = std::make_shared<PredictOptions>();
  flags.add_option("model", options->model, "Folder of a model")->type_name("MODEL")->required();
  add_sentence_flags(flags, options->inputs, true, "INPUT");
  flags.add_option("--top", options->top, "How many labels, the best first; 0: as suits the model")
      ->type_name("K")
      ->check(CLI::NonNegativeNumber.description(""));
  flags.add_option("--max-length", options->max_length, "Cut sentences to so many tokens; 0: what the model can read")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber.description(""));
  flags.add_flag("--json", options->json, "One JSON object a line");
  flags.footer(
      "INPUT is a sentence, or a picture or a folder of pictures, as the model takes it.\n"
      "Models for sentences (one label, several, values), pairs, words, or places that say [MASK].\n\n"
      "Examples:\n  heed predict sentiment 'a fine film' 'a waste of time'\n  heed predict sentiment --file reviews.txt --json > "
      "labels.jsonl\n"
      "  heed predict nli --pairs --file pairs.tsv\n  heed predict bert-base 'The capital of France is [MASK].' --top 3\n"
      "  zcat reviews.gz | heed predict sentiment");
  return [options] { run_predict(*options); };
});

}  // namespace

LabelTable::LabelTable(const std::string& label, const std::vector<std::string>& names, Labels::Kind kind, const std::string& about)
    : kind_(kind) {
  width_ = text::count_chars(label);
  for (const std::string& name : names) width_ = std::max(width_, text::count_chars(shown(name, kWidestLabel)));
  std::cout << padded(label, width_) << (kind == Labels::Kind::value ? "     value  " : "  probability  ") << about << '\n';
}

void LabelTable::add(const std::vector<Label>& labels, const std::string& about) const {
  for (const Label& label : labels) {
    std::ostringstream score;
    if (kind_ == Labels::Kind::value)
      score << std::setw(10) << std::fixed << std::setprecision(4) << label.score;
    else
      score << std::setw(13) << percent(label.score);
    std::cout << padded(shown(label.name, kWidestLabel), width_) << score.str();
    if (&label == &labels.front()) std::cout << "  " << about;
    std::cout << '\n';
  }
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

void print_json(const Json& json) { std::cout << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n'; }

}  // namespace heed::cli
