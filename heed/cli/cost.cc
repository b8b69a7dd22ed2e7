// heed cost: parameters, arithmetic, memory and bytes moved of a model, predicted and optionally measured.
#include <iostream>
#include <memory>

#include "heed/cli/command.h"
#include "heed/cli/completion.h"
#include "heed/cli/cost_questions.h"
#include "heed/cli/model_name.h"
#include "heed/cli/print_cost.h"
#include "heed/cli/print_json.h"
#include "heed/core/peak.h"
#include "heed/io/paths.h"

namespace heed::cli {
namespace {

struct CostOptions {
  std::vector<std::string> arguments = {};
  std::string question = {};
  bool all = false, json = false, settings = false;
};

// Settings after the model.
struct CostSettings {
  InputSize size = {};
  int64_t image = 0, rounds = 5;
  bool measure = false;
  std::string optimizer = "adamw";
  ModelChoice choice = {};  // for a preset
  Json model = {};          // keys of config.json, otherwise
};

void declare(Settings& settings, CostSettings& of, bool preset) {
  const Allowed size{.least = 0, .most = 1e9};
  settings.heading("The call");
  settings.add("batch", of.size.batch, "items at a time", {.least = 1, .most = 1e9});
  settings.add("length", of.size.tokens, "tokens per text, or per source of a translation; 0: 128, or the number of positions if smaller",
               size);
  settings.add("target", of.size.target, "tokens of a translation; 0: the length of its source", size);
  settings.add("labels", of.size.labels, "masked tokens per text in training; 0: 15%", size);
  settings.add("image", of.image, "side of images in pixels; 0: as in the model's config", {.least = 0, .most = 65536});
  settings.add("optimizer", of.optimizer, "whose state training keeps", {.choices = {"adamw", "adam", "sgd", "none"}});
  settings.heading("Measuring");
  settings.add("measure", of.measure, "run the model and print time, arithmetic and memory next to the prediction");
  settings.add("rounds", of.rounds, "timed repetitions", {.least = 1, .most = 1000});
  if (preset)
    heed::declare(settings, of.choice);
  else
    settings.add_open("model.", of.model, "keys of config.json: model.num_hidden_layers=6", {});
}

CostReport report_on(const std::string& name, const Json& config, const CostSettings& of, bool as_it_is) {
  const Model model = shapes_only_model(name, config, as_it_is);
  check<UsageError>(of.image == 0 || input_kind(model) == InputKind::image, "cost: image=", of.image, ", but ", model.architecture(),
                    " reads no images");
  CostReport out{.name = Path(name).filename().empty() ? name : Path(name).filename().string(),
                 .architecture = model.architecture(),
                 .cost = cost_of(model, of.size),
                 .optimizer = of.optimizer};
  const InputSize& size = out.cost.size;
  out.inference = predicted_memory(model, size, Purpose::inference);
  if (has_loss(model)) out.training = predicted_memory(model, size, Purpose::training);
  if (!of.measure) return out;
  const int rounds = static_cast<int>(of.rounds);
  out.measured = {.peak_flops = peak_flops(),
                  .bytes_per_second = read_bandwidth(),
                  .inference = measured_cost(model, size, Purpose::inference, rounds)};
  if (out.training) out.measured->training = measured_cost(model, size, Purpose::training, rounds);
  return out;
}

void run_cost(const CostOptions& options) {
  if (!options.question.empty()) {
    const Answer found = answer(options.question, options.arguments);
    options.json ? print_json_line(answer_json(found)) : print_answer(std::cout, found);
    return;
  }
  check<UsageError>(!options.arguments.empty() || options.settings, "cost: found no model, expected a folder, a config.json or a preset");
  const std::string name = resolve_model(options.arguments.empty() ? "vit-tiny" : options.arguments[0]);
  check_model_name("cost", name);
  CostSettings of;
  of.choice.preset = name;
  Settings settings("cost");
  declare(settings, of, !path_exists(name));
  for (size_t i = 1; i < options.arguments.size(); ++i) settings.assign(options.arguments[i]);
  if (options.settings) {
    std::cout << settings.help();
    return;
  }
  Json config = config_named("cost", name, of.choice);
  const bool as_it_is = of.model.empty() && of.image == 0;
  if (of.model.is_object()) config.merge_patch(of.model);
  if (of.image > 0) config["image_size"] = of.image;
  const CostReport report = report_on(name, config, of, as_it_is);
  if (options.json)
    print_json_line(cost_json(report));
  else
    print_cost(std::cout, report, options.all);
}

const Command cost_command("cost", "Parameters, arithmetic, memory and bytes moved of a model, predicted and measured", [](Flags& flags) {
  auto options = std::make_shared<CostOptions>();
  flags
      .option("arguments", options->arguments,
              "Folder of a model or of a run, a config.json or a preset of heed train; then settings as key=value")
      .usage("CONFIG|MODEL [KEY=VALUE ...]")
      .many();
  flags.option("--question", options->question, "Answer a question about attention instead of a model's cost").value("NAME");
  flags.flag("--all", options->all, "Print every layer, also identical ones");
  flags.flag("--settings", options->settings, "List the settings and exit");
  flags.flag("--json", options->json, "Print JSON");
  flags.footer(
      "Nothing is computed and no weights are read unless measure=true, so models may be larger than the machine.\n\nQuestions:\n" +
      list_questions() +
      "\nExamples:\n  heed cost vit-tiny\n  heed cost bert-base length=512 batch=8\n  heed cost gpt2 measure=true\n"
      "  heed cost vit-small attention=linear pooling=gap\n  heed cost my-model/ image=384 --json\n"
      "  heed cost config.json model.num_hidden_layers=24\n  heed cost --question heads width=512 heads=8\n"
      "  heed cost --question channels side=16 channels=512 groups=4\n  heed cost --question new-token width=768 tokens=1024");
  flags.completes([](const std::vector<std::string>& before) {
    if (before.empty()) return preset_candidates(before);
    CostSettings of;
    Settings settings("cost");
    declare(settings, of, is_preset(before[0]));
    return setting_candidates(settings);
  });
  return [options] { run_cost(*options); };
});

}  // namespace
}  // namespace heed::cli
