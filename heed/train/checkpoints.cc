// Checkpoints: safetensors files with the state of the run and a checksum in their metadata.
#include <zlib.h>

#include <algorithm>
#include <map>

#include "heed/core/parse.h"
#include "heed/io/elements.h"
#include "heed/train/run_folder.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStateKey = "heed.state";
constexpr const char* kChecksumKey = "heed.checksum";
constexpr std::string_view kBegin = "step-", kEnd = ".safetensors";

// "crc32 123 of 456 bytes": names, dtypes, shapes and elements in file order, then the state. Offsets are implied, as a safetensors file
// has no gaps.
std::string checksum_of(const NamedTensors& tensors, const std::string& state) {
  uLong sum = 0;
  int64_t bytes = 0;
  const auto take = [&](std::span<const std::byte> piece) {
    sum = crc32_z(sum, reinterpret_cast<const Bytef*>(piece.data()), piece.size());
    bytes += std::ssize(piece);
  };
  const auto take_text = [&](const std::string& text) {
    const std::string counted = std::to_string(text.size()) + ":" + text;  // the length distinguishes "ab", "c" from "a", "bc"
    take(std::as_bytes(std::span(counted)));
  };
  for (const auto& [name, tensor] : tensors) {
    take_text(name);
    std::string kind = safetensors_name(tensor.dtype());
    for (int64_t size : tensor.shape()) kind += ' ', kind += std::to_string(size);
    take_text(kind);
    each_byte_chunk(tensor, take);
  }
  take_text(state);
  return "crc32 " + std::to_string(sum) + " of " + std::to_string(bytes) + " bytes";
}

std::string text_of(const Json& state) {
  try {
    return state.dump();
  } catch (const Json::exception&) {
    fail("checkpoints: found text that is not UTF-8 in the state, expected UTF-8");
  }
}

Path file_of(const Path& folder, int64_t step) {
  const std::string digits = std::to_string(step);
  return folder / (std::string(kBegin) + std::string(digits.size() < 7 ? 7 - digits.size() : 0, '0') + digits + std::string(kEnd));
}

// By step, newest first.
std::map<int64_t, Path, std::greater<>> checkpoints_in(const Path& folder) {
  std::map<int64_t, Path, std::greater<>> out;
  if (!fs::exists(folder)) return out;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) continue;
    const std::string number = name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
    if (const std::optional<int64_t> step = parse_number<int64_t>(number)) out.emplace(*step, entry.path());
  }
  return out;
}

// Files that a killed process was writing. Only one process writes to a run, so they are unused.
void remove_temporaries(const Path& folder) {
  std::vector<Path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(".heed-") && name.ends_with(".tmp")) found.push_back(entry.path());
  }
  std::error_code ignored;
  for (const Path& path : found) fs::remove(path, ignored);
}

Checkpoint checkpoint_in(const Path& path) {
  const Safetensors file = Safetensors::parse(MappedFile::open(path));
  const Metadata& metadata = file.metadata();
  for (const char* key : {kStateKey, kChecksumKey})
    check<FileError>(metadata.contains(key), path.string(), ": found no ", key, ", expected a checkpoint that heed wrote");
  Checkpoint out;
  for (const std::string& name : file.names()) out.tensors.emplace_back(name, file.tensor(name));
  const std::string& state = metadata.at(kStateKey);
  const std::string found = checksum_of(out.tensors, state), &expected = metadata.at(kChecksumKey);
  check<FileError>(found == expected, path.string(), ": found ", found, ", expected ", in_quotes(expected), "; the file is damaged");
  out.state = parse_json(path.string() + ": " + kStateKey, state);
  return out;
}

}  // namespace

Checkpoints::Checkpoints(Path folder, int64_t keep) : folder_(std::move(folder)), keep_(keep) {
  check(keep >= 1, "checkpoints: found ", keep, " to keep, expected 1 or more");
}

void Checkpoints::write(int64_t step, const Checkpoint& checkpoint) {
  check(step >= 0, "checkpoints: found step ", step, ", expected 0 or more");
  std::error_code error;
  fs::create_directories(folder_, error);
  check<WriteError>(!error, folder_.string(), ": cannot create the folder (", error.message(), "); choose another place");
  remove_temporaries(folder_);
  const std::string state = text_of(checkpoint.state);
  write_safetensors(file_of(folder_, step), checkpoint.tensors,
                    {{kStateKey, state}, {kChecksumKey, checksum_of(checkpoint.tensors, state)}});
  int64_t kept = 0;
  for (const auto& [number, path] : checkpoints_in(folder_))
    if (number > step || kept++ >= keep_) fs::remove(path, error);
}

std::optional<Checkpoint> Checkpoints::newest(const std::function<void(const std::string& text)>& say) const {
  for (const auto& [step, path] : checkpoints_in(folder_)) {
    try {
      return checkpoint_in(path);
    } catch (const FileError& problem) {
      say(std::string(problem.what()) + "; using the previous checkpoint instead");
    }
  }
  return std::nullopt;
}

}  // namespace heed
