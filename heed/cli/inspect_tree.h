// The tree of a model's modules with what each costs, for people and for machines.
#pragma once

#include <ostream>

#include "heed/cli/module_tree.h"
#include "heed/io/json.h"

namespace heed::cli {

struct TreeOptions {
  bool all = false;  // every layer, though they may be alike
};

void print_tree(std::ostream& out, const Model& model, const ModelCost& cost, const TreeOptions& options);
Json tree_json(const Model& model, const ModelCost& cost);

}  // namespace heed::cli
