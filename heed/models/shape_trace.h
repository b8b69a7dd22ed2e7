// The shapes of everything that a model computes for an input, in the order of execution, and what each comes from.
#pragma once

#include <string>
#include <vector>

#include "heed/attention/tap.h"
#include "heed/core/module_calls.h"
#include "heed/io/json.h"
#include "heed/models/cost.h"
#include "heed/models/model.h"

namespace heed {

struct ShapeRecord {
  std::string name;  // a module, "MODULE.q" and the like inside attention, or an input or output of the model
  Shape shape;
  DType dtype;
  std::string from;  // "(1, 5, 768), weight (768, 768)"

  bool operator==(const ShapeRecord&) const = default;
};

// Records the modules that this thread runs while it exists.
class ShapeTrace {
 public:
  // Of one call of the model with these inputs, which returned these outputs. Maps among the outputs are left out: those of attention are
  // listed where they are computed.
  std::vector<ShapeRecord> records(const Model& model, const TensorMap& inputs, const TensorMap& outputs) const;

 private:
  ModuleCalls calls_ = {};
  AttentionTap tap_ = AttentionTap(AttentionTap::Choice{.calls = {-1}});  // shapes only
};

// Of one call with inputs of such a size. Nothing is computed: the weights may be missing.
std::vector<ShapeRecord> shapes_of_example(const Model& model, const InputSize& size);

Json shapes_json(const std::vector<ShapeRecord>& records);

}  // namespace heed
