#include "heed/train/trainer.h"

namespace heed {

void save_model_folder(const Task& task, const Path& folder) {
  replace_folder(folder, [&](const Path& temporary) {
    if (task.save_preprocessing) task.save_preprocessing(temporary);
    save(*task.model, temporary);
  });
}

}  // namespace heed
