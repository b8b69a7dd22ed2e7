// Any bytes as config.json, with an empty checkpoint: refused, for any sizes. Then with reduced sizes: refused, or a model. And as
// preprocessor_config.json: refused, or an image processor.
#include <cstdlib>

#include "heed/models/config.h"
#include "heed/models/image_processor.h"
#include "heed/models/model.h"
#include "tests/fuzz/harness.h"

namespace {

using namespace heed;

// Reduces numbers that would only cost time and memory.
void reduce_sizes(Json& json) {
  if (json.is_number_integer() && (json.get<int64_t>() > 48 || json.get<int64_t>() < -48)) json = json.get<int64_t>() % 48;
  if (json.is_structured())
    for (Json& each : json) reduce_sizes(each);
}

// Missing sizes would default to those of the published models.
void add_sizes(Json& json) {
  for (const char* key : {"hidden_size", "intermediate_size", "n_embd", "n_inner", "dim", "hidden_dim", "d_model", "encoder_ffn_dim",
                          "decoder_ffn_dim", "pooler_output_size"})
    json.emplace(key, 24);
  for (const char* key : {"num_hidden_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers"}) json.emplace(key, 1);
  for (const char* key : {"vocab_size", "max_position_embeddings", "n_positions", "image_size"}) json.emplace(key, 32);
}

}  // namespace

void fuzz_input(const uint8_t* data, size_t size) {
  static const bool ready = (fuzz::write_file("model.safetensors", std::string_view("\2\0\0\0\0\0\0\0{}", 10)), true);
  if (!ready) std::abort();
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::write_file("config.json", text);
  try {
    load(fuzz::folder());
    std::abort();  // tensors must be missing
  } catch (const FileError&) {
  }
  try {
    ImageProcessor processor(Config(parse_json("input", text), "input"));
  } catch (const FileError&) {
  }
  try {
    Json json = parse_json("input", text);
    reduce_sizes(json);
    if (json.is_object()) add_sizes(json);
    make_model(json);
  } catch (const FileError&) {
  }
}
