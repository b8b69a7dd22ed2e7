#include "heed/train/data_fingerprint.h"

#include <zlib.h>

#include <algorithm>

namespace heed {
namespace {

constexpr int64_t kSampled = 32;

std::string with_length(std::string_view text) { return std::to_string(text.size()) + ":" + std::string(text); }

}  // namespace

void DataFingerprint::add(std::string_view text) {
  const std::string whole = with_length(text);  // the length distinguishes "ab", "c" from "a", "bc"
  sum_ = crc32_z(sum_, reinterpret_cast<const Bytef*>(whole.data()), whole.size());
  bytes_ += std::ssize(text);
}

Json DataFingerprint::json() const { return {{"items", items_}, {"bytes", bytes_}, {"checksum", sum_}}; }

Json fingerprint_of(std::span<const std::string> texts) {
  DataFingerprint fingerprint;
  for (const std::string& text : texts) fingerprint.add(text), fingerprint.next();
  return fingerprint.json();
}

Json fingerprint_of(std::span<const std::vector<std::string>> documents) {
  DataFingerprint fingerprint;
  for (const std::vector<std::string>& document : documents) {
    for (const std::string& text : document) fingerprint.add(text);
    fingerprint.next();
  }
  return fingerprint.json();
}

Json fingerprint_of(const ImageData& data) {
  std::error_code error;
  DataFingerprint labels, names, sample;
  uintmax_t bytes = 0;
  for (int64_t i = 0; i < data.count(); ++i) {
    labels.add(std::to_string(data.labels[static_cast<size_t>(i)]));
    if (!data.files) continue;
    const Path path = data.file(i);
    names.add((path.parent_path().filename() / path.filename()).string());  // class and file only: the folder may have moved
    const uintmax_t size = std::filesystem::file_size(path, error);
    bytes += error ? 0 : size;
  }
  const int64_t some = std::min(kSampled, data.count());
  for (int64_t k = 0; k < some; ++k) {
    const int64_t i = k * data.count() / some;
    if (data.files) {
      const auto file = MappedFile::open(data.file(i));
      sample.add(file->text(0, file->size()));
    } else {
      const Image image = data.image(i);
      sample.add(std::string_view(reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()));
    }
  }
  Json out{
      {"items", data.count()}, {"classes", data.classes}, {"labels", labels.json()["checksum"]}, {"sample", sample.json()["checksum"]}};
  if (data.files && data.count() > 0) out["names"] = names.json()["checksum"], out["bytes"] = bytes;
  return out;
}

}  // namespace heed
