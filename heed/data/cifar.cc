// CIFAR-10 and CIFAR-100 (Krizhevsky 2009) binary files: records of one label (CIFAR-100: coarse, then fine), then 32 x 32 bytes each of
// red, green and blue. The files stay mapped; images are assembled on request.
#include <algorithm>
#include <memory>

#include "heed/data/image_sources.h"

namespace heed::detail {
namespace {

constexpr int64_t kSide = 32, kPlane = kSide * kSide;

struct Kind {
  int64_t classes, labels;  // labels: label bytes per record; the last one is used
  const char* names;        // file of class names
  int64_t record() const { return labels + 3 * kPlane; }
};
constexpr Kind kTen{10, 1, "batches.meta.txt"}, kHundred{100, 2, "fine_label_names.txt"};

struct Batches {
  Kind kind;
  std::vector<std::shared_ptr<const MappedFile>> files = {};
  std::vector<int64_t> ends = {};  // cumulative image counts

  std::pair<size_t, int64_t> locate(int64_t i) const {  // file, index in it
    check(i >= 0 && !ends.empty() && i < ends.back(), "image: found number ", i, ", expected one below ", ends.empty() ? 0 : ends.back());
    const auto file = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), i) - ends.begin());
    return {file, i - (file == 0 ? 0 : ends[file - 1])};
  }
  Image image(int64_t i) const {
    const auto [file, number] = locate(i);
    const auto* red = reinterpret_cast<const uint8_t*>(files[file]->data()) + number * kind.record() + kind.labels;
    Image out{kSide, kSide};
    out.pixels.resize(3 * kPlane);
    uint8_t* to = out.pixels.data();
    for (int64_t pixel = 0; pixel < kPlane; ++pixel, to += 3) {
      to[0] = red[pixel];
      to[1] = red[pixel + kPlane];
      to[2] = red[pixel + 2 * kPlane];
    }
    return out;
  }
};

// Sorted, because the order of directory entries is unspecified.
std::vector<Path> batches_of_ten(const Path& folder) {
  std::vector<Path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("data_batch_") && name.ends_with(".bin")) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool file_exists(const Path& path) { return std::filesystem::exists(path); }

bool is_ten(const Path& folder) { return file_exists(folder / "test_batch.bin") || !batches_of_ten(folder).empty(); }

std::vector<Path> files_of(const Path& folder, DataPart part, bool ten) {
  if (part == DataPart::train && ten) return batches_of_ten(folder);
  if (part == DataPart::validation) return {};
  const Path file = folder / (part == DataPart::train ? "train.bin" : ten ? "test_batch.bin" : "test.bin");
  return file_exists(file) ? std::vector{file} : std::vector<Path>{};
}

}  // namespace

bool is_cifar(const Path& folder) { return is_ten(folder) || file_exists(folder / "train.bin") || file_exists(folder / "test.bin"); }

ImageData read_cifar(const Path& folder, DataPart part) {
  const bool ten = is_ten(folder);
  const Kind kind = ten ? kTen : kHundred;
  const auto batches = std::make_shared<Batches>(Batches{kind});
  ImageData out{.source = folder.string()};
  const Path names = folder / kind.names;
  if (file_exists(names))
    out.classes = read_names(names, kind.classes);
  else if (ten)
    out.classes = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  else
    out.classes = numbered_names(kind.classes);
  for (const Path& path : files_of(folder, part, ten)) {
    const auto file = MappedFile::open(path);
    check<FileError>(file->size() > 0 && file->size() % kind.record() == 0, path.string(), ": found ", file->size(),
                     " bytes, expected a multiple of ", kind.record(), ", which is one image of CIFAR-", kind.classes);
    for (int64_t i = 0; i < file->size() / kind.record(); ++i) {
      const auto label = std::to_integer<int64_t>(file->data()[i * kind.record() + kind.labels - 1]);
      check<FileError>(label < kind.classes, path.string(), ": image ", i, " has label ", label, ", expected one below ", kind.classes);
      out.labels.push_back(label);
    }
    batches->files.push_back(file);
    batches->ends.push_back(out.count());
  }
  out.image = [batches](int64_t i) { return batches->image(i); };
  out.name = [batches](int64_t i) {
    const auto [file, number] = batches->locate(i);
    return batches->files[file]->name() + ": image " + std::to_string(number);
  };
  return out;
}

}  // namespace heed::detail
