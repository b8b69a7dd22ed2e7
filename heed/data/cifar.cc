// CIFAR-10 and CIFAR-100 (Krizhevsky 2009) as binary files: records of one label (of CIFAR-100 two, the coarse one first), then 32 x 32
// bytes of red, of green and of blue. The files stay mapped; a picture is put together when it is asked for.
#include <algorithm>
#include <memory>

#include "heed/data/picture_sources.h"

namespace heed::detail {
namespace {

constexpr int64_t kSide = 32, kPlane = kSide * kSide;

struct Kind {
  int64_t classes, labels;  // labels: bytes before the picture; the last one counts
  const char* names;        // the file of names
  int64_t record() const { return labels + 3 * kPlane; }
};
constexpr Kind kTen{10, 1, "batches.meta.txt"}, kHundred{100, 2, "fine_label_names.txt"};

struct Batches {
  Kind kind;
  std::vector<std::shared_ptr<const MappedFile>> files = {};
  std::vector<int64_t> ends = {};  // how many pictures there are up to the end of each file

  std::pair<size_t, int64_t> place(int64_t i) const {  // file, number in it
    check(i >= 0 && !ends.empty() && i < ends.back(), "picture: found number ", i, ", expected one below ", ends.empty() ? 0 : ends.back());
    const auto file = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), i) - ends.begin());
    return {file, i - (file == 0 ? 0 : ends[file - 1])};
  }
  Picture picture(int64_t i) const {
    const auto [file, number] = place(i);
    const auto* red = reinterpret_cast<const uint8_t*>(files[file]->data()) + number * kind.record() + kind.labels;
    Picture out{kSide, kSide};
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

// Sorted: the order of a folder is not the same everywhere.
std::vector<Path> batches_of_ten(const Path& folder) {
  std::vector<Path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("data_batch_") && name.ends_with(".bin")) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool there(const Path& path) { return std::filesystem::exists(path); }

bool is_ten(const Path& folder) { return there(folder / "test_batch.bin") || !batches_of_ten(folder).empty(); }

std::vector<Path> files_of(const Path& folder, DataPart part, bool ten) {
  if (part == DataPart::train && ten) return batches_of_ten(folder);
  if (part == DataPart::validation) return {};
  const Path file = folder / (part == DataPart::train ? "train.bin" : ten ? "test_batch.bin" : "test.bin");
  return there(file) ? std::vector{file} : std::vector<Path>{};
}

}  // namespace

bool is_cifar(const Path& folder) { return is_ten(folder) || there(folder / "train.bin") || there(folder / "test.bin"); }

PictureData read_cifar(const Path& folder, DataPart part) {
  const bool ten = is_ten(folder);
  const Kind kind = ten ? kTen : kHundred;
  const auto batches = std::make_shared<Batches>(Batches{kind});
  PictureData out{.source = folder.string()};
  const Path names = folder / kind.names;
  if (there(names))
    out.classes = read_names(names, kind.classes);
  else if (ten)
    out.classes = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  else
    out.classes = numbered_names(kind.classes);
  for (const Path& path : files_of(folder, part, ten)) {
    const auto file = MappedFile::open(path);
    check<FileError>(file->size() > 0 && file->size() % kind.record() == 0, path.string(), ": found ", file->size(),
                     " bytes, expected a multiple of ", kind.record(), ", which is one picture of CIFAR-", kind.classes);
    for (int64_t i = 0; i < file->size() / kind.record(); ++i) {
      const auto label = std::to_integer<int64_t>(file->data()[i * kind.record() + kind.labels - 1]);
      check<FileError>(label < kind.classes, path.string(), ": picture ", i, " has label ", label, ", expected one below ", kind.classes);
      out.labels.push_back(label);
    }
    batches->files.push_back(file);
    batches->ends.push_back(out.count());
  }
  out.picture = [batches](int64_t i) { return batches->picture(i); };
  out.name = [batches](int64_t i) {
    const auto [file, number] = batches->place(i);
    return batches->files[file]->name() + ": picture " + std::to_string(number);
  };
  return out;
}

}  // namespace heed::detail
