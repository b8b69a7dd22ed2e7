#include "heed/lab/cache.h"

#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>

#include "heed/io/paths.h"

namespace heed::lab {
namespace {

constexpr const char* kFormat = "heed lab report 1";

// Writes or reads the parts of a report in one order, so that the two cannot differ.
class Archive {
 public:
  Archive() = default;
  explicit Archive(const Json& items) : items_(items), reads_(true) {}

  const Json& items() const { return items_; }

  void part(std::string& value) { exchange(value); }
  void part(bool& value) { exchange(value); }
  void part(int64_t& value) { exchange(value); }
  void part(double& value) {  // as bits: JSON has no NaN
    auto bits = std::bit_cast<uint64_t>(value);
    exchange(bits);
    value = std::bit_cast<double>(bits);
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void part(Enum& value) {
    auto number = static_cast<int64_t>(value);
    exchange(number);
    value = static_cast<Enum>(number);
  }
  template <class T>
  void part(std::vector<T>& list) {
    auto size = static_cast<uint64_t>(list.size());
    exchange(size);
    check(size <= items_.size() || !reads_, "cache: a list of ", size, " parts in a file of ", items_.size());
    list.resize(size);
    for (T& each : list) part(each);
  }
  void part(std::vector<uint8_t>& bytes) {
    Json binary = Json::binary(std::vector<uint8_t>(bytes));
    exchange(binary);
    bytes = binary.get_binary();
  }
  template <class T>
  void part(std::optional<T>& value) {
    bool given = value.has_value();
    part(given);
    if (!given) return value.reset();
    if (!value) value.emplace();
    part(*value);
  }
  template <class... Kinds>
  void part(std::variant<Kinds...>& value) {
    auto kind = static_cast<int64_t>(value.index());
    part(kind);
    if (reads_) choose(value, kind);
    std::visit([&](auto& each) { part(each); }, value);
  }
  void part(Image& image) { part(image.width), part(image.height), part(image.pixels); }
  void part(Axis& axis) { part(axis.name), part(axis.log), part(axis.least), part(axis.most); }
  void part(Series& each) { part(each.name), part(each.x), part(each.y), part(each.mark), part(each.low), part(each.high); }
  void part(Lines& lines) { part(lines.across), part(lines.up), part(lines.series); }
  void part(HeatMap& map) {
    part(map.rows), part(map.columns), part(map.values), part(map.down), part(map.across);
    part(map.least), part(map.most), part(map.diverging), part(map.under);
  }
  void part(BarSet& set) { part(set.name), part(set.values), part(set.low), part(set.high); }
  void part(Bars& bars) { part(bars.up), part(bars.groups), part(bars.sets); }
  void part(Plot& plot) { part(plot.title), part(plot.body); }
  void part(Frame& frame) { part(frame.value), part(frame.plots); }
  void part(Figure& figure) { part(figure.title), part(figure.caption), part(figure.frames), part(figure.parameter); }
  void part(Table& table) { part(table.title), part(table.columns), part(table.rows); }
  void part(Measured& each) {
    part(each.name), part(each.predicted), part(each.measured), part(each.tolerance), part(each.rule), part(each.by_clock);
  }
  void part(Report& report) {
    part(report.statement), part(report.agrees), part(report.undecided);
    part(report.measured), part(report.tables), part(report.figures);
  }

 private:
  template <class T>
  void exchange(T& value) {
    if (!reads_) return items_.push_back(value);
    check(next_ < items_.size(), "cache: a file of ", items_.size(), " parts, expected more");
    value = items_[next_++].get<T>();
  }
  template <class... Kinds>
  static void choose(std::variant<Kinds...>& value, int64_t kind) {
    int64_t index = 0;
    ((index++ == kind ? void(value.template emplace<Kinds>()) : void()), ...);
  }

  Json items_ = Json::array();
  size_t next_ = 0;
  bool reads_ = false;
};

// FNV-1a over words of eight bytes.
class Fingerprint {
 public:
  void add(const void* data, size_t bytes) {
    const auto* const begin = static_cast<const unsigned char*>(data);
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, begin + at, std::min(sizeof word, bytes - at));
      hash_ = (hash_ ^ word) * 0x100000001b3;
      hash_ ^= hash_ >> 29;
    }
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325;
};

uint64_t program_fingerprint() {
  static const uint64_t found = [] {
    Fingerprint out;
    const auto program = MappedFile::open("/proc/self/exe");
    out.add(program->data(), static_cast<size_t>(program->size()));
    return out.value();
  }();
  return found;
}

}  // namespace

Json archived(const Report& report) {
  Archive archive;
  Report copy = report;
  archive.part(copy);
  return archive.items();
}

Report read_report(const Json& json) {
  Archive archive(json);
  Report out;
  archive.part(out);
  return out;
}

Path cache_folder() {
  const char *const caches = std::getenv("XDG_CACHE_HOME"), *const home = std::getenv("HOME");
  if (caches != nullptr && *caches != '\0') return Path(caches) / "heed" / "lab";
  return home == nullptr || *home == '\0' ? Path() : Path(home) / ".cache" / "heed" / "lab";
}

Path ReportCache::file_of(const std::string& experiment, const Json& settings) const {
  Fingerprint key;
  const uint64_t program = program_fingerprint();
  const std::string text = settings.dump();
  key.add(&program, sizeof program);
  key.add(text.data(), text.size());
  std::ostringstream name;
  name << experiment << '-' << std::hex << key.value() << ".cbor";
  return folder_ / name.str();
}

std::optional<CachedReport> ReportCache::find(const std::string& experiment, const Json& settings) const {
  if (folder_.empty()) return std::nullopt;
  const Path path = file_of(experiment, settings);
  if (!path_exists(path)) return std::nullopt;
  try {
    const auto file = MappedFile::open(path);
    const std::string_view bytes = file->text(0, file->size());
    const Json json = Json::from_cbor(bytes.begin(), bytes.end());
    if (json.at("format") != kFormat || json.at("settings") != settings) return std::nullopt;
    return CachedReport{read_report(json.at("report")), json.at("seconds").get<double>()};
  } catch (const Error&) {
    return std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

void ReportCache::keep(const std::string& experiment, const Json& settings, const CachedReport& result) const {
  if (folder_.empty()) return;
  try {
    make_folders(folder_);
    const std::vector<uint8_t> bytes =
        Json::to_cbor({{"format", kFormat}, {"settings", settings}, {"seconds", result.seconds}, {"report", archived(result.report)}});
    FileWriter file(file_of(experiment, settings));
    file.write(std::as_bytes(std::span(bytes)));
    file.commit();
  } catch (const Error&) {
    return;
  }
}

bool ReportCache::can_keep() const {
  if (folder_.empty()) return false;
  try {
    make_folders(folder_);
  } catch (const Error&) {
    return false;
  }
  return ::access(folder_.c_str(), W_OK) == 0;
}

void ReportCache::forget(const std::string& experiment, const Json& settings) const {
  if (!folder_.empty()) ::unlink(file_of(experiment, settings).c_str());
}

}  // namespace heed::lab
