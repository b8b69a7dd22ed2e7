// The header of a safetensors file: parsed directly into entries, then checked as a whole.
#include <algorithm>
#include <limits>
#include <numeric>

#include "heed/io/elements.h"
#include "heed/io/json.h"
#include "heed/io/safetensors.h"

namespace heed {
namespace {

class HeaderEvents : public JsonEvents {
 public:
  HeaderEvents(const std::string& source, int64_t data_bytes, SafetensorsHeader& out)
      : source_(source), data_bytes_(data_bytes), out_(out) {}

  void begin(bool object) override {
    if (depth_ < 2 && !object) refuse("found a list, expected an object");
    if (depth_ >= 2 && in_metadata_) refuse("found an object or a list, expected a string");
    if (depth_ >= 2 && (depth_ > 2 || object || field_ == kDType))
      refuse("found an object or a list in ", name_of(field_), ", expected ", field_ == kDType ? "a string" : "numbers");
    numbers_.clear();
    ++depth_;
  }

  void key(std::string& name) override {
    if (depth_ == 1) {
      name_ = std::move(name);
      in_metadata_ = name_ == "__metadata__";
      found_fields_ = 0;
      if (in_metadata_ && std::exchange(metadata_found_, true)) refuse("found a second time, expected once");
      if (!in_metadata_) count_item(name_);
    } else if (in_metadata_) {
      count_item(name);
      metadata_key_ = std::move(name);
    } else {
      choose_field(name);
    }
  }

  void scalar(Json& value) override {
    if (depth_ < 2) refuse("found ", shown(value), ", expected an object");
    if (in_metadata_) {
      take_metadata(value);
    } else if (field_ == kDType) {
      if (!value.is_string()) refuse("found dtype ", shown(value), ", expected a string");
      dtype_ = dtype_named(value.get_ref<std::string&>());
    } else {
      if (depth_ < 3) refuse("found ", name_of(field_), " ", shown(value), ", expected a list of numbers");
      take_number(value);
    }
  }

  void end() override {
    --depth_;
    if (depth_ == 1 && !in_metadata_) finish_entry();
    if (depth_ != 2) return;
    if (field_ == kShape) {
      shape_ = Shape(numbers_);
    } else {
      if (numbers_.size() != 2) refuse("found ", numbers_.size(), " data_offsets, expected 2");
      begin_ = numbers_[0];
      end_ = numbers_[1];
    }
  }

 private:
  enum Field : unsigned { kDType = 1, kShape = 2, kOffsets = 4 };
  static const char* name_of(Field field) { return field == kDType ? "dtype" : field == kShape ? "shape" : "data_offsets"; }
  static std::string shown(const Json& value) { return value.is_string() ? in_quotes(value.get_ref<const std::string&>()) : value.dump(); }

  std::string what() const {
    return source_ + (name_.empty() && depth_ == 0 ? "" : in_metadata_ ? ": " + name_ : ": tensor " + in_quotes(name_));
  }
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail<FileError>(what(), ": ", parts..., " (byte ", position, " of the header)");
  }

  void count_text(const std::string& text) {
    text_ += static_cast<int64_t>(text.size());
    if (text_ > kMaxHeaderText)
      refuse("found more than ", kMaxHeaderText, " bytes of names and metadata, expected at most that many; shorten the metadata");
  }
  void count_item(const std::string& name) {
    count_text(name);
    if (++items_ > kMaxHeaderItems)
      refuse("found more than ", kMaxHeaderItems, " tensors and metadata entries, expected at most that many; split the file into shards");
  }

  void choose_field(const std::string& name) {
    field_ = name == "dtype" ? kDType : name == "shape" ? kShape : kOffsets;
    if (name != name_of(field_)) refuse("found the key ", in_quotes(name), ", expected dtype, shape and data_offsets");
    if (found_fields_ & field_) refuse("found ", name, " a second time, expected it once");
    found_fields_ |= field_;
  }

  void take_metadata(Json& value) {
    if (!value.is_string()) refuse("found ", shown(value), " under ", in_quotes(metadata_key_), ", expected a string");
    auto& text = value.get_ref<std::string&>();
    count_text(text);
    if (!out_.metadata.emplace(metadata_key_, std::move(text)).second)
      refuse("found the key ", in_quotes(metadata_key_), " a second time, expected it once");
  }

  DType dtype_named(const std::string& name) const {
    for (DType dtype : kEveryDType)
      if (name == safetensors_name(dtype)) return dtype;
    refuse("found dtype ", in_quotes(name), ", expected F32, BF16, F16, I64, I32, U8 or BOOL; convert the tensor before it is saved");
  }

  void take_number(const Json& value) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > std::numeric_limits<int64_t>::max())
      refuse("found ", shown(value), " in ", name_of(field_), ", expected whole numbers from 0 to 2^63 - 1");
    if (field_ == kShape && numbers_.size() == kMaxRank) refuse("found more than ", kMaxRank, " axes, expected at most that many");
    if (field_ == kOffsets && numbers_.size() == 2) refuse("found more than 2 data_offsets, expected begin and end");
    numbers_.push_back(value.get<int64_t>());
  }

  void finish_entry() {
    for (Field field : {kDType, kShape, kOffsets})
      if (!(found_fields_ & field)) refuse("found no ", name_of(field), ", expected dtype, shape and data_offsets");
    if (begin_ > end_) refuse("found data_offsets that run backwards, from ", begin_, " to ", end_, ", expected begin <= end");
    if (end_ > data_bytes_)
      refuse("found data_offsets up to ", end_, ", expected at most the ", data_bytes_, " bytes of data in the file; it was cut short");
    const int64_t bytes = checked_bytes_of(what(), shape_, dtype_);
    if (bytes != end_ - begin_)
      refuse("found ", end_ - begin_, " bytes of data, expected ", bytes, " for shape ", shape_, " of ", safetensors_name(dtype_));
    out_.entries.push_back({std::move(name_), shape_, begin_, dtype_});
  }

  const std::string& source_;
  const int64_t data_bytes_;
  SafetensorsHeader& out_;
  int depth_ = 0;
  int64_t items_ = 0, text_ = 0;
  bool in_metadata_ = false, metadata_found_ = false;
  std::string metadata_key_;
  // The entry being read.
  std::string name_;
  Field field_ = kDType;
  unsigned found_fields_ = 0;
  std::vector<int64_t> numbers_;
  DType dtype_ = DType::f32;
  Shape shape_;
  int64_t begin_ = 0, end_ = 0;
};

void refuse_duplicates(const std::string& source, const std::deque<TensorEntry>& entries, std::vector<uint32_t>& order) {
  const auto name = [&](uint32_t i) -> const std::string& { return entries[i].name; };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return name(a) < name(b); });
  const auto twice = std::adjacent_find(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return name(a) == name(b); });
  check<FileError>(twice == order.end(), source, ": found tensor ", twice == order.end() ? "" : in_quotes(name(*twice)),
                   " a second time, expected every name once");
}

// Every byte of the data must belong to exactly one tensor.
void refuse_gaps(const std::string& source, const std::deque<TensorEntry>& entries, std::vector<uint32_t>& order, int64_t data_bytes) {
  const auto end_of = [&](const TensorEntry& e) { return e.begin + checked_bytes_of(source, e.shape, e.dtype); };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(entries[a].begin, end_of(entries[a])) < std::pair(entries[b].begin, end_of(entries[b]));
  });
  int64_t end = 0;
  for (uint32_t i : order) {
    const TensorEntry& entry = entries[i];
    check<FileError>(entry.begin == end, source, ": tensor ", in_quotes(entry.name), ": found data from byte ", entry.begin,
                     ", expected byte ", end, entry.begin < end ? ": it overlaps another tensor" : ": there is a gap before it");
    end = end_of(entry);
  }
  check<FileError>(end == data_bytes, source, ": found ", data_bytes - end,
                   " bytes after the last tensor, expected none; the file is damaged");
}

}  // namespace

const char* safetensors_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "F32";
    case DType::bf16: return "BF16";
    case DType::f16: return "F16";
    case DType::i64: return "I64";
    case DType::i32: return "I32";
    case DType::u8: return "U8";
    case DType::boolean: return "BOOL";
  }
  return "?";
}

SafetensorsHeader parse_safetensors_header(const std::string& source, std::string_view text, int64_t data_bytes) {
  check<FileError>(!text.empty() && text[0] == '{', source,
                   ": found no { at byte 8, expected a safetensors header; is this another kind of file?");
  SafetensorsHeader out;
  HeaderEvents events(source, data_bytes, out);
  walk_json(source, text, events);
  std::vector<uint32_t> order(out.entries.size());
  std::iota(order.begin(), order.end(), 0u);
  refuse_duplicates(source, out.entries, order);
  refuse_gaps(source, out.entries, order, data_bytes);
  return out;
}

}  // namespace heed
