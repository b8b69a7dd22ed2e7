#include "heed/train/fit.h"

namespace heed {

void save_model_folder(const Task& task, const Path& folder) {
  replace_folder(folder, [&](const Path& beside) {
    if (task.save_beside) task.save_beside(beside);
    save(*task.model, beside);
  });
}

}  // namespace heed
