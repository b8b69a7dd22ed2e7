// The folder of a training run: what it was told, what it measured, and all that is needed to go on with it. Files that grow are
// cut back when a run goes on from a checkpoint, so that a run that was killed leaves the same files as one that was not.
#pragma once

#include <fstream>
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

class RunFolder {
 public:
  // runs/<task>/<name>; without a name the next free number: 001, 002, ... A name that is taken is a UsageError.
  static RunFolder create(const Path& runs, const std::string& task, const std::string& name);
  static RunFolder open(const Path& folder);  // one that is there

  const Path& path() const { return path_; }

  void log(const std::string& line);  // log.txt, behind the time of day
  // metrics.jsonl: {"kind": "step" or "epoch", "epoch": 1, "step": 20, ...figures}; metrics.csv: a row an epoch, with the columns of the
  // first one; event file: scalars. The same run writes the same bytes, so nothing here may depend on time.
  void add_step(int64_t epoch, int64_t step, const Figures& figures);
  void add_epoch(int64_t epoch, int64_t step, const Figures& figures);
  void add_speed(int64_t epoch, int64_t step, const Figures& figures);  // speed.csv and event file: what depends on time
  EventFile& events() { return *events_; }

  // How long every growing file is, on the disk by then; and back to that.
  Json mark();
  void rewind(const Json& mark);

 private:
  explicit RunFolder(Path path);

  Path path_;
  std::unique_ptr<EventFile> events_;
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
  explicit Checkpoints(Path folder, int64_t keep = 2) : folder_(std::move(folder)), keep_(keep) {}

  void write(int64_t step, const Checkpoint& checkpoint);  // whole or not at all
  // The newest that is undamaged. A damaged one is passed over, and `say` is told which and why.
  std::optional<Checkpoint> newest(const std::function<void(const std::string& text)>& say) const;

 private:
  Path folder_;
  int64_t keep_;
};

}  // namespace heed
