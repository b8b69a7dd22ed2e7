// The tree of a model's modules with what each costs, for people and for machines.
#pragma once

#include <ostream>

#include "heed/io/json.h"
#include "heed/models/cost.h"

namespace heed::cli {

struct TreeOptions {
  bool all = false;  // every layer, though they may be alike
};

void print_tree(std::ostream& out, const Model& model, const ModelCost& cost, const TreeOptions& options);
Json tree_json(const Model& model, const ModelCost& cost);

std::string readable_count(int64_t number);  // 17.6 G
std::string readable_bytes(int64_t bytes);   // 330.2 MiB

}  // namespace heed::cli
