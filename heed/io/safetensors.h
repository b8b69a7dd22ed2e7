// Safetensors: named tensors in one file or in shards with an index. Opening reads only the header; tensors borrow the mapped file.
// docs/formats.md lists what is refused and why.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/core/api.h"
#include "heed/core/tensor.h"
#include "heed/io/file.h"

namespace HEED_API heed {

// Limits: a hostile header cannot use more memory than the file size plus 64 MiB.
inline constexpr int64_t kMaxHeaderBytes = 100'000'000;       // limit of the format
inline constexpr int64_t kMaxHeaderItems = int64_t{1} << 17;  // tensors and metadata entries in one checkpoint
inline constexpr int64_t kMaxHeaderText = int64_t{8} << 20;   // bytes of all names and all metadata
inline constexpr int64_t kMaxIndexBytes = int64_t{64} << 20;  // of a *.index.json

using Metadata = std::map<std::string, std::string>;               // the file's own key-value pairs
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;  // in the order of the file

const char* safetensors_name(DType dtype);  // "F32", "BF16", ...

// A tensor as the header describes it.
struct TensorEntry {
  std::string name;
  Shape shape;
  int64_t begin = 0;  // byte offset after the header
  DType dtype = DType::f32;
};

// The header of a file.
struct SafetensorsHeader {
  std::deque<TensorEntry> entries;  // in header order; a deque, because a growing vector needs twice the memory
  Metadata metadata;
};

// Parses the header and checks it against the size of the data after it.
SafetensorsHeader parse_safetensors_header(const std::string& source, std::string_view text, int64_t data_bytes);

// Tensor name -> file name, from the text of a *.index.json.
std::map<std::string, std::string> parse_safetensors_index(const std::string& source, std::string_view text);

// An open checkpoint: one file or several shards.
class Safetensors {
 public:
  // A file, a *.index.json, or a folder: its model.safetensors, model.safetensors.index.json, the only *.index.json or the only
  // *.safetensors.
  static Safetensors open(const Path& path);
  static Safetensors parse(std::shared_ptr<const MappedFile> file);

  std::vector<std::string> names() const;  // in header order, by shard
  // Whether there is a tensor of that name.
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  const TensorEntry& entry(std::string_view name) const;  // shape and dtype; does not touch the data
  // The tensor, which borrows the mapped file.
  Tensor tensor(std::string_view name) const;
  void release(std::string_view name) const;  // frees its pages; no tensor may hold them. The next access reads the file again.
  bool same(std::string_view a, std::string_view b) const;  // equal shapes, dtypes and bytes
  int64_t numbers() const;                                  // elements of all tensors
  const std::string& source() const { return source_; }     // file or index, for error messages
  const Metadata& metadata() const { return metadata_; }    // of all shards; the first value of a key wins

 private:
  struct Shard {
    std::shared_ptr<const MappedFile> file;
    int64_t data_begin;
    std::deque<TensorEntry> entries;
  };
  struct Place {
    uint32_t shard, entry;
  };
  using Keep = std::function<bool(const std::string& name)>;

  static Safetensors open_index(const Path& path);
  void add(std::shared_ptr<const MappedFile> file, const Keep& keep);
  void sort_names();
  const TensorEntry& entry(Place place) const { return shards_[place.shard].entries[place.entry]; }
  const Place* find(std::string_view name) const;
  const Place& place(std::string_view name) const;

  std::span<const std::byte> bytes_at(Place place) const;

  std::string source_;
  std::deque<Shard> shards_;
  int64_t entries_ = 0;                  // of all shards
  std::vector<Place> places_, by_name_;  // in file order; sorted by name
  Metadata metadata_;
};

// Atomic. The header keeps the given order; in the data, wide dtypes come first so that every tensor is aligned.
void write_safetensors(const Path& path, const NamedTensors& tensors, const Metadata& metadata = {});

// Writes model-00001-of-0000N.safetensors and model.safetensors.index.json into a folder, which is created if needed. A shard has at
// most max_bytes of data, or one tensor. No file is replaced before all are on disk.
void write_sharded(const Path& folder, const NamedTensors& tensors, int64_t max_bytes, const Metadata& metadata = {});

// Removes the files model-*-of-*.safetensors that model.safetensors.index.json does not list; without an index all of them.
void remove_stale_shards(const Path& folder);

}  // namespace heed
