// The columns and languages that a run was trained with, as defaults for other data of the same kind.
#pragma once

#include "heed/cli/data_settings.h"

namespace heed::cli {

// Sets columns that are still empty as in the run of `model`, where the table `file` has such a column. Leaves all as they are if the model
// is of no run, or `file` is no table.
void add_columns_of_run(const Path& model, const std::string& file, TextColumns& columns);
// The same for captions and questions; languages are for folders, too.
void add_data_settings_of_run(const Path& model, const std::string& data, TextColumns& columns, LanguageCodes& languages,
                              DataSettings& other);

}  // namespace heed::cli
