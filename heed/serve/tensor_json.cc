#include "heed/serve/tensor_json.h"

#include <cmath>

#include "heed/train/settings_value.h"

namespace heed::serve {
namespace {

Json nested(const std::vector<float>& values, const Shape& shape, int axis, size_t& at) {
  if (axis == shape.rank()) return short_number(values[at++]);
  Json out = Json::array();
  for (int64_t i = 0; i < shape[axis]; ++i) out.push_back(nested(values, shape, axis + 1, at));
  return out;
}

void read_nested(const JsonReader& json, const Shape& shape, int axis, std::vector<float>& values) {
  if (axis == shape.rank()) {
    values.push_back(static_cast<float>(json.number(-1e30, 1e30)));
    return;
  }
  const std::vector<JsonReader> items = json.list();
  if (std::ssize(items) != shape[axis])
    json.refuse("found ", items.size(), " items, expected ", shape[axis], " (the shape is ", shape, ")");
  for (const JsonReader& each : items) read_nested(each, shape, axis + 1, values);
}

}  // namespace

Json short_number(float value) { return std::isfinite(value) ? value_json(value) : Json(); }

Json tensor_json(const Tensor& x, int first_axis) {
  size_t at = 0;
  return nested(x.to_vector<float>(), x.shape(), first_axis, at);
}

Tensor tensor_in(const JsonReader& json, const Shape& shape) {
  std::vector<float> values;
  read_nested(json, shape, 0, values);
  return Tensor::from(values, shape, kCpu);
}

}  // namespace heed::serve
