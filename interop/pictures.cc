// What interop/pictures.py asks heed for, line by line: "resize PICTURE WIDTH HEIGHT FILTER" or "process FOLDER PICTURE", each
// followed by the .npy file for the answer, (height, width, 3) or (3, height, width).
#include <iostream>

#include "heed/io/npy.h"
#include "heed/models/pictures.h"

namespace {

using namespace heed;

void answer(const std::string& what) {
  std::string picture, out;
  if (what == "resize") {
    int64_t width = 0, height = 0;
    int filter = 0;
    std::cin >> picture >> width >> height >> filter >> out;
    const Picture resized = resize(read_picture(picture), width, height, static_cast<Resample>(filter));
    write_npy(out, Tensor::from(resized.pixels, {resized.height, resized.width, 3}));
  } else {
    std::string folder;
    std::cin >> folder >> picture >> out;
    write_npy(out, PictureReader(Path(folder))(read_picture(picture)));
  }
}

}  // namespace

int main() {
  try {
    for (std::string what; std::cin >> what;) answer(what);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
