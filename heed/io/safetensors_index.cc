// The index of a sharded checkpoint: tensor name -> file.
#include <algorithm>

#include "heed/io/json.h"
#include "heed/io/safetensors.h"

namespace heed {
namespace {

// Keeps weight_map and ignores everything else.
class IndexEvents : public JsonEvents {
 public:
  explicit IndexEvents(const std::string& source) : source_(source) {}

  void begin(bool object) override {
    if ((depth_ == 0 || (depth_ == 1 && in_map_)) && !object) refuse_whole();
    if (depth_ == 2 && in_map_) refuse("found an object or a list for tensor ", in_quotes(name_), ", expected a file name");
    ++depth_;
  }
  void key(std::string& name) override {
    if (depth_ == 1) {
      in_map_ = name == "weight_map";
      if (in_map_ && std::exchange(found_, true)) refuse("found weight_map a second time, expected it once");
    } else if (in_map_) {
      name_ = std::move(name);
    }
  }
  void scalar(Json& value) override {
    if (depth_ == 0 || (depth_ == 1 && in_map_)) refuse_whole();
    if (depth_ != 2 || !in_map_) return;
    if (!value.is_string()) refuse("found a ", value.type_name(), " for tensor ", in_quotes(name_), ", expected a file name");
    take(value.get_ref<std::string&>());
  }
  void end() override { --depth_; }

  std::map<std::string, std::string> finish() {
    if (!found_) refuse_whole();
    return std::move(files_);
  }

 private:
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail<FileError>(source_, ": ", parts..., " (byte ", position, ")");
  }
  [[noreturn]] void refuse_whole() const { refuse("found no object weight_map, expected tensor names and the files that hold them"); }

  void take(std::string& file) {
    const Path path = file;
    const bool inside = path.has_filename() && path.is_relative() && std::find(path.begin(), path.end(), "..") == path.end() &&
                        file.find('\0') == std::string::npos;
    if (!inside) refuse("found file ", in_quotes(file), " for tensor ", in_quotes(name_), ", expected one in the folder of the index");
    text_ += static_cast<int64_t>(name_.size() + file.size());
    if (text_ > 2 * kMaxHeaderText) refuse("found more than ", 2 * kMaxHeaderText, " bytes of names, expected at most that many");
    const auto [entry, inserted] = files_.emplace(std::move(name_), std::move(file));
    if (!inserted) refuse("found tensor ", in_quotes(entry->first), " a second time, expected every name once");
    if (static_cast<int64_t>(files_.size()) > kMaxHeaderItems)
      refuse("found more than ", kMaxHeaderItems, " tensors, expected at most that many");
  }

  const std::string& source_;
  int depth_ = 0;
  int64_t text_ = 0;
  bool in_map_ = false, found_ = false;
  std::string name_;
  std::map<std::string, std::string> files_;
};

}  // namespace

std::map<std::string, std::string> parse_safetensors_index(const std::string& source, std::string_view text) {
  IndexEvents events(source);
  walk_json(source, text, events);
  return events.finish();
}

}  // namespace heed
