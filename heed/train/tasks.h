// The tasks that a person can name. Each is a file of its own that declares its settings and makes the task of them.
#pragma once

#include "heed/train/learning.h"
#include "heed/train/presets.h"
#include "heed/train/task.h"

namespace heed {

// What all tasks are told alike.
struct Chosen {
  LearnOptions learn = {};
  ModelChoice model = {};
  std::string from = {};  // a model's folder to begin with; empty: from scratch
  std::string keep = {};  // a model's folder whose tokenizer and preprocessing stay as they are; empty: they follow from the data
  std::function<void(int64_t done, int64_t all)> reading = {};  // told how many image files are decoded; may be null
};

struct TaskKind {
  std::string name, summary, preset;  // preset: unless a person names one
  std::vector<std::string> families;  // of presets that can learn it
  std::vector<std::string> examples;  // of what follows "heed train NAME"
  // Adds the task's own settings; the function given back reads the data and makes the task.
  std::function<std::function<Task(const Chosen& chosen)>(Settings& settings)> declare;
  // Runs of older versions go on as they began: gives settings that their config.toml does not have their values of then.
  std::function<void(Settings& settings)> resume_older = {};
};

const std::vector<TaskKind>& task_kinds();
const TaskKind& task_kind(const std::string& name);  // a UsageError that lists them where there is none

TaskKind classify_kind();   // pictures
TaskKind sentiment_kind();  // labelled sentences
TaskKind pairs_kind();      // labelled pairs of sentences
TaskKind translate_kind();  // from one language to another
TaskKind pretrain_kind();   // masked words, next sentences and the like
TaskKind language_kind();   // the next word

}  // namespace heed
