// The tree of a model's modules with parameters, arithmetic and memory, as a table and as JSON.
#pragma once

#include <ostream>

#include "heed/cli/module_tree.h"
#include "heed/io/json.h"

namespace heed::cli {

struct TreeOptions {
  bool all = false;  // print every layer, also identical ones
};

void print_tree(std::ostream& out, const Model& model, const ModelCost& cost, const TreeOptions& options);
Json tree_json(const Model& model, const ModelCost& cost);

}  // namespace heed::cli
