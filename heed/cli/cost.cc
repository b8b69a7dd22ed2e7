// heed cost: parameters, arithmetic, memory and bytes moved of a model, predicted and optionally measured.
#include <iostream>
#include <memory>

#include "heed/cli/command.h"
#include "heed/cli/completion.h"
#include "heed/cli/cost_processes.h"
#include "heed/cli/cost_questions.h"
#include "heed/cli/model_name.h"
#include "heed/cli/print_cost.h"
#include "heed/cli/print_json.h"
#include "heed/cli/terminal_text.h"
#include "heed/io/paths.h"
#include "heed/train/model_folder.h"

namespace heed::cli {
namespace {

struct CostOptions {
  std::vector<std::string> arguments = {};
  std::string question = {};
  bool all = false, json = false, settings = false;
};

void run_cost(const CostOptions& options) {
  if (!options.question.empty()) {
    const Answer found = answer(options.question, options.arguments);
    options.json ? print_json_line(answer_json(found)) : print_answer(std::cout, found);
    return;
  }
  check<UsageError>(!options.arguments.empty() || options.settings, "cost: found no model, expected a folder, a config.json or a preset");
  const std::string name = resolve_model_or_preset(options.arguments.empty() ? "vit-tiny" : options.arguments[0]);
  check_model_name("cost", name);
  CostSettings of;
  of.choice.preset = name;
  Settings settings("cost");
  declare(settings, of, !path_exists(name));
  ProcessSettings asked;
  declare(settings, asked);
  for (size_t i = 1; i < options.arguments.size(); ++i) settings.assign(options.arguments[i]);
  if (options.settings) {
    std::cout << for_terminal(settings.help());
    return;
  }
  CostReport report = cost_report(name, config_named("cost", name, of.choice), of);
  if (const Path run = run_of_model(name); !run.empty()) report.name = run.string();  // not best or last
  std::optional<ProcessReport> processes;
  if (settings.given("processes")) {
    check<UsageError>(report.training.has_value(), "cost: processes=", asked.processes, ", but ", report.architecture,
                      " has no loss, expected a model that can be trained");
    processes = process_report(asked, report.cost, optimizer_state_values(of.optimizer));
  }
  if (options.json) {
    Json json = cost_json(report);
    if (processes) json["processes"] = processes_json(*processes);
    return print_json_line(json);
  }
  print_cost(std::cout, report, options.all);
  if (processes) print_processes(std::cout, *processes);
}

const Command cost_command("cost", "Parameters, arithmetic, memory and bytes moved of a model, predicted and measured", [](Flags& flags) {
  auto options = std::make_shared<CostOptions>();
  flags
      .option("arguments", options->arguments,
              "Folder of a model or of a run, a config.json or a preset of heed train; then settings as key=value")
      .usage("MODEL|CONFIG|PRESET [KEY=VALUE ...]")
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
      "  heed cost vit-base batch=1024 processes=64 bandwidth=25GB/s latency=5us\n"
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
