#include "heed/models/parity.h"

#include <algorithm>
#include <cmath>

#include "heed/models/architecture.h"
#include "heed/models/generate.h"
#include "heed/ops/ops.h"

namespace heed {
namespace {

Difference difference(const std::string& name, const Tensor& found, const Tensor& expected, double tolerance) {
  Difference out{.name = name, .shape = expected.shape()};
  if (!found.defined()) {
    out.problem = "the model has no such output";
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
  if (!numbers) out.problem = "NaN or infinite";
  out.within = numbers && (is_floating(expected.dtype()) ? out.relative <= tolerance : out.absolute == 0);
  return out;
}

bool any_has(const std::vector<std::string>& names, const char* part) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return name.find(part) != std::string::npos; });
}

// "beam4", "beams4", "beam.4", "beam_4" -> 4; "beam", "beams" -> num_beams of the config, or 4; 0 for other names
int64_t beams_of(const std::string& name, const Model& model) {
  if (name == "beam" || name == "beams") {
    const int64_t beams = generation_options(model).beams;
    return beams > 1 ? beams : 4;
  }
  size_t at = name.starts_with("beams") ? 5 : name.starts_with("beam") ? 4 : name.size();
  if (at < name.size() && (name[at] == '.' || name[at] == '_')) ++at;
  const std::string number = name.substr(at);
  const bool digits = !number.empty() && number.size() < 4 && number.find_first_not_of("0123456789") == number.npos;
  return digits ? std::stoll(number) : 0;
}

// Generates from the inputs with beams or greedily. expected: (rows, length) of tokens
Tensor generated(const Model& model, const TensorMap& inputs, int64_t beams, const Tensor& expected) {
  const std::string prompt = model.family().pixels ? "pixel_values" : "input_ids";
  if (expected.rank() != 2 || expected.size(1) == 0 || !inputs.contains(prompt)) return {};
  GenerationOptions options = generation_options(model);
  options.sample = false;
  options.beams = std::max<int64_t>(beams, 1);
  options.count = beams > 0 ? std::max<int64_t>(expected.size(0) / std::max<int64_t>(inputs.at(prompt).size(0), 1), 1) : 1;
  const std::vector<int64_t> last = slice(expected, 1, expected.size(1) - 1, expected.size(1)).to_vector<int64_t>();
  const bool all_ended = std::all_of(last.begin(), last.end(), [&](int64_t token) {
    return token == options.pad || std::find(options.end.begin(), options.end.end(), token) != options.end.end();
  });
  // If not all sequences ended with an end token, the expected length is the maximum length.
  if (beams == 0 || !all_ended) options.max_length = expected.size(1);
  return generate(model, inputs, options);
}

}  // namespace

std::vector<Difference> compare(const Model& model, const Path& file, double tolerance) {
  const NoGrad no_grad;
  const Safetensors io = Safetensors::open(file);
  TensorMap inputs;
  std::vector<std::string> outputs;
  for (const std::string& name : io.names()) {
    if (name.starts_with("in.")) inputs[name.substr(3)] = io.tensor(name);
    if (name.starts_with("out.")) outputs.push_back(name.substr(4));
  }
  check<FileError>(!inputs.empty() && !outputs.empty(), file.string(), ": found ", inputs.size(), " tensors \"in.*\" and ", outputs.size(),
                   " \"out.*\", expected both");
  std::sort(outputs.begin(), outputs.end());
  TensorMap results = model(inputs, {.hidden_states = any_has(outputs, "hidden_states."), .attentions = any_has(outputs, "attentions.")});
  for (const std::string& name : outputs)
    if (const int64_t beams = beams_of(name, model); name == "greedy" || beams > 0)
      results[name] = generated(model, inputs, beams, io.tensor("out." + name));
  std::vector<Difference> out;
  for (const std::string& name : outputs) {
    const auto found = results.find(name);
    out.push_back(difference(name, found == results.end() ? Tensor() : found->second, io.tensor("out." + name), tolerance));
  }
  return out;
}

}  // namespace heed
