// The list of architectures.
#include <algorithm>

#include "heed/core/nearest.h"
#include "heed/models/architecture.h"

namespace heed {
namespace {

// The parameter of that name below the base; undefined if there is none.
Tensor parameter_below_base(const Model& model, const std::string& name) {
  const std::string& base = model.family().base;
  const std::string whole = model.traits().bare() || base.empty() ? name : base + "." + name;
  for (const Parameter& each : model.params().all())
    if (each.name == whole) return each.tensor;
  return {};
}

}  // namespace

ConfigKeys::Names ConfigKeys::all() const {
  Names out{"heed", "initializer_range", "id2label", "label2id", "num_labels", "problem_type", "tie_word_embeddings"};
  for (const Names* names : {&layers, &heads, &width, &feed_forward, &activation, &dropout, &more})
    out.insert(out.end(), names->begin(), names->end());
  if (!positions.empty()) out.push_back(positions);
  return out;
}

Architectures of_family(Family family, Architectures heads) {
  const auto shared = std::make_shared<const Family>(std::move(family));
  for (Architecture& each : heads) each.family = shared;
  return heads;
}

const Architectures& architectures() {
  static const Architectures all = [] {
    Architectures list;
    for (const auto& family :
         {bert_architectures, clip_architectures, dinov2_architectures, distilbert_architectures, gaussian_attention_architectures,
          gpt2_architectures, llama_architectures, marian_architectures, modernbert_architectures, recurrent_architectures,
          resnet_architectures, t5_architectures, vision_encoder_decoder_architectures, vit_architectures}) {
      const Architectures more = family();
      list.insert(list.end(), more.begin(), more.end());
    }
    return list;
  }();
  return all;
}

const Architecture& architecture_named(const std::string& source, const std::string& name) {
  std::vector<std::string> names;
  std::string known;
  for (const Architecture& each : architectures()) {
    if (each.name == name) return each;
    names.push_back(each.name);
    known += (known.empty() ? "" : ", ") + each.name;
  }
  const std::string hint = did_you_mean(name, names);
  fail<FileError>(source, ": the architecture ", in_quotes(name), " is not known", hint.empty() ? "." : hint, " Known: ", known);
}

const Architecture& architecture_of(const Config& config) {
  if (const std::string name = config.architecture(); !name.empty()) return architecture_named(config.source(), name);
  const std::string type = config.string("model_type", "");
  for (const Architecture& each : architectures())
    if (each.family->model_type == type) return each;
  fail<FileError>(config.source(), ": has no list of \"architectures\", expected for example [\"", architectures()[0].name, "\"]");
}

const Architecture* for_task(const Architecture& architecture, ModelTask task) {
  for (const Architecture& each : architectures())
    if (each.family == architecture.family && each.task == task) return &each;
  return nullptr;
}

InputKind input_kind(const Model& model) {
  if (model.family().pixels) return InputKind::image;
  return model.traits().task == ModelTask::seq2seq_lm ? InputKind::translation : InputKind::text;
}

int64_t max_tokens(const Architecture& architecture, const Config& config) {
  const std::vector<Chosen> positions = chosen_in(config.below("heed"), "positions");
  const bool limited = std::any_of(positions.begin(), positions.end(), [](const Chosen& each) { return each.choice->limits_tokens; });
  if (!architecture.family->positions || (!positions.empty() && !limited)) return kAnyTokens;
  return architecture.family->positions(config);
}

int64_t max_tokens(const Model& model) { return max_tokens(model.traits(), Config(model.config(), "config.json")); }

Config image_config(const Architecture& architecture, const Config& config) {
  return architecture.family->image_keys.empty() ? config : config.below_or_dict(architecture.family->image_keys);
}

std::array<int64_t, 2> patch_sides(const Model& model) {
  return image_config(model.traits(), Config(model.config(), "config.json")).sides("patch_size", model.family().usual_patch);
}

std::array<int64_t, 3> image_shape(const Model& model) {
  const Config whole(model.config(), "config.json"), config = image_config(model.traits(), whole);
  if (model.family().image) return model.family().image(whole);
  const std::array<int64_t, 2> sides = config.sides("image_size", 224);
  return {config.size("num_channels", 3), sides[0], sides[1]};
}

Tensor word_table(const Model& model) {
  for (const std::string& name : model.family().word_tables)
    if (const Tensor found = parameter_below_base(model, name); found.defined()) return found;
  return {};
}

Tensor position_table(const Model& model) { return parameter_below_base(model, model.family().position_table); }

bool is_of_head(const Architecture& architecture, std::string_view parameter) {
  const Family& family = *architecture.family;
  const auto contains = [&](const std::string& part) { return parameter.find(part) != std::string_view::npos; };
  if (std::any_of(family.task_parts.begin(), family.task_parts.end(), contains)) return true;
  if (architecture.bare() || family.base.empty()) return false;
  return !parameter.starts_with(family.base + ".");
}

std::vector<std::string> supported_choices(const Family& family, const Choices& list) {
  std::vector<std::string> out;
  for (const Choice& each : list.all) {
    const bool own = each.name != "learned" || family.default_position == "learned";
    if (own && (family.pixels || (!each.needs_grid && each.takes_masks)) && (!family.causal || !each.needs_all_tokens))
      out.push_back(each.name);
  }
  return out;
}

}  // namespace heed
