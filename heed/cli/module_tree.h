// The modules of a model as a tree, layers that are alike folded, printed as a table.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "heed/models/cost.h"

namespace heed::cli {

struct TreeColumn {
  std::string title = {};
  // module: what has this name itself, or null where only others lie below; sum: of it and all below. Empty: nothing to say
  std::function<std::string(const ModelPart* module, const ModelPart& sum)> cell = {};
  bool words = false;  // which stand to the left
};
// all: every layer, though they may be alike
void print_modules(std::ostream& out, const ModelCost& cost, const std::vector<TreeColumn>& columns, bool all);

// Rows of words, the first the titles; the first `left` columns to the left, the others to the right.
void print_rows(std::ostream& out, const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& left);

std::string readable_count(int64_t number);               // 17.6 G
std::string readable_bytes(int64_t bytes);                // 330.2 MiB
std::string readable_share(int64_t part, int64_t whole);  // 12.5%

}  // namespace heed::cli
