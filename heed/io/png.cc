// PNG with libpng, whose errors longjmp: functions that it may leave hold no objects with destructors.
#include <png.h>

#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <new>

#include "heed/io/image_formats.h"

namespace heed {
namespace {

constexpr int kHeader = 33;  // bytes: signature and IHDR chunk

struct Png {
  png_structp state = nullptr;
  png_infop info = nullptr;
  std::span<const std::byte> left = {};  // unread bytes of the file
  std::string* written = nullptr;
  char fault[160] = "";
  bool no_memory = false;

  ~Png() {
    if (written) {
      png_destroy_write_struct(&state, &info);
    } else {
      png_destroy_read_struct(&state, &info, nullptr);
    }
  }
};

[[noreturn]] void on_error(png_structp state, png_const_charp text) {
  Png& png = *static_cast<Png*>(png_get_error_ptr(state));
  std::strncpy(png.fault, text, sizeof(png.fault) - 1);
  png_longjmp(state, 1);
}

// Out of memory is not the fault of the file.
png_voidp allocate(png_structp state, png_alloc_size_t bytes) {
  void* const block = std::malloc(bytes);
  if (!block) static_cast<Png*>(png_get_mem_ptr(state))->no_memory = true;
  return block;
}

void release(png_structp, png_voidp block) { std::free(block); }

void on_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp state, png_bytep to, size_t bytes) {
  Png& png = *static_cast<Png*>(png_get_io_ptr(state));
  if (bytes > png.left.size()) png_error(state, "the file is cut short");
  std::memcpy(to, png.left.data(), bytes);
  png.left = png.left.subspan(bytes);
}

void write_bytes(png_structp state, png_bytep from, size_t bytes) {
  bool appended = true;
  try {
    static_cast<Png*>(png_get_io_ptr(state))->written->append(reinterpret_cast<const char*>(from), bytes);
  } catch (const std::exception&) {
    appended = false;
  }
  if (!appended) static_cast<Png*>(png_get_io_ptr(state))->no_memory = true;
  if (!appended) png_error(state, "out of memory");
}

void flush(png_structp) {}

// False: the reason is in png.fault.
bool start(Png& png) {
  if (setjmp(png_jmpbuf(png.state))) return false;                              // NOLINT: libpng's error handling
  png_set_user_limits(png.state, PNG_UINT_31_MAX, PNG_UINT_31_MAX);             // blank_image checks the product
  png_set_keep_unknown_chunks(png.state, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);  // skip profiles and comments
  png_set_read_fn(png.state, &png, read_bytes);
  png_read_info(png.state, png.info);
  png_set_expand(png.state);
  png_set_strip_16(png.state);
  png_set_strip_alpha(png.state);
  png_set_gray_to_rgb(png.state);
  return true;
}

bool read_png_rows(Png& png, uint8_t* pixels, int64_t width, int64_t height) {
  if (setjmp(png_jmpbuf(png.state))) return false;  // NOLINT
  const int passes = png_set_interlace_handling(png.state);
  png_read_update_info(png.state, png.info);
  if (png_get_rowbytes(png.state, png.info) != static_cast<size_t>(width) * 3) png_error(png.state, "rows of an unexpected length");
  for (int pass = 0; pass < passes; ++pass)
    for (int64_t row = 0; row < height; ++row) png_read_row(png.state, pixels + row * width * 3, nullptr);
  png_read_end(png.state, nullptr);
  return true;
}

bool write_rows(Png& png, const uint8_t* pixels, int64_t width, int64_t height) {
  if (setjmp(png_jmpbuf(png.state))) return false;  // NOLINT
  png_set_user_limits(png.state, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_write_fn(png.state, &png, write_bytes, flush);
  png_set_IHDR(png.state, png.info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), 8, PNG_COLOR_TYPE_RGB,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png.state, png.info);
  for (int64_t row = 0; row < height; ++row) png_write_row(png.state, pixels + row * width * 3);
  png_write_end(png.state, nullptr);
  return true;
}

void check_started(const Png& png) {
  if (png.no_memory) throw std::bad_alloc();
  check(png.state && png.info, "png: libpng cannot start: ", png.fault);
}

int64_t read_big_endian(std::span<const std::byte> file, size_t at) {
  int64_t out = 0;
  for (size_t i = 0; i < 4; ++i) out = out << 8 | std::to_integer<int64_t>(file[at + i]);
  return out;
}

}  // namespace

bool detail::is_png(Bytes file) { return file.size() >= 8 && png_sig_cmp(reinterpret_cast<png_const_bytep>(file.data()), 0, 8) == 0; }

ImageSize detail::png_size(Bytes file, const std::string& name) {
  check<FileError>(file.size() >= kHeader, name, ": found ", file.size(), " bytes, expected a PNG header of ", kHeader);
  check<FileError>(std::memcmp(file.data() + 12, "IHDR", 4) == 0, name, ": found a PNG file without a header");
  return {read_big_endian(file, 16), read_big_endian(file, 20)};
}

Image detail::parse_png(Bytes file, const std::string& name, int64_t max_pixels) {
  const auto [width, height] = png_size(file, name);
  // Deflate compresses at most 1032 to 1, and a pixel has at least one bit.
  Image out = blank_image(name, width, height, max_pixels, static_cast<int64_t>(file.size()) * 1032 * 8);
  Png png;
  png.state = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &png, on_error, on_warning, &png, allocate, release);
  if (png.state) png.info = png_create_info_struct(png.state);
  check_started(png);
  png.left = file;
  const bool ok = start(png) && read_png_rows(png, out.pixels.data(), out.width, out.height);
  if (png.no_memory) throw std::bad_alloc();
  check<FileError>(ok, name, ": the PNG image cannot be decoded: ", png.fault);
  return out;
}

std::string png_bytes(const Image& image) {
  const auto [width, height, pixels] = std::tie(image.width, image.height, image.pixels);
  check(width > 0 && height > 0 && width <= PNG_UINT_31_MAX && height <= PNG_UINT_31_MAX, "png: found an image of ", width, " x ", height,
        " pixels, expected sides from 1 to ", PNG_UINT_31_MAX);
  check(std::ssize(pixels) / 3 / width == height && std::ssize(pixels) == width * height * 3, "png: found ", pixels.size(),
        " bytes, expected 3 for each of ", width, " x ", height, " pixels");
  std::string out;
  Png png;
  png.written = &out;
  png.state = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &png, on_error, on_warning, &png, allocate, release);
  if (png.state) png.info = png_create_info_struct(png.state);
  check_started(png);
  const bool ok = write_rows(png, pixels.data(), width, height);
  if (png.no_memory) throw std::bad_alloc();
  check(ok, "png: the image cannot be encoded: ", png.fault);
  return out;
}

}  // namespace heed
