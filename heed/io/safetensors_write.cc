// Writes safetensors: one file, or shards with an index.
#include <algorithm>
#include <numeric>
#include <set>

#include "heed/io/elements.h"
#include "heed/io/json.h"
#include "heed/io/paths.h"
#include "heed/io/safetensors.h"

namespace heed {
namespace {

int64_t bytes_of_tensor(const Tensor& tensor) { return tensor.count() * static_cast<int64_t>(bytes_of(tensor.dtype())); }

std::string json_text(const std::string& source, const std::string& text) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    fail<FileError>(source, ": found the name or metadata ", in_quotes(text), ", expected UTF-8");
  }
}

// Data order: wide elements first, otherwise as given. With a header size that is a multiple of 8, all tensors are aligned.
std::vector<size_t> data_order(const NamedTensors& tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return bytes_of(tensors[a].second.dtype()) > bytes_of(tensors[b].second.dtype()); });
  return order;
}

std::string header_text(const std::string& source, const NamedTensors& tensors, const std::vector<size_t>& order,
                        const Metadata& metadata) {
  std::vector<int64_t> begin(tensors.size());
  int64_t end = 0;
  for (size_t i : order) {
    begin[i] = end;
    end += bytes_of_tensor(tensors[i].second);
  }
  std::string text = "{";
  const auto member = [&](const std::string& name) {
    if (text.back() != '{') text += ',';
    text += json_text(source, name) + ":";
  };
  if (!metadata.empty()) {
    member("__metadata__");
    text += '{';
    for (const auto& [key, value] : metadata) {
      member(key);
      text += json_text(source, value);
    }
    text += '}';
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, tensor] = tensors[i];
    member(name);
    text += std::string("{\"dtype\":\"") + safetensors_name(tensor.dtype()) + "\",\"shape\":[";
    for (int64_t size : tensor.shape()) text += std::to_string(size) + ",";
    if (text.back() == ',') text.pop_back();
    text += "],\"data_offsets\":[" + std::to_string(begin[i]) + "," + std::to_string(begin[i] + bytes_of_tensor(tensor)) + "]}";
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  // Parsing it back detects duplicate names and anything else that heed would refuse.
  check<FileError>(static_cast<int64_t>(text.size()) <= kMaxHeaderBytes, source, ": found a header of ", text.size(),
                   " bytes, expected at most ", kMaxHeaderBytes, "; write several files");
  parse_safetensors_header(source, text, end);
  return text;
}

void write_all(FileWriter& out, const std::string& source, const NamedTensors& tensors, const Metadata& metadata) {
  for (const auto& [name, tensor] : tensors) {
    check(tensor.defined(), "write_safetensors: tensor ", in_quotes(name), " is undefined, expected one with data");
    check(name != "__metadata__", "write_safetensors: a tensor is named __metadata__, which the format reserves");
  }
  const std::vector<size_t> order = data_order(tensors);
  const std::string header = header_text(source, tensors, order, metadata);
  const uint64_t size = header.size();
  out.write(std::as_bytes(std::span(&size, 1)));
  out.write(header);
  for (size_t i : order) write_elements(out, tensors[i].second);
}

std::vector<NamedTensors> split_into_shards(const NamedTensors& tensors, int64_t max_bytes) {
  std::vector<NamedTensors> shards(1);
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) {
    const int64_t more = bytes_of_tensor(tensor);
    if (!shards.back().empty() && bytes + more > max_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().emplace_back(name, tensor);
    bytes += more;
  }
  return shards;
}

std::string shard_name(size_t number, size_t of) {
  const auto five_digits = [](size_t value) { return std::to_string(100'000 + value).substr(1); };
  return "model-" + five_digits(number) + "-of-" + five_digits(of) + ".safetensors";
}

bool is_shard_name(const std::string& name) {
  const std::string pattern = shard_name(0, 0);
  return std::equal(name.begin(), name.end(), pattern.begin(), pattern.end(),
                    [](char found, char expected) { return expected == '0' ? '0' <= found && found <= '9' : found == expected; });
}

}  // namespace

void write_safetensors(const Path& path, const NamedTensors& tensors, const Metadata& metadata) {
  FileWriter out(path);
  write_all(out, path.string(), tensors, metadata);
  out.commit();
}

void write_sharded(const Path& folder, const NamedTensors& tensors, int64_t max_bytes, const Metadata& metadata) {
  check(max_bytes > 0, "write_sharded: shards of ", max_bytes, " bytes, expected 1 or more");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  check<WriteError>(!error, folder.string(), ": the folder cannot be created (", error.message(), "); choose another location");
  const std::vector<NamedTensors> shards = split_into_shards(tensors, max_bytes);
  Json files = Json::object();
  int64_t total = 0;
  std::deque<FileWriter> written;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string file = shard_name(i + 1, shards.size());
    write_all(written.emplace_back(folder / file), (folder / file).string(), shards[i], metadata);
    written.back().finish();
    for (const auto& [name, tensor] : shards[i]) {
      check<FileError>(files.emplace(name, file).second, folder.string(), ": found tensor ", in_quotes(name),
                       " a second time, expected every name once");
      total += bytes_of_tensor(tensor);
    }
  }
  for (FileWriter& file : written) file.commit();
  write_json(folder / "model.safetensors.index.json", {{"metadata", {{"total_size", total}}}, {"weight_map", files}});
}

void remove_stale_shards(const Path& folder) {
  const Path index = folder / "model.safetensors.index.json";
  std::set<std::string> listed;
  if (path_exists(index))
    for (const auto& [tensor, file] : parse_safetensors_index(index.string(), read_text(index, kMaxIndexBytes))) listed.insert(file);
  for (const Path& entry : folder_entries(folder))
    if (const std::string name = entry.filename(); is_shard_name(name) && !listed.contains(name)) remove_path(entry);
}

}  // namespace heed
