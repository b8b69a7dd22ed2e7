#include "heed/models/model.h"

#include <algorithm>
#include <array>
#include <iostream>
#include <tuple>
#include <utility>

#include "heed/core/nearest.h"
#include "heed/io/paths.h"
#include "heed/models/architecture.h"
#include "heed/nn/feed_forward.h"
#include "heed/ops/ops.h"

namespace heed {
namespace {

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

bool is_pickle(const Path& path) {
  constexpr std::array ends{".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack"};
  return std::any_of(ends.begin(), ends.end(), [&](const char* end) { return path.extension() == end; });
}

// The error for a folder without safetensors.
[[noreturn]] void refuse_folder(const Path& folder, const std::string& architecture) {
  for (const Path& entry : folder_entries(folder))
    if (is_pickle(entry))
      fail<FileError>(entry.string(), ": pickle files can execute code, so heed reads only safetensors. Convert it: python3 -c ",
                      "\"from transformers import ", architecture, " as M; M.from_pretrained('.').save_pretrained('.')\" in that folder");
  fail<FileError>(folder.string(), ": found neither ", kWeights, " nor ", kIndex, ", expected one of them");
}

// Aliases for the parameter names of old checkpoints, and of checkpoints of the inner model.
void alias_names(Params& params, const Architecture& architecture) {
  const std::string prefix = architecture.family->base + ".";
  const std::vector<std::string> names = params.file_names();
  const bool prefixed = architecture.family->base.empty() ||
                        std::any_of(names.begin(), names.end(), [&](const std::string& name) { return name.starts_with(prefix); });
  for (const std::string& name : names) {
    std::string parameter = name;
    if (name.ends_with(".gamma")) parameter.replace(name.size() - 5, 5, "weight");  // layer norms before 2019
    if (name.ends_with(".beta")) parameter.replace(name.size() - 4, 4, "bias");
    const std::string plain = parameter;
    if (architecture.bare() && name.starts_with(prefix)) parameter = parameter.substr(prefix.size());
    if (!architecture.bare() && !prefixed) parameter = prefix + parameter;
    if (parameter != name) params.alias(name, parameter);
    if (plain != name && plain != parameter) params.alias(name, plain);
  }
}

Network build_network(const Architecture& architecture, Params& params, const Config& config) {
  try {
    return architecture.make(Scope(params, initializer::bert()), config);
  } catch (const Error& error) {
    if (error.exit_code() != 1) throw;                       // a file, the environment, Ctrl-C: the message is complete
    throw FileError(config.source() + ": " + error.what());  // sizes that do not fit together
  }
}

const Architecture& architecture_in(const Config& config, const ModelOptions& options) {
  return options.architecture.empty() ? architecture_of(config) : architecture_named(config.source(), options.architecture);
}

void print_warning(const std::string& message) { std::cerr << "heed: " << message << '\n'; }

struct Checkpoint {
  std::shared_ptr<const Safetensors> file;
  const Config& config;
  uint64_t seed;

  Network build(const Architecture& architecture, Params& params) const {
    alias_names(params, architecture);
    return build_network(architecture, params, config);
  }
  // The parameters that an architecture has, without values.
  Params shapes_of(const Architecture& architecture, LoadOptions names) const {
    names.shapes_only = true;
    Params params(file, seed, std::move(names));
    build(architecture, params);
    return params;
  }
  const Architecture& best_fit() const;
  void check_shapes(const Architecture& architecture, LoadOptions& names, bool new_head) const;
};

std::vector<std::string> names_not_read(const Params& params) {
  std::vector<std::string> out;
  for (const Parameter& each : params.all())
    if (!each.read) out.push_back(each.name);
  return out;
}

// Of the architectures with the model_type of config.json, the one with the fewest missing parameters; of these, the one with the fewest
// unused tensors. Names with the prefix of the inner model come from a model with a head.
const Architecture& Checkpoint::best_fit() const {
  const Architecture* best = &architecture_of(config);
  const std::vector<std::string> names = file->names();
  const bool prefixed =
      std::any_of(names.begin(), names.end(), [&](const auto& each) { return each.starts_with(best->family->base + "."); });
  std::tuple<size_t, size_t, bool> least{SIZE_MAX, SIZE_MAX, true};
  for (const Architecture& each : architectures()) {
    if (each.family != best->family) continue;
    const Params params = shapes_of(each, {.allow_missing = {""}, .allow_unused = each.family->ignored});
    const std::tuple found{names_not_read(params).size(), params.unused().size(), each.bare() == prefixed};
    if (found < least) {
      least = found;
      best = &each;
    }
  }
  return *best;
}

// Fails unless the file has all parameters with the right shapes. With new_head, parameters of the head that do not match are added to
// allow_missing instead.
void Checkpoint::check_shapes(const Architecture& architecture, LoadOptions& names, bool new_head) const {
  LoadOptions quiet = names;
  quiet.warn = [](const std::string&) {};
  if (new_head) {
    quiet.allow_missing = {""};
    std::string initialized;
    for (const std::string& name : names_not_read(shapes_of(architecture, quiet)))
      if (is_of_head(architecture, name)) {
        names.allow_missing.push_back(name);
        initialized += (initialized.empty() ? "" : ", ") + in_quotes(name);
      }
    quiet.allow_missing = names.allow_missing;
    if (!initialized.empty()) names.warn(file->source() + ": no values for " + initialized + "; they are initialized");
  }
  shapes_of(architecture, quiet).finish();
}

Json read_if_exists(const Path& path) { return path_exists(path) ? read_json(path) : Json(); }

// PyTorch's batch norms also store the number of batches, which heed does not need but other programs expect in a checkpoint.
void add_batch_counts(NamedTensors& tensors) {
  const std::string_view end = "running_mean";
  for (size_t i = 0, count = tensors.size(); i < count; ++i)
    if (const std::string name = tensors[i].first; name.ends_with(end))
      tensors.emplace_back(name.substr(0, name.size() - end.size()) + "num_batches_tracked", Tensor::zeros(Shape{}, DType::i64, kCpu));
}

}  // namespace

void DecodeState::reorder(std::span<const int64_t> items) {
  const auto chosen = [&](const Tensor& x) {
    return x.defined() ? index_select(x, 0, Tensor::from(items, {std::ssize(items)}, x.device())) : x;
  };
  reorder_past(items);
  for (auto& [keys, values] : memory) {
    keys = chosen(keys);
    values = chosen(values);
  }
  memory_mask = chosen(memory_mask);
  std::vector<std::vector<int64_t>> rows;
  if (!mask.empty())
    for (int64_t item : items) rows.push_back(mask[static_cast<size_t>(item)]);
  mask = std::move(rows);
}

void DecodeState::reorder_past(std::span<const int64_t> items) {
  for (KeyValueCache& cache : past) cache.reorder(items);
}

Model::Model(Network network, std::unique_ptr<Params> params, const Architecture& architecture, Json config, Json generation)
    : network_(std::move(network)),
      params_(std::move(params)),
      architecture_(&architecture),
      config_(std::move(config)),
      generation_(std::move(generation)) {}

const std::string& Model::architecture() const { return architecture_->name; }
const Family& Model::family() const { return *architecture_->family; }

TensorMap Model::operator()(const TensorMap& inputs, const ForwardOptions& options) const {
  for (const auto& [name, tensor] : inputs) {
    const bool known = std::find(network_.inputs.begin(), network_.inputs.end(), name) != network_.inputs.end();
    check(known, architecture(), ": the input '", name, "' is not known", did_you_mean(name, network_.inputs));
    check(tensor.defined(), architecture(), ": the input '", name, "' is an undefined tensor");
  }
  check(options.sequences.empty() || takes_sequences(), architecture(), ": found ", options.sequences.size(),
        " concatenated sequences, expected a padded batch");
  TensorMap on_device = inputs;  // whole numbers stay: masks and labels are read on the host, and embeddings move their indices
  for (auto& [name, tensor] : on_device)
    if (is_floating(tensor.dtype()) && tensor.device() != device()) tensor = tensor.to(device());
  const BalanceLosses balance;  // of mixtures of experts
  TensorMap out = network_.run(on_device, options);
  if (const auto loss = out.find("loss"); loss != out.end() && balance.sum().defined()) loss->second = loss->second + balance.sum();
  return out;
}

const TextDecoder& Model::decoder() const {
  check(generates(), architecture(), ": does not generate text, expected a language model");
  return network_.decoder;
}

Model load(const Path& folder, const ModelOptions& options) {
  check<FileError>(is_folder(folder), folder.string(), ": there is no such folder");
  const Config config(options.config.is_null() ? read_json(folder / "config.json") : options.config, (folder / "config.json").string());
  if (!path_exists(folder / kWeights) && !path_exists(folder / kIndex)) refuse_folder(folder, architecture_in(config, options).name);
  const Checkpoint checkpoint{std::make_shared<const Safetensors>(Safetensors::open(folder)), config, options.seed};
  const bool known = !options.architecture.empty() || !config.architecture().empty();
  const Architecture& architecture = known ? architecture_in(config, options) : checkpoint.best_fit();
  LoadOptions names = options.names;
  const std::vector<std::string>& ignored = architecture.family->ignored;
  names.allow_unused.insert(names.allow_unused.end(), ignored.begin(), ignored.end());
  if (!names.warn) names.warn = print_warning;
  checkpoint.check_shapes(architecture, names, options.new_head);  // before memory is allocated
  auto params = std::make_unique<Params>(checkpoint.file, options.seed, names, options.weights);
  Network network = checkpoint.build(architecture, *params);
  params->finish();
  return {std::move(network), std::move(params), architecture, config.json(), read_if_exists(folder / "generation_config.json")};
}

Model make_model(const Json& json, const ModelOptions& options) {
  const Config config(json, "config");
  const Architecture& architecture = architecture_in(config, options);
  auto params = std::make_unique<Params>(options.seed, options.names, options.weights);
  Network network = build_network(architecture, *params, config);
  return {std::move(network), std::move(params), architecture, json, Json()};
}

Model rebuild(const Model& model, Weights weights) {
  check(static_cast<bool>(model.traits().make), model.architecture(), ": is not in the list of architectures");
  const Config config(model.config(), "config.json");
  const LoadOptions names{.allow_missing = {""}, .allow_unused = {""}, .device = model.device()};
  auto params = std::make_unique<Params>(model.params().file(), 1, names, weights);
  Network network = Checkpoint{model.params().file(), config, 1}.build(model.traits(), *params);
  return {std::move(network), std::move(params), model.traits(), model.config(), model.generation()};
}

void save(const Model& model, const Path& folder, const SaveOptions& options) {
  check(is_floating(options.dtype), "save: parameters as ", name_of(options.dtype), ", expected f32, bf16 or f16");
  make_folders(folder);
  NamedTensors tensors = model.params().stored();
  for (auto& [name, tensor] : tensors) tensor = converted(tensor, options.dtype);
  add_batch_counts(tensors);
  const Metadata metadata{{"format", "pt"}};
  if (options.shard_bytes > 0) {
    write_sharded(folder, tensors, options.shard_bytes, metadata);
    remove_path(folder / kWeights);  // a folder with both would be ambiguous
  } else {
    write_safetensors(folder / kWeights, tensors, metadata);
    remove_path(folder / kIndex);
  }
  remove_stale_shards(folder);
  if (!model.generation().is_null()) write_json(folder / "generation_config.json", model.generation());
  Json config = model.config();
  const char* dtype = options.dtype == DType::f32 ? "float32" : options.dtype == DType::bf16 ? "bfloat16" : "float16";
  config[config.contains("torch_dtype") && !config.contains("dtype") ? "torch_dtype" : "dtype"] = dtype;
  config["architectures"] = {model.architecture()};
  write_json(folder / "config.json", config);
}

}  // namespace heed
