// Images of a task: decoding the files of all parts, and the attention of a model to the patches of an image.
#pragma once

#include "heed/models/image_processor.h"
#include "heed/train/image_size.h"

namespace heed {

// Decodes the image files of all parts once, resized. Unreadable files are an error, or left out with skip_bad. data: for messages.
// -> whether all images are in memory, or need no decoding
bool decode_parts(const std::vector<ImageData*>& parts, const std::shared_ptr<const ImageProcessor>& reader, const std::string& data,
                  bool skip_bad, const JobOptions& chosen, std::vector<std::string>& notes);

// Sets the map of a sample with an image: attention rollout from the class token, or from all patches, to the patches. outputs: of a call
// for that image, with attentions. No map if the keys are not patches, e.g. with pooled attention
void set_patch_map(Sample& sample, const Model& model, const TensorMap& outputs);

}  // namespace heed
