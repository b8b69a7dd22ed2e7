#include "heed/cli/image_size_flag.h"

#include <array>

#include "heed/cli/nonfinite_flag.h"
#include "heed/core/parse.h"
#include "heed/models/resolution.h"

namespace heed::cli {
namespace {

constexpr int64_t kLargestSide = 8192;

// "48" or "96x64", width first -> height, width
std::array<int64_t, 2> sides_in(const std::string& command, const std::string& text) {
  const std::vector<std::string> sides = split(text, 'x');
  const int64_t width = parse_number<int64_t>(sides.front()).value_or(0), height = parse_number<int64_t>(sides.back()).value_or(0);
  check<UsageError>(sides.size() <= 2 && std::min(width, height) >= 1 && std::max(width, height) <= kLargestSide, command, ": --image ",
                    text, ", expected a side such as 48, or WIDTHxHEIGHT such as 96x64, from 1 to ", kLargestSide, " pixels");
  return {height, width};
}

}  // namespace

void ImageSizeFlag::add_to(Flags& flags) {
  flags.option("--image", size, "Vision transformers: images of this size instead of the model's; learned positions are interpolated")
      .value("SIZE");
}

std::string ImageSizeFlag::folder_for(const std::string& command, const std::string& model, bool allow_nonfinite) {
  if (size.empty()) return model;
  folder = std::make_shared<TemporaryFolder>();
  save_at_image_size(model, folder->path(), sides_in(command, size),
                     {.device = kCpu, .allow_nonfinite = nonfinite_warning(allow_nonfinite)});
  return folder->path().string();
}

}  // namespace heed::cli
