#include "heed/serve/term_values.h"

#include <cmath>

#include "heed/core/nearest.h"
#include "heed/serve/answer.h"
#include "heed/serve/tensor_json.h"

namespace heed::serve {
namespace {

constexpr int64_t kMostParameterNumbers = int64_t{1} << 20;

double setting_in(const JsonReader& json, const TermSetting& setting) {
  if (setting.type == TermSetting::Type::flag) {
    if (json.json().is_boolean()) return json.flag() ? 1 : 0;
    return json.whole(0, 1) != 0 ? 1 : 0;
  }
  if (setting.type == TermSetting::Type::whole) return static_cast<double>(json.whole(static_cast<int64_t>(setting.least), 1 << 20));
  const double value = json.number(setting.least, 1e30);
  if (value <= setting.least) json.refuse("found ", value, ", expected ", setting.expected());
  return value;
}

TermValues values_in(const JsonReader& json, const TermInfo& info, const TermPlace& place) {
  TermValues out;
  if (json.has("settings"))
    for (const auto& [name, ignored] : json["settings"].object().items()) {
      const auto found =
          std::find_if(info.settings.begin(), info.settings.end(), [&, &key = name](const TermSetting& each) { return each.name == key; });
      if (found == info.settings.end()) json["settings"].refuse(info.name, " has no setting ", in_quotes(name, 40));
      if (json["settings"].has(name)) out[name] = setting_in(json["settings"][name], *found);
    }
  complete_settings(info, out, place);
  return out;
}

// One set of numbers for all heads may be given without the axis of heads.
Tensor parameter_in(const JsonReader& json, const Shape& shape) {
  const Json* first = &json.json();
  int depth = 0;
  for (; first->is_array() && !first->empty(); first = &(*first)[0]) ++depth;
  if (depth != shape.rank() - 1) return tensor_in(json, shape);
  Shape one;
  for (int axis = 1; axis < shape.rank(); ++axis) one.push_back(shape[axis]);
  const std::vector<float> values = tensor_in(json, one).to_vector<float>();
  std::vector<float> all;
  for (int64_t h = 0; h < shape[0]; ++h) all.insert(all.end(), values.begin(), values.end());
  return Tensor::from(all, shape, kCpu);
}

}  // namespace

bool usable_in_attend(const TermInfo& info) {
  if (info.use == TermUse::call) return false;
  try {
    TermInput input{.place = {.tokens = 4, .rows = 2, .columns = 2}};
    complete_settings(info, input.values, input.place);
    for (const TermParameter& each : info.parameters) input.tensors.push_back(initial_parameter(each, 1, input.values, 1));
    make_term(info, input);
    return true;
  } catch (const Error&) {
    return false;
  }
}

Tensor initial_parameter(const TermParameter& parameter, int64_t heads, const TermValues& values, uint64_t seed) {
  const Shape shape = parameter.shape(heads, values);
  int64_t count = 1;
  for (const int64_t size : shape) count *= std::max<int64_t>(size, 1);
  require(count <= kMostParameterNumbers, 400, parameter.name, ": found ", count, " numbers, expected at most ", kMostParameterNumbers);
  Rng rng(seed);
  return parameter.initial ? parameter.initial(shape, rng) : random_normal(shape, 0, 0.5f, rng, kCpu);
}

RequestTerm term_in(const JsonReader& json, const TermPlace& place, int64_t heads, uint64_t seed) {
  const std::string name = json.text("name");
  const TermInfo* info = find_term(name);
  if (!info || !usable_in_attend(*info)) {
    std::vector<std::string> names;
    for (const TermInfo& each : term_infos())
      if (usable_in_attend(each)) names.push_back(each.name);
    json.refuse("found the term ", in_quotes(name, 40), ", which is not known here", did_you_mean(name, names));
  }
  if (info->needs_grid && place.rows == 0) json.refuse(info->name, " needs a grid");
  RequestTerm out{.info = info, .values = values_in(json, *info, place), .parameters = {}, .term = Causal{}};
  if (json.has("parameters"))
    for (const auto& [key, ignored] : json["parameters"].object().items())
      if (std::none_of(info->parameters.begin(), info->parameters.end(),
                       [&, &given = key](const TermParameter& each) { return each.name == given; }))
        json["parameters"].refuse(info->name, " has no parameter ", in_quotes(key, 40));
  for (const TermParameter& each : info->parameters) {
    Tensor values = initial_parameter(each, heads, out.values, seed + out.parameters.size() + 1);
    if (json.has("parameters") && json["parameters"].has(each.name)) values = parameter_in(json["parameters"][each.name], values.shape());
    out.parameters.push_back(values.require_grad());
  }
  out.term = make_term(*info, {.values = out.values, .tensors = out.parameters, .place = place});
  return out;
}

}  // namespace heed::serve
