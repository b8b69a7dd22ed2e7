#include "heed/models/inspection_caption.h"

#include "heed/io/paths.h"
#include "heed/models/caption.h"
#include "heed/models/config.h"

namespace heed {
namespace {

using CaptionIds = std::vector<int64_t>;

CaptionIds caption_ids(const InspectedModel& inspected, const InspectOptions& options, const Tensor& pixels) {
  CaptionIds out;
  if (options.target) {
    for (const int32_t id : inspected.target->encode(*options.target).ids) out.push_back(id);
  } else {
    const Translated written = write_captions(inspected.model, *inspected.target, pixels, caption_options(inspected.model))[0];
    out.assign(written.tokens.begin(), written.tokens.end());
  }
  const int64_t limit = max_tokens(inspected.model);
  check<FileError>(!out.empty() && std::ssize(out) <= limit, "inspect: a caption of ", out.size(), " tokens, expected 1 to ", limit);
  return out;
}

}  // namespace

void inspect_caption(const InspectedModel& inspected, const InspectOptions& options, Inspection& inspection) {
  const Model& model = inspected.model;
  check<UsageError>(inspected.target && inspected.images && !options.changes_attention(), "inspect: ", model.architecture(),
                    " needs a tokenizer and an image processor, and its attention cannot be changed");
  check<FileError>(options.image || path_exists(options.input), options.input, ": there is no such file; ", model.architecture(),
                   " takes images");
  const Image image = options.image ? *options.image : read_image(options.input);
  inspection.image = inspected.images->prepared(image);
  const Tensor pixels = (*inspected.images)(std::span(&image, 1));
  check_image_size(model, inspected.folder, pixels);
  inspection.own_translation = !options.target;
  inspection.target_tokens = caption_ids(inspected, options, pixels);
  const CaptionIds& words = inspection.target_tokens;
  const int64_t N = std::ssize(words), start = Config(model.config(), "config.json").size("decoder_start_token_id", 0, 0);
  CaptionIds read(words.begin(), words.end() - 1);
  read.insert(read.begin(), start);
  const TensorMap inputs{{"pixel_values", pixels}, {"decoder_input_ids", Tensor::from(read, {1, N}, kCpu)}};
  std::vector<AttentionTap::Operands> parts;
  if (options.terms) parts = position_parts(model, [&] { model(inputs); });
  std::optional<ShapeTrace> trace;
  if (options.shapes) trace.emplace();
  const AttentionTap tap({.calls = {-1}, .operands = options.terms});
  const TensorMap out = model(inputs, {.hidden_states = options.shapes, .attentions = options.maps});
  inspection.terms = score_terms(parts, tap.operands());
  if (trace) inspection.shapes = trace->records(model, inputs, out);
  const std::vector<int32_t> ids(words.begin(), words.end());
  inspection.translation = text_of(*inspected.target, ids);
  if (!options.maps) return;
  for (const std::string kind : {"cross", "encoder", "decoder"})
    inspection.maps.push_back(maps_in(out, kind + "_attentions.", kind, options.choice, true));
  const auto [rows, columns] = patch_grid(model, inspection.image);
  AttentionMaps &cross = inspection.maps[0], &encoder = inspection.maps[1], &decoder = inspection.maps[2];
  inspection.rows = rows;
  inspection.columns = columns;
  inspection.first = cross.M - rows * columns;
  check(inspection.first >= 0, "inspect: maps to ", cross.M, " tokens on a grid of ", rows, " x ", columns,
        ", expected a key for every patch");
  std::vector<std::string> places(static_cast<size_t>(inspection.first), "[class]");
  for (int64_t i = 0; i < rows * columns; ++i)
    places.push_back("row " + std::to_string(i / columns) + ", column " + std::to_string(i % columns));
  for (const int64_t id : words) cross.rows.push_back(inspected.target->display(id));
  for (const int64_t id : read) decoder.rows.push_back(inspected.target->display(id));
  decoder.columns = decoder.rows;
  cross.columns = encoder.rows = encoder.columns = places;
  std::erase_if(inspection.maps, [](const AttentionMaps& maps) { return maps.layers.empty(); });
}

}  // namespace heed
