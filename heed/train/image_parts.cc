#include "heed/train/image_parts.h"

#include "heed/core/memory_limit.h"
#include "heed/data/decoded.h"
#include "heed/io/printable.h"
#include "heed/models/inspect.h"

namespace heed {

bool decode_parts(const std::vector<ImageData*>& parts, const std::shared_ptr<const ImageProcessor>& reader, const std::string& data,
                  bool skip_bad, const JobOptions& chosen, std::vector<std::string>& notes) {
  int64_t all = 0, done = 0, left = memory_limit() / 4;
  for (const ImageData* part : parts) all += part->files ? part->count() : 0;
  std::vector<std::string> bad;
  bool again = false;
  for (ImageData* part : parts) {
    notes.insert(notes.end(), part->notes.begin(), part->notes.end());
    DecodedImages decoded = decode_images(std::move(*part), {.prepare = [reader](const Image& image) { return reader->prepared(image); },
                                                             .max_bytes = left,
                                                             .done =
                                                                 [&](int64_t more) {
                                                                   done += more;
                                                                   if (chosen.reading) chosen.reading(done, all);
                                                                 }});
    left -= decoded.bytes;
    again = again || (decoded.data.files && decoded.data.count() > 0 && decoded.bytes == 0);
    bad.insert(bad.end(), decoded.bad.begin(), decoded.bad.end());
    *part = std::move(decoded.data);
  }
  if (again) notes.push_back("the resized images do not fit into a quarter of the memory, so every epoch decodes the files again");
  if (bad.empty()) return !again;
  const std::string count = std::to_string(bad.size()) + " of " + std::to_string(all) + " images cannot be read";
  check<FileError>(skip_bad, printable(data), ": ", count, ":", listed_lines(bad),
                   "\n  Remove or replace them, or train without them: skip_bad=true");
  notes.push_back(count + " and are left out (skip_bad=true):" + listed_lines(bad));
  return !again;
}

void set_patch_map(Sample& sample, const Model& model, const TensorMap& outputs) {
  if (!outputs.contains("attentions.0")) return;
  const auto [rows, columns] = patch_grid(model, sample.image);
  const Tensor& map = outputs.at("attentions.0");                          // (1, H, N, M)
  if (map.size(2) != map.size(3) || map.size(2) < rows * columns) return;  // keys are not patches
  sample.map_rows = rows;
  sample.map_columns = columns;
  sample.map = patches_seen(rollout(outputs, "attentions."), map.size(2), rows * columns);
  float total = 0;
  for (const float weight : sample.map) total += weight;
  for (float& weight : sample.map) weight /= total;
}

}  // namespace heed
