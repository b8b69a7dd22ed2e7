// JPEG with libjpeg. Its error callbacks longjmp, so functions that call it hold no objects with destructors.
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <new>

#include <jpeglib.h>  // needs <cstdio> before it

#include <jerror.h>

#include "heed/io/image_formats.h"

namespace heed {
namespace {

constexpr int kMaxScans = 500;  // of a progressive image; each costs a pass over all pixels and needs only a few bytes

struct Jpeg {
  jpeg_error_mgr errors = {};  // first member: its address is that of the Jpeg
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
  longjmp(jpeg.escape, 1);  // NOLINT: libjpeg's error handling
}

// Warnings are ignored, as in Pillow, except truncation, which would give grey pixels.
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
  if (jpeg.state.input_scan_number > kMaxScans) {
    std::snprintf(jpeg.fault, sizeof(jpeg.fault), "more than %d scans", kMaxScans);
    longjmp(jpeg.escape, 1);  // NOLINT
  }
}

// Out of memory is not the fault of the file.
void check_read(bool ok, const Jpeg& jpeg, const std::string& name, const char* what) {
  if (jpeg.no_memory) throw std::bad_alloc();
  check<FileError>(ok, name, ": the JPEG ", what, ": ", jpeg.fault);
}

// False: the reason is in jpeg.fault.
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

// Pillow's conversion. CMYK is stored inverted, as Adobe's programs write it.
void cmyk_to_rgb(const uint8_t* row, uint8_t* out, int64_t width) {
  for (int64_t x = 0; x < width; ++x)
    for (int64_t c = 0; c < 3; ++c) {
      const int light = row[4 * x + 3], product = (255 - row[4 * x + c]) * light + 128;
      out[3 * x + c] = static_cast<uint8_t>(light - ((product + (product >> 8)) >> 8));
    }
}

// `cmyk_row`: (width, 4), for CMYK images; otherwise null.
bool read_jpeg_rows(Jpeg& jpeg, uint8_t* pixels, uint8_t* cmyk_row, int64_t width) {
  if (setjmp(jpeg.escape)) return false;  // NOLINT
  jpeg_start_decompress(&jpeg.state);
  while (jpeg.state.output_scanline < jpeg.state.output_height) {
    uint8_t* const out = pixels + int64_t{jpeg.state.output_scanline} * width * 3;
    JSAMPROW row = cmyk_row ? cmyk_row : out;
    jpeg_read_scanlines(&jpeg.state, &row, 1);
    if (cmyk_row) cmyk_to_rgb(cmyk_row, out, width);
  }
  jpeg_finish_decompress(&jpeg.state);
  return true;
}

}  // namespace

bool detail::is_jpeg(Bytes file) { return file.size() >= 3 && std::memcmp(file.data(), "\xff\xd8\xff", 3) == 0; }

ImageSize detail::jpeg_size(Bytes file, const std::string& name) {
  Jpeg jpeg;
  check_read(read_header(jpeg, file), jpeg, name, "header cannot be read");
  return {jpeg.state.image_width, jpeg.state.image_height};
}

Image detail::parse_jpeg(Bytes file, const std::string& name, int64_t max_pixels) {
  Jpeg jpeg;
  check_read(read_header(jpeg, file), jpeg, name, "header cannot be read");
  const int64_t width = jpeg.state.image_width, height = jpeg.state.image_height;
  // Every block of 64 pixels takes at least one bit, except with arithmetic coding, which is hardly used.
  const int64_t max_in_file = jpeg.state.arith_code ? max_pixels : static_cast<int64_t>(file.size()) * 8 * 64;
  Image out = blank_image(name, width, height, max_pixels, max_in_file);
  std::vector<uint8_t> cmyk_row(jpeg.state.num_components == 4 ? static_cast<size_t>(width) * 4 : 0);
  const bool ok = read_jpeg_rows(jpeg, out.pixels.data(), cmyk_row.empty() ? nullptr : cmyk_row.data(), width);
  check_read(ok, jpeg, name, "image cannot be decoded");
  return out;
}

}  // namespace heed
