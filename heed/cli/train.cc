// heed train: trains a model and writes its metrics and report.
#include <algorithm>
#include <iostream>
#include <memory>

#include "heed/cli/command.h"
#include "heed/cli/completion.h"
#include "heed/cli/terminal_text.h"
#include "heed/cli/train_run.h"
#include "heed/core/nearest.h"
#include "heed/core/parse.h"
#include "heed/train/model_folder.h"

namespace heed::cli {
namespace {

struct TrainFlags {
  std::vector<std::string> arguments = {};
  std::string resume = {};
  TrainRun run = {};
  bool quiet = false, json = false, settings = false;
};

void list_settings(const TrainFlags& options) {
  if (options.arguments.empty()) {
    for (const TaskKind& kind : task_kinds()) std::cout << kind.name << "\n    " << kind.summary << '\n';
    std::cout << "\nheed train TASK --settings lists the settings of a task.\n";
    return;
  }
  TrainingJob training(options.arguments[0]);
  training.apply({options.arguments.begin() + 1, options.arguments.end()});
  std::cout << for_terminal(training.kind().summary + "\n\n" + training.settings().help()) << "\nPresets:\n";
  for (const std::string& name : presets_of(training.kind().families)) {
    const Preset& preset = preset_named(name);
    std::cout << "  " << preset.name << "\n      " << preset.summary << '\n';
  }
  std::cout << "\nExamples:\n";
  for (const std::string& example : training.kind().examples)
    std::cout << "  heed train " << training.kind().name << ' ' << example << '\n';
}

void run_train(TrainFlags& options) {
  options.run.output = options.json ? Output::json : options.quiet ? Output::quiet : Output::people;
  if (options.settings) return list_settings(options);
  if (!options.resume.empty()) {
    resume_training(run_folder(options.resume), options.arguments, options.run);
    return;
  }
  check<UsageError>(!options.arguments.empty(), "train: no task given; heed train --settings lists the tasks");
  check<UsageError>(!options.arguments[0].ends_with(".toml"), "train: found ", options.arguments[0],
                    " before the task, expected heed train TASK ", options.arguments[0]);
  TrainingJob training(options.arguments[0]);
  training.apply({options.arguments.begin() + 1, options.arguments.end()});
  start_training(training, options.run);
}

// Settings can be written as flags: --epochs 3, --epochs=3 and --flip mean epochs=3, epochs=3 and flip=true. The settings of all tasks are
// accepted here; the task itself refuses those of other tasks.
void flags_as_settings(std::vector<std::string>& arguments, const std::vector<std::string>& flags) {
  std::vector<std::unique_ptr<TrainingJob>> tasks;
  std::vector<std::string> out, known = flags;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::optional<KeyValue> setting = parse_key_value(arguments[i]);
    const std::string flag = setting ? setting->key : arguments[i], name = flag.substr(std::min<size_t>(2, flag.size()));
    if (!flag.starts_with("--") || name.empty() || std::find(flags.begin(), flags.end(), flag) != flags.end()) {
      out.push_back(arguments[i]);
      continue;
    }
    if (tasks.empty())
      for (const TaskKind& kind : task_kinds()) {
        tasks.push_back(std::make_unique<TrainingJob>(kind.name));
        for (const std::string& key : tasks.back()->settings().keys()) known.push_back("--" + key);
      }
    const auto task = std::find_if(tasks.begin(), tasks.end(), [&](const auto& each) { return !each->settings().key_of(name).empty(); });
    check<UsageError>(task != tasks.end(), "unknown flag '", flag, "'", did_you_mean(flag, known));
    const bool yes_or_no = name.find('.') == name.npos && (*task)->settings().is_flag((*task)->settings().key_of(name));
    const bool has_value = i + 1 < arguments.size() && !arguments[i + 1].starts_with("--");
    if (setting) {
      out.push_back(arguments[i].substr(2));
    } else if (yes_or_no && !(has_value && (arguments[i + 1] == "true" || arguments[i + 1] == "false"))) {
      out.push_back(name + "=true");
    } else {
      check<UsageError>(has_value, "train: found ", flag, " without a value, expected ", flag, " VALUE or ", name, "=VALUE");
      out.push_back(name + "=" + arguments[++i]);
    }
  }
  arguments = std::move(out);
}

std::function<void()> set_up_train(Flags& flags) {
  auto options = std::make_shared<TrainFlags>();
  flags.option("arguments", options->arguments, "The task, then settings as key=value or --key value, and at most one TOML file")
      .usage("TASK [CONFIG.toml] [KEY=VALUE ...]")
      .many();
  flags.option("--resume", options->resume, "Resume a run, with the same results as if it had not been stopped").value("RUN");
  flags.option("--runs", options->run.runs, "Folder of runs, each in TASK/NAME").value("FOLDER");
  flags.option("--name", options->run.name, "Name of the run; by default the next free number").value("NAME");
  flags.flag("--settings", options->settings, "List the tasks, or the settings of a task with their values, and exit");
  flags.flag("--quiet", options->quiet, "Print nothing; everything is in the run's files");
  flags.flag("--json", options->json, "One JSON object per line");
  flags.footer(
      "Ctrl-C saves and stops; --resume continues the run, and epochs=N with it extends the run.\n"
      "docs/training.md explains tasks, settings and the files of a run.\n\nExamples:\n"
      "  heed train classify\n  heed train classify data=cifar10 preset=vit-tiny epochs=20 pad=4 flip=true\n"
      "  heed train classify position=gaussian pooling=gap\n  heed train classify my.toml rate=5e-4 --name slower\n"
      "  heed train classify --settings\n  heed train --resume runs/classify/001\n"
      "  heed train --resume runs/classify/001 epochs=40");
  flags.completes([](const std::vector<std::string>& before) {
    std::vector<Candidate> out;
    for (const TaskKind& kind : task_kinds())
      if (!before.empty() && before[0] == kind.name) return setting_candidates(TrainingJob(kind.name).settings());
    for (const TaskKind& kind : task_kinds())
      if (before.empty()) out.push_back({kind.name, kind.summary});
    return out;
  });
  return [options] { run_train(*options); };
}

const Command train_command("train",
                            "Train a model: classify, sentiment, pairs, translate, pretrain, language, contrastive, caption, answers",
                            set_up_train, flags_as_settings);

}  // namespace
}  // namespace heed::cli
