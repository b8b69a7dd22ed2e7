// heed train: from data to a model one can trust, its curves and its report.
#include <iostream>
#include <memory>

#include "heed/cli/command.h"
#include "heed/cli/completion.h"
#include "heed/cli/train_run.h"

namespace heed::cli {
namespace {

struct TrainFlags {
  std::vector<std::string> words = {};
  std::string resume = {};
  TrainRun run = {};
  bool quiet = false, json = false, settings = false;
};

void list_settings(const TrainFlags& options) {
  if (options.words.empty()) {
    for (const TaskKind& kind : task_kinds()) std::cout << kind.name << "\n    " << kind.summary << '\n';
    std::cout << "\nheed train TASK --settings lists the settings of a task.\n";
    return;
  }
  Training training(options.words[0]);
  training.tell({options.words.begin() + 1, options.words.end()});
  std::cout << training.kind().summary << "\n\n" << training.settings().help() << "\nPresets:\n";
  for (const Preset& preset : presets()) std::cout << "  " << preset.name << "\n      " << preset.summary << '\n';
  std::cout << "\nExamples:\n";
  for (const std::string& example : training.kind().examples)
    std::cout << "  heed train " << training.kind().name << ' ' << example << '\n';
}

void run_train(TrainFlags& options) {
  options.run.output = options.json ? Output::json : options.quiet ? Output::quiet : Output::people;
  if (options.settings) return list_settings(options);
  if (!options.resume.empty()) {
    check<UsageError>(options.words.empty(), "train: found '", options.words.empty() ? "" : options.words[0],
                      "' beside --resume; a run goes on with the settings that it began with");
    train_on(options.resume, options.run);
    return;
  }
  check<UsageError>(!options.words.empty(), "train: no task given; heed train --settings lists them");
  Training training(options.words[0]);
  training.tell({options.words.begin() + 1, options.words.end()});
  train_anew(training, options.run);
}

const Command train_command("train", "Train a model: classify, sentiment, pairs, translate, pretrain, language", [](Flags& flags) {
  auto options = std::make_shared<TrainFlags>();
  flags.option("words", options->words, "The task, then settings: key=value words and at most one TOML file")
      .shown("TASK [CONFIG.toml] [KEY=VALUE ...]")
      .many();
  flags.option("--resume", options->resume, "Go on with a run, with the same numbers as if it had never stopped").value("RUN");
  flags.option("--runs", options->run.runs, "Where runs lie, each in TASK/NAME").value("FOLDER");
  flags.option("--name", options->run.name, "Of the run; without it the next free number").value("NAME");
  flags.flag("--settings", options->settings, "List the tasks, or every setting of a task with its value, and do nothing");
  flags.flag("--quiet", options->quiet, "Say nothing; the run's files have it all");
  flags.flag("--json", options->json, "One JSON object a line");
  flags.footer(
      "Ctrl-C saves and ends; --resume goes on. docs/training.md explains tasks, settings and the files of a run.\n\nExamples:\n"
      "  heed train classify\n  heed train classify data=cifar10 preset=vit-tiny epochs=20 pad=4 flip=true\n"
      "  heed train classify position=gaussian pooling=gap\n  heed train classify my.toml rate=5e-4 --name slower\n"
      "  heed train classify --settings\n  heed train --resume runs/classify/001");
  flags.completes([](const std::vector<std::string>& before) {
    std::vector<Candidate> out;
    for (const TaskKind& kind : task_kinds())
      if (!before.empty() && before[0] == kind.name) return setting_candidates(Training(kind.name).settings());
    for (const TaskKind& kind : task_kinds())
      if (before.empty()) out.push_back({kind.name, kind.summary});
    return out;
  });
  return [options] { run_train(*options); };
});

}  // namespace
}  // namespace heed::cli
