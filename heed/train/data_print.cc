#include "heed/train/data_print.h"

#include <zlib.h>

#include <algorithm>

namespace heed {
namespace {

constexpr int64_t kSampled = 32;

std::string counted(std::string_view text) { return std::to_string(text.size()) + ":" + std::string(text); }

}  // namespace

void DataPrint::add(std::string_view text) {
  const std::string whole = counted(text);  // else "ab" and "c" were the same as "a" and "bc"
  sum_ = crc32_z(sum_, reinterpret_cast<const Bytef*>(whole.data()), whole.size());
  bytes_ += std::ssize(text);
}

Json DataPrint::json() const { return {{"items", items_}, {"bytes", bytes_}, {"checksum", sum_}}; }

Json print_of(std::span<const std::string> texts) {
  DataPrint print;
  for (const std::string& text : texts) print.add(text), print.next();
  return print.json();
}

Json print_of(std::span<const std::vector<std::string>> documents) {
  DataPrint print;
  for (const std::vector<std::string>& document : documents) {
    for (const std::string& text : document) print.add(text);
    print.next();
  }
  return print.json();
}

Json print_of(const PictureData& data) {
  std::error_code error;
  DataPrint labels, names, sample;
  uintmax_t bytes = 0;
  for (int64_t i = 0; i < data.count(); ++i) {
    labels.add(std::to_string(data.labels[static_cast<size_t>(i)]));
    if (!data.files) continue;
    const Path path = data.file(i);
    names.add((path.parent_path().filename() / path.filename()).string());  // class and file: the folder may lie elsewhere by now
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
      const Picture picture = data.picture(i);
      sample.add(std::string_view(reinterpret_cast<const char*>(picture.pixels.data()), picture.pixels.size()));
    }
  }
  Json out{
      {"items", data.count()}, {"classes", data.classes}, {"labels", labels.json()["checksum"]}, {"sample", sample.json()["checksum"]}};
  if (data.files && data.count() > 0) out["names"] = names.json()["checksum"], out["bytes"] = bytes;
  return out;
}

}  // namespace heed
