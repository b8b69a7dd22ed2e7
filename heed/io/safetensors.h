// Safetensors: named tensors in one file or in several with an index. Opening reads the header alone; the tensors borrow
// the mapped file. What is refused, and why, is in docs/formats.md.
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

#include "heed/core/tensor.h"
#include "heed/io/file.h"

namespace heed {

// Bounds that keep a hostile header from taking more memory than the file and 64 MiB.
inline constexpr int64_t kMaxHeaderBytes = 100'000'000;       // as the format has it
inline constexpr int64_t kMaxHeaderItems = int64_t{1} << 17;  // tensors and pairs of metadata in one checkpoint
inline constexpr int64_t kMaxHeaderText = int64_t{8} << 20;   // bytes of all names and all metadata
inline constexpr int64_t kMaxIndexBytes = int64_t{64} << 20;

using Metadata = std::map<std::string, std::string>;
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

const char* safetensors_name(DType dtype);

struct TensorEntry {
  std::string name;
  Shape shape;
  int64_t begin = 0;  // of its bytes, counted from the end of the header
  DType dtype = DType::f32;
};

struct SafetensorsHeader {
  std::deque<TensorEntry> entries;  // as they stand in the header; a deque, as a vector that grows would need them twice
  Metadata metadata;
};

// The header's text, checked against the number of bytes that follow it.
SafetensorsHeader parse_safetensors_header(const std::string& source, std::string_view text, int64_t data_bytes);

// Tensor name -> file name, from the text of a *.index.json.
std::map<std::string, std::string> parse_safetensors_index(const std::string& source, std::string_view text);

class Safetensors {
 public:
  // A file, a *.index.json, or a folder that holds one of them: model.safetensors, model.safetensors.index.json, or else the
  // only *.index.json or the only *.safetensors.
  static Safetensors open(const Path& path);
  static Safetensors parse(std::shared_ptr<const MappedFile> file);

  std::vector<std::string> names() const;  // as in the header; shard after shard
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  const TensorEntry& entry(std::string_view name) const;  // shape and dtype, without touching the data
  Tensor tensor(std::string_view name) const;
  void release(std::string_view name) const;                // its memory, while nobody holds the tensor: the next one is read again
  bool same(std::string_view a, std::string_view b) const;  // whether two tensors have equal shapes, dtypes and bytes
  int64_t numbers() const;                                  // in all tensors
  const std::string& source() const { return source_; }     // for messages: the file, or the index
  const Metadata& metadata() const { return metadata_; }    // of all shards; the first that has a key wins

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
  std::vector<Place> places_, by_name_;  // the same ones: as in the files, and sorted
  Metadata metadata_;
};

// Written whole or not at all, in the order given. Wide dtypes come first in the data, so that every tensor is aligned.
void write_safetensors(const Path& path, const NamedTensors& tensors, const Metadata& metadata = {});

// model-00001-of-0000N.safetensors and model.safetensors.index.json in a folder, which is made if need be. A shard has at
// most max_bytes of data, or one tensor. No file is replaced before all of them are on the disk.
void write_sharded(const Path& folder, const NamedTensors& tensors, int64_t max_bytes, const Metadata& metadata = {});

}  // namespace heed
