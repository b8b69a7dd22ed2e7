#include "heed/cli/parts_file.h"

#include <algorithm>
#include <cstring>

#include "heed/train/data_fingerprint.h"

namespace heed::cli {
namespace {

constexpr char kPart = 'P', kValue = 'V';  // the first letter of a record: a result, or what must not change

struct RecordHeader {
  uint64_t bytes;
  uint64_t checksum;
};

uint64_t checksum_of(std::string_view bytes) {
  DataFingerprint fingerprint;
  fingerprint.add(bytes);
  return fingerprint.json().at("checksum").get<uint64_t>();
}

// The record at an offset; none if it is not complete.
std::optional<std::string_view> record_at(const MappedFile& file, int64_t at) {
  RecordHeader header{};
  if (file.size() - at < static_cast<int64_t>(sizeof header)) return std::nullopt;
  std::memcpy(&header, file.data() + at, sizeof header);
  at += static_cast<int64_t>(sizeof header);
  if (header.bytes > static_cast<uint64_t>(file.size() - at)) return std::nullopt;
  const std::string_view record = file.text(at, static_cast<int64_t>(header.bytes));
  return record.empty() || checksum_of(record) != header.checksum ? std::nullopt : std::optional(record);
}

int64_t end_of(std::string_view record) { return static_cast<int64_t>(sizeof(RecordHeader) + record.size()); }

// The command line without --parts itself.
std::string command_line() {
  std::string out = "heed";
  const std::vector<std::string>& arguments = given_arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--parts")
      ++i;
    else if (!arguments[i].starts_with("--parts="))
      out += ' ' + arguments[i];
  }
  return out;
}

}  // namespace

void add_parts_flag(Flags& flags, std::string& path) {
  flags
      .option("--parts", path,
              "Keep the results of finished parts in FILE: the same command, if it was stopped, continues after them; removed at the end")
      .value("FILE");
}

PartsFile::PartsFile(const Path& path, const Path& model) : path_(path) {
  if (world().is_first()) {
    file_.emplace(path);
    if (file_->size() > 0) before_ = MappedFile::open(path);
    int64_t whole = 0;
    for (std::optional<std::string_view> record; before_ && (record = record_at(*before_, whole));) whole += end_of(*record);
    check<FileError>(!before_ || whole > 0, path.string(),
                     ": found a file that --parts has not written, expected one of an earlier run, or none");
    file_->truncate_to(whole);
    before_ = whole > 0 ? MappedFile::open(path) : nullptr;
  }
  check_same("version", HEED_VERSION);
  check_same("command", command_line());
  check_same("model " + model.string(), world().is_first() ? contents_of({model}, path) : "");
}

std::optional<std::string> PartsFile::stored() {
  if (!any_left_) return std::nullopt;
  std::string record;
  if (before_ && at_ < before_->size())
    if (const std::optional<std::string_view> found = record_at(*before_, at_)) {
      record = *found;
      at_ += end_of(record);
    }
  record = world().broadcast(std::move(record), 0);
  any_left_ = !record.empty();
  return any_left_ ? std::optional(record) : std::nullopt;
}

std::optional<std::string> PartsFile::next() {
  std::optional<std::string> record = stored();
  if (!record) return std::nullopt;
  check<FileError>((*record)[0] == kPart, path_.string(), ": found another order of parts, expected that of the same command");
  return record->substr(1);
}

void PartsFile::append(const std::string& record) {
  if (!file_) return;
  const RecordHeader header{.bytes = record.size(), .checksum = checksum_of(record)};
  file_->append(std::string(reinterpret_cast<const char*>(&header), sizeof header) + record);
}

void PartsFile::add(const std::string& result) { append(kPart + result); }

void PartsFile::check_same(const std::string& what, const std::string& value) {
  const std::string now = kValue + what + '\n' + world().broadcast(value, 0);
  const std::optional<std::string> record = stored();
  if (!record) return append(now);
  const size_t begin = what.size() + 2;
  check<UsageError>(*record == now, path_.string(), " has parts of another job: its ", what,
                    record->starts_with(now.substr(0, begin)) ? " was " + record->substr(begin) : " is missing", ", now it is ",
                    now.substr(begin), "; expected the same, or no such file to start again");
}

void PartsFile::remove() {
  if (file_) remove_quietly(path_);
}

std::unique_ptr<PartsFile> parts_file(const std::string& path, const std::string& model) {
  return path.empty() ? nullptr : std::make_unique<PartsFile>(path, model);
}

std::string contents_of(const std::vector<Path>& paths, const Path& except) {
  DataFingerprint fingerprint;
  const auto add = [&](const std::string& text) { fingerprint.add(text), fingerprint.next(); };
  const auto add_file = [&](const Path& path) {
    const auto changed = std::filesystem::last_write_time(path).time_since_epoch().count();
    add(path.string() + ' ' + std::to_string(std::filesystem::file_size(path)) + ' ' + std::to_string(changed));
  };
  for (const Path& path : paths) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored)) {
      add_file(path);
    } else if (std::filesystem::is_directory(path, ignored)) {
      std::vector<Path> files;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
        if (entry.is_regular_file() && (except.empty() || !std::filesystem::equivalent(entry.path(), except)))
          files.push_back(entry.path());
      std::sort(files.begin(), files.end());
      std::for_each(files.begin(), files.end(), add_file);
    } else {
      add(path.string());
    }
  }
  return fingerprint.json().dump();
}

}  // namespace heed::cli
