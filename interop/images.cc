// Server for interop/images.py. Each line of stdin is "resize IMAGE WIDTH HEIGHT FILTER" or "process FOLDER IMAGE", each followed by the
// .npy file for the result, (height, width, 3) or (3, height, width).
#include <iostream>

#include "heed/io/npy.h"
#include "heed/models/image_processor.h"

namespace {

using namespace heed;

void answer(const std::string& command) {
  std::string image, out;
  if (command == "resize") {
    int64_t width = 0, height = 0;
    int filter = 0;
    std::cin >> image >> width >> height >> filter >> out;
    const Image resized = resize(read_image(image), width, height, static_cast<Resample>(filter));
    write_npy(out, Tensor::from(resized.pixels, {resized.height, resized.width, 3}, kCpu));
  } else {
    std::string folder;
    std::cin >> folder >> image >> out;
    write_npy(out, ImageProcessor(Path(folder))(read_image(image)));
  }
}

}  // namespace

int main() {
  try {
    for (std::string command; std::cin >> command;) answer(command);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
