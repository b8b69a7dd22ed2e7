#include "heed/io/safetensors.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "heed/core/nearest.h"
#include "heed/io/elements.h"
#include "heed/io/paths.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

std::string nearest_names(std::string_view wanted_name, const std::vector<std::string>& names) {
  constexpr size_t shown = 3, compared = 200;  // limits the time of an error message
  std::vector<std::pair<size_t, const std::string*>> ranked;
  ranked.reserve(names.size());
  for (const std::string& name : names)
    ranked.emplace_back(edit_distance(wanted_name.substr(0, compared), std::string_view(name).substr(0, compared)), &name);
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string out;
  for (size_t i = 0; i < std::min(shown, ranked.size()); ++i) out += (i ? ", " : "") + in_quotes(*ranked[i].second);
  return out;
}

Path checkpoint_in(const Path& folder) {
  const Path whole = folder / "model.safetensors", index = folder / "model.safetensors.index.json";
  const bool has_whole = path_exists(whole), has_index = path_exists(index);
  check<FileError>(!has_whole || !has_index, folder.string(),
                   ": found both model.safetensors and model.safetensors.index.json, expected one; ", "name the file you want");
  if (has_whole) return whole;
  if (has_index) return index;
  for (const char* ending : {".index.json", ".safetensors"}) {
    std::vector<Path> found;
    for (const Path& file : folder_entries(folder))
      if (file.native().ends_with(ending)) found.push_back(file);
    check<FileError>(found.size() <= 1, folder.string(), ": found ", found.size(), " files that end in ", ending,
                     ", expected one or model.safetensors; name the file you want");
    if (found.size() == 1) return found[0];
  }
  fail<FileError>(folder.string(), ": found no safetensors file, expected model.safetensors or model.safetensors.index.json");
}

// Shards must be in the folder of the index, also after resolving links: an index must not make us read arbitrary files.
Path shard_path(const Path& index, const std::string& file) {
  std::error_code error;
  const Path folder = fs::canonical(index.has_parent_path() ? index.parent_path() : Path("."), error);
  const Path path = fs::canonical(folder / file, error);
  check<FileError>(!error, index.string(), ": the file ", in_quotes(file), " it names cannot be found (", error.message(),
                   "); all shards must be next to the index");
  const bool inside = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
  check<FileError>(inside, index.string(), ": the file ", in_quotes(file),
                   " it names is a link out of the folder, expected a file inside; ",
                   "copy the file there (a download cache keeps links: open a real copy)");
  return path;
}

}  // namespace

Safetensors Safetensors::open(const Path& path) {
  const Path file = is_folder(path) ? checkpoint_in(path) : path;
  return file.native().ends_with(".json") ? open_index(file) : parse(MappedFile::open(file));
}

Safetensors Safetensors::parse(std::shared_ptr<const MappedFile> file) {
  Safetensors out;
  out.source_ = file->name();
  out.add(std::move(file), [](const std::string&) { return true; });
  out.sort_names();
  return out;
}

Safetensors Safetensors::open_index(const Path& path) {
  const std::map<std::string, std::string> files = parse_safetensors_index(path.string(), read_text(path, kMaxIndexBytes));
  std::set<std::string> shards;
  for (const auto& [name, file] : files) shards.insert(file);
  Safetensors out;
  out.source_ = path.string();
  for (const std::string& shard : shards) {
    out.add(MappedFile::open(shard_path(path, shard)), [&](const std::string& name) {
      const auto found = files.find(name);
      return found != files.end() && found->second == shard;  // ignore tensors that the index does not assign to this shard
    });
  }
  out.sort_names();
  for (const auto& [name, file] : files)
    check<FileError>(out.contains(name), path.string(), ": tensor ", in_quotes(name), " should be in ", in_quotes(file),
                     ", but that file does not contain it; the files do not belong together");
  return out;
}

void Safetensors::add(std::shared_ptr<const MappedFile> file, const Keep& keep) {
  const std::string& source = file->name();
  uint64_t header_bytes = 0;
  check<FileError>(file->size() >= int64_t{sizeof header_bytes}, source, ": found ", file->size(), " bytes, expected a safetensors file, ",
                   "which has at least 8; it was cut short");
  std::memcpy(&header_bytes, file->data(), sizeof header_bytes);
  const int64_t rest = file->size() - int64_t{sizeof header_bytes};
  check<FileError>(header_bytes <= uint64_t{kMaxHeaderBytes}, source, ": found a header of ", header_bytes, " bytes, expected at most ",
                   kMaxHeaderBytes, "; is this a safetensors file?");
  const auto size = static_cast<int64_t>(header_bytes);
  check<FileError>(size <= rest, source, ": found a header of ", size, " bytes, expected at most the ", rest,
                   " that follow; the file was cut short");

  Shard shard{file, int64_t{sizeof header_bytes} + size, {}};
  SafetensorsHeader header = parse_safetensors_header(source, file->text(sizeof header_bytes, size), rest - size);
  shard.entries = std::move(header.entries);
  metadata_.merge(header.metadata);
  file->release(0, shard.data_begin);  // the parsed entries replace it
  entries_ += static_cast<int64_t>(shard.entries.size());
  check<FileError>(entries_ <= kMaxHeaderItems, source_, ": found more than ", kMaxHeaderItems, " tensors, expected at most that many");
  for (size_t i = 0; i < shard.entries.size(); ++i)
    if (keep(shard.entries[i].name)) places_.push_back({static_cast<uint32_t>(shards_.size()), static_cast<uint32_t>(i)});
  shards_.push_back(std::move(shard));
}

void Safetensors::sort_names() {
  by_name_ = places_;
  std::sort(by_name_.begin(), by_name_.end(), [&](Place a, Place b) { return entry(a).name < entry(b).name; });
}

std::vector<std::string> Safetensors::names() const {
  std::vector<std::string> out;
  for (Place place : places_) out.push_back(entry(place).name);
  return out;
}

const Safetensors::Place* Safetensors::find(std::string_view name) const {
  const auto found =
      std::lower_bound(by_name_.begin(), by_name_.end(), name, [&](Place a, std::string_view b) { return entry(a).name < b; });
  return found != by_name_.end() && entry(*found).name == name ? &*found : nullptr;
}

const Safetensors::Place& Safetensors::place(std::string_view name) const {
  const Place* found = find(name);
  check<FileError>(found != nullptr, source_, ": found no tensor ", in_quotes(name), " among ", places_.size(), "; the nearest names are ",
                   found ? "" : nearest_names(name, names()));
  return *found;
}

const TensorEntry& Safetensors::entry(std::string_view name) const { return entry(place(name)); }

Tensor Safetensors::tensor(std::string_view name) const {
  const Place found = place(name);
  const Shard& shard = shards_[found.shard];
  const TensorEntry& wanted = entry(found);
  return elements_at(shard.file, shard.file->name() + ": tensor " + in_quotes(wanted.name), shard.data_begin + wanted.begin, wanted.shape,
                     wanted.dtype);
}

std::span<const std::byte> Safetensors::bytes_at(Place place) const {
  const Shard& shard = shards_[place.shard];
  const TensorEntry& wanted = entry(place);
  const int64_t bytes = checked_multiply(count(wanted.shape), static_cast<int64_t>(bytes_of(wanted.dtype)));
  return std::as_bytes(std::span(shard.file->text(shard.data_begin + wanted.begin, bytes)));
}

bool Safetensors::same(std::string_view a, std::string_view b) const {
  const Place x = place(a), y = place(b);
  if (entry(x).shape != entry(y).shape || entry(x).dtype != entry(y).dtype) return false;
  const std::span<const std::byte> left = bytes_at(x), right = bytes_at(y);
  return std::memcmp(left.data(), right.data(), left.size()) == 0;
}

int64_t Safetensors::numbers() const {
  int64_t total = 0;
  for (Place place : places_) total += count(entry(place).shape);
  return total;
}

void Safetensors::release(std::string_view name) const {
  const Place found = place(name);
  const Shard& shard = shards_[found.shard];
  const TensorEntry& entry_of = entry(found);
  shard.file->release(shard.data_begin + entry_of.begin, count(entry_of.shape) * static_cast<int64_t>(bytes_of(entry_of.dtype)));
}

}  // namespace heed
