// Records are TFRecords (tensorflow/core/lib/io/record_writer.h), messages are those of event.proto, summary.proto, histogram.proto and
// tensor.proto. They have few fields, so they are encoded by hand.
#include "heed/train/event_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "heed/train/append_only_file.h"

namespace heed {
namespace {

static_assert(std::endian::native == std::endian::little, "protocol buffers are little-endian, and numbers are written as they are");

constexpr int64_t kHead = 12,
                  kTail = 4;  // bytes of a record before the message (length, CRC of the length) and after it (CRC of the message)

// CRC-32C (Castagnoli), one byte at a time.
constexpr std::array<uint32_t, 256> kCrcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0x82F63B78u : 0u);
    table[i] = value;
  }
  return table;
}();

// TFRecord's masked CRC: rotated and offset, since a CRC of data that contains CRCs is weak.
uint32_t masked_crc(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (char byte : bytes) crc = kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 255] ^ (crc >> 8);
  return std::rotr(~crc, 15) + 0xA282EAD8u;
}

template <class T>
std::string raw(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

// Protocol buffer encoder.
struct Message {
  std::string bytes = {};

  Message& number(int field, int64_t value) { return varint(key(field, 0)).varint(static_cast<uint64_t>(value)); }
  Message& real(int field, double value) { return varint(key(field, 1)).plain(raw(value)); }
  Message& real(int field, float value) { return varint(key(field, 5)).plain(raw(value)); }
  Message& text(int field, std::string_view value) { return varint(key(field, 2)).varint(value.size()).plain(value); }
  Message& inner(int field, const Message& value) { return text(field, value.bytes); }
  Message& reals(int field, std::span<const double> values) {
    return text(field, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }

 private:
  static uint64_t key(int field, int kind) { return static_cast<uint64_t>(field << 3 | kind); }
  Message& plain(std::string_view more) {
    bytes += more;
    return *this;
  }
  Message& varint(uint64_t value) {
    for (; value > 127; value >>= 7) bytes += static_cast<char>(value | 128);
    bytes += static_cast<char>(value);
    return *this;
  }
};

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string record_of(const Message& message) {
  const std::string length = raw(uint64_t{message.bytes.size()});
  return length + raw(masked_crc(length)) + message.bytes + raw(masked_crc(message.bytes));
}

// End of the last complete record within the first `limit` bytes.
int64_t end_of_records(const Path& path, int64_t limit) {
  const auto file = MappedFile::open(path);
  limit = std::min(limit, file->size());
  int64_t end = 0;
  while (limit - end >= kHead + kTail) {
    uint64_t length = 0;
    uint32_t crc = 0;
    std::memcpy(&length, file->data() + end, sizeof length);
    std::memcpy(&crc, file->data() + end + sizeof length, sizeof crc);
    const auto available = static_cast<uint64_t>(limit - end - kHead - kTail);
    if (length > available || crc != masked_crc(file->text(end, sizeof length))) break;
    end += kHead + static_cast<int64_t>(length) + kTail;
  }
  return end;
}

Path event_file_in(const Path& folder) {
  constexpr std::string_view begin = "events.out.tfevents.", end = ".heed";
  Path newest;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(begin) && name.ends_with(end)) newest = std::max(newest, entry.path());
  }
  if (!newest.empty()) return newest;
  return folder / (std::string(begin) + std::to_string(static_cast<int64_t>(now())) + std::string(end));
}

// TensorFlow's bucket limits above zero: 1e-12 times 1.1^k, and a last one for everything larger. Mirrored below zero.
const std::vector<double> kLimits = [] {
  std::vector<double> out;
  for (double limit = 1e-12; limit < 1e20; limit *= 1.1) out.push_back(limit);
  out.push_back(std::numeric_limits<double>::max());
  return out;
}();

// For each float exponent, the number of limits up to 2^(exponent - 127); the bucket is at most eight further.
const std::vector<uint32_t> kFirst = [] {
  std::vector<uint32_t> out;
  for (int exponent = 0; exponent < 255; ++exponent) {
    const double least = exponent == 0 ? 0 : std::ldexp(1.0, exponent - 127);
    out.push_back(static_cast<uint32_t>(std::upper_bound(kLimits.begin(), kLimits.end(), least) - kLimits.begin()));
  }
  return out;
}();

struct Histogram {
  double least = 0, most = 0, count = 0, sum = 0, squares = 0, nonfinite = 0;
  std::vector<double> below = std::vector<double>(kLimits.size()), above = below;  // counts; `below` starts at zero and goes down

  explicit Histogram(std::span<const float> values) {
    for (float value : values) {
      if (!std::isfinite(value)) {
        ++nonfinite;
        continue;
      }
      least = count == 0 ? value : std::min<double>(least, value);
      most = count == 0 ? value : std::max<double>(most, value);
      ++count;
      sum += value;
      squares += double{value} * value;
      // A bucket includes its lower limit. No limit is exactly a float, so the mirrored lookup below zero is valid too.
      size_t bucket = kFirst[std::bit_cast<uint32_t>(value) >> 23 & 255];
      while (kLimits[bucket] <= std::fabs(value)) ++bucket;
      ++(value < 0 ? below : above)[bucket];
    }
  }

  // From the first to the last non-empty bucket; adjacent empty buckets are merged.
  Message message() const {
    std::vector<double> limits, counts;
    const auto add = [&](double limit, double number) {
      if (number == 0 && counts.empty()) return;
      if (number == 0 && counts.back() == 0) {
        limits.back() = limit;
        return;
      }
      limits.push_back(limit);
      counts.push_back(number);
    };
    for (size_t i = below.size(); i-- > 0;) add(i == 0 ? 0.0 : -kLimits[i - 1], below[i]);
    for (size_t i = 0; i < above.size(); ++i) add(kLimits[i], above[i]);
    if (!counts.empty() && counts.back() == 0) limits.pop_back(), counts.pop_back();
    if (counts.empty()) limits.push_back(kLimits.back()), counts.push_back(0);  // at least one bucket
    return Message().real(1, least).real(2, most).real(3, count).real(4, sum).real(5, squares).reals(6, limits).reals(7, counts);
  }
};

}  // namespace

struct EventFile::State {
  AppendOnlyFile file;

  explicit State(const Path& folder) : file(event_file_in(folder)) { truncate_to(file.size()); }

  void add(Message event) { file.append(record_of(event)); }
  void add_value(int64_t step, const Message& value) { add(Message().real(1, now()).number(2, step).inner(5, Message().inner(1, value))); }
  void truncate_to(int64_t bytes) {
    file.truncate_to(end_of_records(file.path(), bytes));
    if (file.size() == 0) add(Message().real(1, now()).text(3, "brain.Event:2"));
  }
};

EventFile::EventFile(const Path& folder) : state_(std::make_unique<State>(folder)) {}
EventFile::~EventFile() = default;

void EventFile::scalar(const std::string& tag, int64_t step, double value) {
  state_->add_value(step, Message().text(1, tag).real(2, static_cast<float>(value)));
}

void EventFile::histogram(const std::string& tag, int64_t step, std::span<const float> values) {
  const Histogram histogram(values);
  state_->add_value(step, Message().text(1, tag).inner(5, histogram.message()));
  // Non-finite values fit no bucket but are what matters most, so they get their own scalar.
  if (histogram.nonfinite > 0) scalar(tag + "/not_finite", step, histogram.nonfinite);
}

void EventFile::image(const std::string& tag, int64_t step, const Image& image) {
  constexpr int64_t kRgb = 3;
  const Message message = Message().number(1, image.height).number(2, image.width).number(3, kRgb).text(4, png_bytes(image));
  state_->add_value(step, Message().text(1, tag).inner(4, message));
}

void EventFile::text(const std::string& tag, int64_t step, const std::string& markdown) {
  constexpr int64_t kString = 7;                                     // DT_STRING in types.proto
  const Message shape = Message().inner(2, Message().number(1, 1));  // (1)
  const Message tensor = Message().number(1, kString).inner(2, shape).text(8, markdown);
  const Message metadata = Message().inner(1, Message().text(1, "text"));  // TensorBoard plugin
  state_->add_value(step, Message().text(1, tag).inner(8, tensor).inner(9, metadata));
}

int64_t EventFile::size() {
  state_->file.sync();
  return state_->file.size();
}

void EventFile::truncate_to(int64_t bytes) { state_->truncate_to(bytes); }

}  // namespace heed
