// The folder of a training run: what it was told, what it measured, and all that is needed to go on with it. Files that grow are
// cut back when a run goes on from a checkpoint, so that a run that was killed leaves the same files as one that was not.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heed/io/json.h"
#include "heed/io/safetensors.h"
#include "heed/train/event_file.h"

namespace heed {

using Figures = std::vector<std::pair<std::string, double>>;  // names and values, in the order of columns: "train_loss", "rate", ...

std::string figures_text(const Figures& figures);  // "train_loss 0.6931, rate 0.001": four digits each

class RunFolder {
 public:
  // runs/<task>/<name>; without a name the next free number: 001, 002, ... A name that is taken is a UsageError.
  static RunFolder create(const Path& runs, const std::string& task, const std::string& name);
  static RunFolder open(const Path& folder);  // one that is there, with its config.toml
  ~RunFolder();
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&& other) noexcept;

  const Path& path() const { return path_; }

  // The first of these makes or opens the files, and keeps other processes from writing to the same run at once.
  void log(const std::string& line);  // log.txt, behind the date and the time
  // metrics.jsonl: {"kind": "step" or "epoch", "epoch": 1, "step": 20, ...figures}; metrics.csv: a row an epoch, with the columns of the
  // first one; event file: scalars "step/..." and "epoch/...". The same run writes the same bytes, so nothing here may depend on time.
  // What is not finite is null in metrics.jsonl; inf, -inf or nan in metrics.csv.
  void add_step(int64_t epoch, int64_t step, const Figures& figures);
  void add_epoch(int64_t epoch, int64_t step, const Figures& figures);
  void add_speed(int64_t epoch, int64_t step, const Figures& figures);  // speed.csv, event file "speed/...": what depends on time
  void add_heads(const std::string& line);  // heads.jsonl, which is there only if something is added: see head_record.h
  EventFile& events();

  // How long every growing file is, on the disk by then; and back to that. An empty mark is the beginning. log.txt is not cut: it
  // tells all that happened, and from which step the run went on.
  Json mark();
  void rewind(const Json& mark, std::optional<int64_t> step = {});

 private:
  struct Files;

  explicit RunFolder(Path path);
  Files& files();

  Path path_;
  std::unique_ptr<Files> files_;  // null until something is written
};

// A folder that is written beside its place and put there in one step. What stood there before stays until then.
void replace_folder(const Path& folder, const std::function<void(const Path& beside)>& write);

struct Checkpoint {
  NamedTensors tensors = {};
  Json state = {};
};

// checkpoints/step-0000120.safetensors: one file each, with a checksum of everything in it; the newest `keep` of them stay.
class Checkpoints {
 public:
  explicit Checkpoints(Path folder, int64_t keep = 2);

  // Whole or not at all. Those of later steps go: the run was taken back behind them.
  void write(int64_t step, const Checkpoint& checkpoint);
  // The newest that is undamaged. A damaged one is passed over, and `say` is told which and why.
  std::optional<Checkpoint> newest(const std::function<void(const std::string& text)>& say) const;

 private:
  Path folder_;
  int64_t keep_;
};

}  // namespace heed
