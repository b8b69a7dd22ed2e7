#include "heed/io/file_kind.h"

#include <array>
#include <fstream>
#include <utility>

namespace heed {
namespace {

using namespace std::string_view_literals;

// Longer prefixes first.
constexpr std::array<std::pair<std::string_view, const char*>, 18> kSignatures = {{
    {"\xFF\xFE\0\0"sv, "UTF-32 text (little-endian)"},
    {"\0\0\xFE\xFF"sv, "UTF-32 text (big-endian)"},
    {"\xFF\xFE"sv, "UTF-16 text (little-endian)"},
    {"\xFE\xFF"sv, "UTF-16 text (big-endian)"},
    {"\x89PNG\r\n\x1a\n"sv, "a PNG image"},
    {"\xFF\xD8\xFF"sv, "a JPEG image"},
    {"II*\0"sv, "a TIFF image"},
    {"MM\0*"sv, "a TIFF image"},
    {"%PDF-"sv, "a PDF document"},
    {"\x1f\x8b"sv, "gzip data"},
    {"PK\x03\x04"sv, "a zip archive or an Office document"},
    {"\xFD"
     "7zXZ\0"sv,
     "xz data"},
    {"\x28\xB5\x2F\xFD"sv, "zstd data"},
    {"7z\xBC\xAF\x27\x1C"sv, "a 7-Zip archive"},
    {"\x7F"
     "ELF"sv,
     "a program"},
    {"\x93NUMPY"sv, "a NumPy file"},
    {"SQLite format 3\0"sv, "an SQLite database"},
    {"\xD0\xCF\x11\xE0"sv, "an old Office document"},
}};

}  // namespace

std::string kind_of_bytes(std::string_view first) {
  first = first.substr(0, 64);
  for (const auto& [signature, kind] : kSignatures)
    if (first.starts_with(signature)) return kind;
  if (first.starts_with("RIFF") && first.substr(0, 12).ends_with("WEBP")) return "a WebP image";
  if (first.starts_with("BZh") && first.substr(0, 10).ends_with("1AY&SY")) return "bzip2 data";
  const bool has_zero = first.find('\0') != first.npos;  // text may start with the same letters
  if (has_zero && (first.starts_with("GIF87a") || first.starts_with("GIF89a"))) return "a GIF image";
  if (has_zero && first.starts_with("PAR1")) return "a Parquet file";
  if (first.size() < 4) return "";
  // Without a byte order mark: ASCII in UTF-16 has a zero in every second byte.
  if (first[0] != 0 && first[1] == 0 && first[2] != 0 && first[3] == 0) return "UTF-16 text (little-endian)";
  if (first[0] == 0 && first[1] != 0 && first[2] == 0 && first[3] != 0) return "UTF-16 text (big-endian)";
  return "";
}

std::string kind_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string first(64, '\0');
  in.read(first.data(), static_cast<std::streamsize>(first.size()));
  first.resize(static_cast<size_t>(in.gcount()));
  return kind_of_bytes(first);
}

std::string advice_for(const std::string& kind, const std::string& path) {
  if (kind.starts_with("UTF-16"))
    return "; convert it first: iconv -f UTF-16" + std::string(kind.find("little") != kind.npos ? "LE" : "BE") + " -t UTF-8 " + path +
           " > NEW";
  if (kind.starts_with("UTF-32")) return "; convert it first: iconv -f UTF-32 -t UTF-8 " + path + " > NEW";
  if (kind.find("Office") != kind.npos) return "; save the sheet as CSV (UTF-8) first";
  if (kind == "gzip data" || kind.ends_with("z data") || kind.ends_with("bzip2 data") || kind == "zstd data" || kind == "a 7-Zip archive")
    return "; unpack it first";
  return "";
}

}  // namespace heed
