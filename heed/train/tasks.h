// Registry of training tasks. Each is one file that declares its settings and builds the task.
#pragma once

#include "heed/core/api.h"
#include "heed/train/presets.h"
#include "heed/train/task.h"
#include "heed/train/train_options.h"

namespace HEED_API heed {

// Options common to all tasks.
struct JobOptions {
  TrainOptions train_options = {};
  ModelChoice model = {};
  std::string from = {};  // folder of the initial model; empty: from scratch
  std::string keep = {};  // folder of a model whose tokenizer and preprocessing are reused; empty: derived from the data
  std::function<void(int64_t done, int64_t all)> reading = {};  // called with the number of decoded image files; may be null
};

// A kind of task: heed train NAME.
struct TaskKind {
  std::string name, summary, preset;  // preset: the default
  std::vector<std::string> families;  // supported preset families
  std::vector<std::string> examples;  // arguments after "heed train NAME"
  // Declares the task's own settings; the returned function reads the data and builds the task.
  std::function<std::function<Task(const JobOptions& chosen)>(Settings& settings)> declare;
  // For runs of older versions: sets settings that their config.toml lacks to the values of that time.
  std::function<void(Settings& settings)> resume_older = {};
};

// All kinds, and one by name.
const std::vector<TaskKind>& task_kinds();
const TaskKind& task_kind(const std::string& name);  // UsageError that lists all tasks if there is none

TaskKind classify_kind();     // images
TaskKind sentiment_kind();    // labelled sentences
TaskKind pairs_kind();        // labelled pairs of sentences
TaskKind translate_kind();    // from one language to another
TaskKind pretrain_kind();     // masked words, next sentence, ...
TaskKind language_kind();     // next token
TaskKind contrastive_kind();  // images and their captions, compared
TaskKind caption_kind();      // captions of images
TaskKind answers_kind();      // questions, answered by a part of a text

}  // namespace heed
