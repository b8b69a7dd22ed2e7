#include "heed/models/parity.h"

#include <algorithm>
#include <cmath>

#include "heed/models/generate.h"

namespace heed {
namespace {

Difference difference(const std::string& name, const Tensor& found, const Tensor& expected, double tolerance) {
  Difference out{.name = name, .shape = expected.shape()};
  if (!found.defined()) {
    out.problem = "the model gives no such output";
    return out;
  }
  if (found.shape() != expected.shape()) {
    std::ostringstream text;
    text << "found the shape " << found.shape();
    out.problem = text.str();
    return out;
  }
  double largest = 0;
  bool numbers = true;
  const std::vector<float> a = found.to_vector<float>(), b = expected.to_vector<float>();
  for (size_t i = 0; i < a.size(); ++i) {
    numbers = numbers && std::isfinite(a[i]) && std::isfinite(b[i]);
    out.absolute = std::max(out.absolute, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  out.relative = out.absolute == 0 ? 0 : out.absolute / std::max(largest, 1e-30);
  if (!numbers) out.problem = "not all are numbers";
  out.within = numbers && (is_floating(expected.dtype()) ? out.relative <= tolerance : out.absolute == 0);
  return out;
}

bool any_has(const std::vector<std::string>& names, const char* part) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return name.find(part) != std::string::npos; });
}

}  // namespace

std::vector<Difference> compare(const Model& model, const Path& file, double tolerance) {
  const NoGrad quiet;
  const Safetensors io = Safetensors::open(file);
  Named inputs;
  std::vector<std::string> outputs;
  for (const std::string& name : io.names()) {
    if (name.starts_with("in.")) inputs[name.substr(3)] = io.tensor(name);
    if (name.starts_with("out.")) outputs.push_back(name.substr(4));
  }
  check<FileError>(!inputs.empty() && !outputs.empty(), file.string(), ": found ", inputs.size(), " tensors \"in.*\" and ", outputs.size(),
                   " \"out.*\", expected both");
  std::sort(outputs.begin(), outputs.end());
  Named given = model(inputs, {.hidden_states = any_has(outputs, "hidden_states."), .attentions = any_has(outputs, "attentions.")});
  if (any_has(outputs, "greedy")) {
    GenerationOptions options = generation_options(model);
    options.max_length = io.entry("out.greedy").shape[1];
    given["greedy"] = generate(model, inputs, options);
  }
  std::vector<Difference> out;
  for (const std::string& name : outputs) {
    const auto found = given.find(name);
    out.push_back(difference(name, found == given.end() ? Tensor() : found->second, io.tensor("out." + name), tolerance));
  }
  return out;
}

}  // namespace heed
