// Checks that all processes of a job have the same settings and data. A difference is a UsageError in all of them, which names the process
// and both values.
#pragma once

#include "heed/dist/group.h"
#include "heed/train/task.h"

namespace heed {

void check_same_settings(Group& group, const Settings& settings);
void check_same_data(Group& group, const Task& task);  // by the fingerprints of its parts

}  // namespace heed
