#include "heed/train/epoch_record.h"

#include "heed/train/head_record.h"
#include "heed/train/train_events.h"

namespace heed {

void record_epoch(RunFolder& run, const Task& task, OptimizerStep& optimizer, const EpochInfo& epoch) {
  const NoGrad no_grad;
  const WithoutOthers alone;
  write_histograms(run.events(), optimizer.parameters(), epoch.step);
  {
    const AveragedWeights averaged(optimizer);
    if (epoch.epoch == 1) write_first_samples(run.events(), task, epoch.step);
    write_attention(run.events(), task, epoch.step);
    record_heads(run, *task.model, epoch.epoch, epoch.step);
    save_model_folder(task, run.path() / "last");
    if (epoch.best) save_model_folder(task, run.path() / "best");
  }
  run.add_epoch(epoch.epoch, epoch.step, epoch.figures);
  run.add_speed(epoch.epoch, epoch.step,
                {{"seconds", epoch.seconds}, {"samples_per_second", epoch.samples_per_second}, {"share_of_peak", epoch.share_of_peak}});
  run.log("epoch " + std::to_string(epoch.epoch) + ": " + figures_text(epoch.figures) + (epoch.best ? "; best" : ""));
}

}  // namespace heed
