// Whether the processes of a job do the same: UsageErrors, in all of them, that name the process and both values.
#pragma once

#include "heed/dist/group.h"
#include "heed/train/task.h"

namespace heed {

void check_same_settings(Group& group, const Settings& settings);
void check_same_data(Group& group, const Task& task);  // by the fingerprints of its parts

}  // namespace heed
