#include "heed/train/tasks.h"

#include "heed/core/nearest.h"

namespace heed {

const std::vector<TaskKind>& task_kinds() {
  static const std::vector<TaskKind> kinds{classify_kind(), sentiment_kind(),   pairs_kind(),   translate_kind(), pretrain_kind(),
                                           language_kind(), contrastive_kind(), caption_kind(), answers_kind()};
  return kinds;
}

const TaskKind& task_kind(const std::string& name) {
  std::vector<std::string> names;
  std::string list;
  for (const TaskKind& kind : task_kinds()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
    list += (list.empty() ? "" : ", ") + kind.name;
  }
  fail<UsageError>("train: found the task '", name, "', expected one of ", list, did_you_mean(name, names));
}

}  // namespace heed
