// The folder of a training run: settings, metrics and checkpoints. Append-only files are truncated when a run resumes from a checkpoint, so
// an interrupted run leaves the same files as an uninterrupted one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/api.h"
#include "heed/io/json.h"
#include "heed/io/safetensors.h"
#include "heed/train/event_file.h"

namespace HEED_API heed {

using Metrics = std::vector<std::pair<std::string, double>>;  // names and values in column order: "train_loss", "rate", ...

std::string figures_text(const Metrics& figures);  // "train_loss 0.6931, rate 0.001", four significant digits

// The folder of one run, open for writing.
class RunFolder {
 public:
  // Creates runs/<task>/<name>; without a name, the next free number: 001, 002, ... An existing name is a UsageError.
  static RunFolder create(const Path& runs, const std::string& task, const std::string& name);
  static RunFolder open(const Path& folder);                                           // an existing run with a config.toml
  static RunFolder of_first_process(const Path& folder) { return RunFolder(folder); }  // where another process writes; nothing is read
  ~RunFolder();
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&& other) noexcept;

  // The folder.
  const Path& path() const { return path_; }

  // The first call to any of the following opens the files and locks the run against other processes.
  void log(const std::string& line);  // log.txt, with date and time
  // metrics.jsonl: {"kind": "step" or "epoch", "epoch": 1, "step": 20, ...figures}; metrics.csv: a row per epoch with the columns of the
  // first row; event file: scalars "step/..." and "epoch/...". Must not depend on time: repeated runs write identical bytes. Non-finite
  // values are null in metrics.jsonl and inf, -inf or nan in metrics.csv.
  void add_step(int64_t epoch, int64_t step, const Metrics& figures);
  void add_epoch(int64_t epoch, int64_t step, const Metrics& figures);
  void add_speed(int64_t epoch, int64_t step, const Metrics& figures);  // speed.csv and event file "speed/...": timing
  void add_heads(const std::string& line);                              // heads.jsonl, created on first use: see head_record.h
  EventFile& events();

  // mark() syncs all append-only files and returns their sizes; rewind() truncates them to these. A null mark means empty files. log.txt is
  // kept whole and records the step from which the run resumed.
  Json mark();
  void rewind(const Json& mark, std::optional<int64_t> step = {});

 private:
  struct Files;

  explicit RunFolder(Path path);
  Files& files();

  Path path_;
  std::unique_ptr<Files> files_;  // null until the first write
};

// Calls `write` with a temporary folder next to `folder` and renames it into place. The old folder stays until then.
void replace_folder(const Path& folder, const std::function<void(const Path& temporary)>& write);

// Everything needed to resume a run: parameters, optimizer state and progress.
struct Checkpoint {
  NamedTensors tensors = {};
  Json state = {};
};

// checkpoints/step-0000120.safetensors: one file per checkpoint with a checksum of its contents. Keeps the newest `keep`.
class Checkpoints {
 public:
  explicit Checkpoints(Path folder, int64_t keep = 2);

  // Atomic. Deletes checkpoints of later steps, which are left over from before a rewind.
  void write(int64_t step, const Checkpoint& checkpoint);
  // The newest undamaged checkpoint. Damaged ones are skipped and reported to `say`.
  std::optional<Checkpoint> newest(const std::function<void(const std::string& text)>& say) const;

 private:
  Path folder_;
  int64_t keep_;
};

}  // namespace heed
