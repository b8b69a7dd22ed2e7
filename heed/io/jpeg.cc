// JPEG through libjpeg, which leaves errors to its callers: we jump out of them, so functions around calls of it hold nothing
// that needs a destructor.
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <new>

#include <jpeglib.h>  // needs <cstdio> before it

#include <jerror.h>

#include "heed/io/picture_formats.h"

namespace heed {
namespace {

constexpr int kMostScans = 500;  // of a progressive picture; a few bytes can ask for a pass over all its pixels

struct Jpeg {
  jpeg_error_mgr errors = {};  // first: its address is that of the whole
  jpeg_progress_mgr progress = {};
  jpeg_decompress_struct state = {};
  jmp_buf escape = {};
  char fault[JMSG_LENGTH_MAX] = "";
  bool no_memory = false;

  ~Jpeg() { jpeg_destroy_decompress(&state); }
};

[[noreturn]] void give_up(j_common_ptr state) {
  Jpeg& jpeg = *reinterpret_cast<Jpeg*>(state->err);
  state->err->format_message(state, jpeg.fault);
  jpeg.no_memory = state->err->msg_code == JERR_OUT_OF_MEMORY;
  longjmp(jpeg.escape, 1);  // NOLINT: the way libjpeg has
}

// Warnings pass, as they do in Pillow; but a file that is cut short would come out grey.
void on_message(j_common_ptr state, int level) {
  static const int cut_short = [] {
    jpeg_error_mgr standard = {};
    jpeg_std_error(&standard);
    int code = 0;
    while (code <= standard.last_jpeg_message && std::strcmp(standard.jpeg_message_table[code], "Premature end of JPEG file") != 0) ++code;
    return code;
  }();
  if (level < 0 && state->err->msg_code == cut_short) give_up(state);
}

void on_progress(j_common_ptr state) {
  Jpeg& jpeg = *reinterpret_cast<Jpeg*>(state->err);
  if (jpeg.state.input_scan_number > kMostScans) {
    std::snprintf(jpeg.fault, sizeof(jpeg.fault), "more than %d scans", kMostScans);
    longjmp(jpeg.escape, 1);  // NOLINT
  }
}

// Memory that is refused is no fault of the file.
void check_read(bool ok, const Jpeg& jpeg, const std::string& name, const char* what) {
  if (jpeg.no_memory) throw std::bad_alloc();
  check<FileError>(ok, name, ": the JPEG ", what, ": ", jpeg.fault);
}

// False: jpeg.fault says why.
bool read_header(Jpeg& jpeg, std::span<const std::byte> file) {
  if (setjmp(jpeg.escape)) return false;  // NOLINT
  jpeg.state.err = jpeg_std_error(&jpeg.errors);
  jpeg.errors.error_exit = give_up;
  jpeg.errors.emit_message = on_message;
  jpeg_create_decompress(&jpeg.state);
  jpeg.progress.progress_monitor = on_progress;
  jpeg.state.progress = &jpeg.progress;
  jpeg_mem_src(&jpeg.state, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&jpeg.state, TRUE);
  jpeg.state.out_color_space = jpeg.state.num_components == 4 ? JCS_CMYK : JCS_RGB;
  return true;
}

// Pillow's conversion. Colours with black come inverted, as Adobe's programs write them.
void cmyk_to_rgb(const uint8_t* row, uint8_t* out, int64_t width) {
  for (int64_t x = 0; x < width; ++x)
    for (int64_t c = 0; c < 3; ++c) {
      const int light = row[4 * x + 3], product = (255 - row[4 * x + c]) * light + 128;
      out[3 * x + c] = static_cast<uint8_t>(light - ((product + (product >> 8)) >> 8));
    }
}

// `inks`: a row of width x 4, for pictures that are printed.
bool read_rows(Jpeg& jpeg, uint8_t* pixels, uint8_t* inks, int64_t width) {
  if (setjmp(jpeg.escape)) return false;  // NOLINT
  jpeg_start_decompress(&jpeg.state);
  while (jpeg.state.output_scanline < jpeg.state.output_height) {
    uint8_t* const out = pixels + int64_t{jpeg.state.output_scanline} * width * 3;
    JSAMPROW row = inks ? inks : out;
    jpeg_read_scanlines(&jpeg.state, &row, 1);
    if (inks) cmyk_to_rgb(inks, out, width);
  }
  jpeg_finish_decompress(&jpeg.state);
  return true;
}

}  // namespace

bool detail::is_jpeg(Bytes file) { return file.size() >= 3 && std::memcmp(file.data(), "\xff\xd8\xff", 3) == 0; }

PictureSize detail::jpeg_size(Bytes file, const std::string& name) {
  Jpeg jpeg;
  check_read(read_header(jpeg, file), jpeg, name, "header cannot be read");
  return {jpeg.state.image_width, jpeg.state.image_height};
}

Picture detail::parse_jpeg(Bytes file, const std::string& name, int64_t most_pixels) {
  Jpeg jpeg;
  check_read(read_header(jpeg, file), jpeg, name, "header cannot be read");
  const int64_t width = jpeg.state.image_width, height = jpeg.state.image_height;
  // Blocks of 64 pixels have at least one bit each; only arithmetic coding, which nobody uses, knows less.
  const int64_t most_in_file = jpeg.state.arith_code ? most_pixels : static_cast<int64_t>(file.size()) * 8 * 64;
  Picture out = blank_picture(name, width, height, most_pixels, most_in_file);
  std::vector<uint8_t> inks(jpeg.state.num_components == 4 ? static_cast<size_t>(width) * 4 : 0);
  const bool ok = read_rows(jpeg, out.pixels.data(), inks.empty() ? nullptr : inks.data(), width);
  check_read(ok, jpeg, name, "picture cannot be decoded");
  return out;
}

}  // namespace heed
