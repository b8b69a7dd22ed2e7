// The modules of a model as an indented table; runs of identical layers are folded into one row.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "heed/models/cost.h"

namespace heed::cli {

struct TreeColumn {
  std::string title = {};
  // module: the module of this name, null for a pure container; sum: over it and its descendants. -> the cell, may be empty
  std::function<std::string(const ModelPart* module, const ModelPart& sum)> cell = {};
  bool left_aligned = false;
};
// all: do not fold identical layers
void print_modules(std::ostream& out, const ModelCost& cost, const std::vector<TreeColumn>& columns, bool all);

// Prints a table whose first row is the header. left: per column, whether it is left-aligned
void print_rows(std::ostream& out, const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& left);

std::string readable_count(int64_t number);               // 17.6 G
std::string readable_bytes(int64_t bytes);                // 330.2 MiB
std::string readable_share(int64_t part, int64_t whole);  // 12.5%

}  // namespace heed::cli
