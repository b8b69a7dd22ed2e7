#include "heed/serve/run_files.h"

#include <fstream>
#include <sstream>

#include "heed/core/parse.h"
#include "heed/models/choices.h"
#include "heed/serve/answer.h"

namespace heed::serve {
namespace {

constexpr std::array<const char*, 3> kGrowingFiles{"metrics.jsonl", "heads.jsonl", "log.txt"};
constexpr int64_t kMostBytesAtOnce = 1 << 20;

int64_t file_bytes(const Path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

std::string bytes_in(const Path& path, int64_t begin, int64_t end) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(begin);
  std::string out(static_cast<size_t>(end - begin), '\0');
  file.read(out.data(), std::ssize(out));
  out.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return out;
}

// A line as an event: its name and data. Lines that do not parse are left out.
std::string event_of(size_t file, const std::string& line, const std::string& id) {
  if (file == 2) return sse_event(dump({{"line", line}}), "log", id);
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return "";
  if (file == 1) return sse_event(dump(json), "heads", id);
  return sse_event(dump(run_row(json)), json.value("kind", "step") == "epoch" ? "epoch" : "step", id);
}

}  // namespace

Json run_row(const Json& line) {
  Json figures = Json::object();
  for (const auto& [key, value] : line.items())
    if (key != "kind" && key != "epoch" && key != "step" && value.is_number()) figures[key] = value;
  return {{"epoch", line.value("epoch", 0)}, {"step", line.value("step", 0)}, {"figures", std::move(figures)}};
}

RunCursor RunCursor::at_end(const Path& run) {
  RunCursor out;
  for (size_t i = 0; i < kGrowingFiles.size(); ++i) out.bytes_[i] = file_bytes(run / kGrowingFiles[i]);
  return out;
}

RunCursor RunCursor::parse(const std::string& text) {
  RunCursor out;
  const std::vector<std::string> parts = split(text, '-');
  check<FileError>(parts.size() == out.bytes_.size(), "cursor: found ", in_quotes(text, 40), ", expected that of a run or an event");
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::optional<int64_t> bytes = parse_number<int64_t>(parts[i]);
    check<FileError>(bytes && *bytes >= 0, "cursor: found ", in_quotes(text, 40), ", expected that of a run or an event");
    out.bytes_[i] = *bytes;
  }
  return out;
}

std::string RunCursor::text() const {
  return std::to_string(bytes_[0]) + "-" + std::to_string(bytes_[1]) + "-" + std::to_string(bytes_[2]);
}

std::string RunCursor::next_events(const Path& run) {
  std::string out;
  for (size_t i = 0; i < kGrowingFiles.size(); ++i) {
    const Path path = run / kGrowingFiles[i];
    const int64_t size = file_bytes(path);
    if (size < bytes_[i]) bytes_[i] = size;  // rewound to a checkpoint
    if (size == bytes_[i]) continue;
    const std::string added = bytes_in(path, bytes_[i], std::min(size, bytes_[i] + kMostBytesAtOnce));
    for (size_t at = 0;;) {
      const size_t end = added.find('\n', at);
      if (end == std::string::npos) break;
      bytes_[i] += static_cast<int64_t>(end + 1 - at);
      out += event_of(i, added.substr(at, end - at), text());
      at = end + 1;
    }
    // A longer line is cut: what follows is read as a line.
    if (std::ssize(added) == kMostBytesAtOnce && added.find('\n') == std::string::npos) bytes_[i] += kMostBytesAtOnce;
  }
  return out;
}

}  // namespace heed::serve
