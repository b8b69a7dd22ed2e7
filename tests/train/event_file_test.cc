#include "heed/train/event_file.h"

#include <bit>
#include <cmath>
#include <limits>

#include "heed/core/random.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

// --- an independent reader

// CRC-32C bit by bit from its polynomial.
uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (unsigned char byte : bytes)
    for (int bit = 0; bit < 8; ++bit) {
      const bool odd = (crc ^ (byte >> bit)) & 1;
      crc >>= 1;
      if (odd) crc ^= 0x82F63B78;
    }
  return crc ^ 0xFFFFFFFF;
}
uint32_t masked(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8;
}

template <class T>
T at(std::string_view bytes, size_t place) {
  T out{};
  check(place + sizeof out <= bytes.size(), "test: past the end");
  std::memcpy(&out, bytes.data() + place, sizeof out);
  return out;
}

// Field number -> value: the bytes of length-delimited and fixed-size fields, else the number.
struct Value {
  std::string_view bytes;
  uint64_t number;
};
using Fields = std::multimap<int, Value>;

uint64_t varint(std::string_view bytes, size_t& place) {
  uint64_t out = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = at<uint8_t>(bytes, place++);
    out |= uint64_t{byte & 127u} << shift;
    if (byte < 128) return out;
  }
}
Fields fields(std::string_view bytes) {
  Fields out;
  for (size_t place = 0; place < bytes.size();) {
    const uint64_t key = varint(bytes, place);
    Value value{{}, 0};
    if ((key & 7) == 0) {
      value.number = varint(bytes, place);
    } else {
      const size_t length = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : varint(bytes, place);
      check(length <= bytes.size() - place, "test: past the end");
      value.bytes = bytes.substr(place, length);
      place += length;
    }
    out.emplace(static_cast<int>(key >> 3), value);
  }
  return out;
}
const Value& one(const Fields& all, int number) {
  check(all.count(number) == 1, "test: found field ", number, " ", all.count(number), " times");
  return all.find(number)->second;
}
Fields inner(const Fields& all, int number) { return fields(one(all, number).bytes); }
double real(const Fields& all, int number) { return at<double>(one(all, number).bytes, 0); }
std::vector<double> reals(const Fields& all, int number) {
  const std::string_view bytes = one(all, number).bytes;
  std::vector<double> out;
  for (size_t place = 0; place < bytes.size(); place += 8) out.push_back(at<double>(bytes, place));
  return out;
}

Path file_in(const Folder& folder) {
  EXPECT_EQ(folder.names().size(), 1u);
  return folder / folder.names().at(0);
}

std::vector<std::string> records(const Path& path) {
  const std::string file = get(path);
  std::vector<std::string> out;
  for (size_t place = 0; place < file.size();) {
    const auto length = at<uint64_t>(file, place);
    EXPECT_EQ(at<uint32_t>(file, place + 8), masked(std::string_view(file).substr(place, 8)));
    out.push_back(file.substr(place + 12, length));
    EXPECT_EQ(at<uint32_t>(file, place + 12 + length), masked(out.back()));
    place += 16 + length;
  }
  return out;
}

// The only value of a summary, after checking step and time.
std::string value_of(const std::string& record, int64_t step) {
  const Fields event = fields(record);
  EXPECT_EQ(static_cast<int64_t>(one(event, 2).number), step);
  EXPECT_GT(real(event, 1), 1.7e9);  // seconds since 1970
  return std::string(one(inner(event, 5), 1).bytes);
}

// --- tests

TEST(EventFile, the_checksum_is_castagnolis) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);  // published check value
}

TEST(EventFile, holds_scalars_images_and_texts) {
  const Folder folder;
  const Image image{3, 2, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}};
  {
    EventFile events(folder.path());
    events.scalar("loss", 300, 0.1);
    events.scalar("loss", int64_t{1} << 40, std::numeric_limits<double>::quiet_NaN());
    events.image("sample", 0, image);
    events.text("config", 7, "# heading\n\n" + std::string(300, 'x'));
  }
  const Path path = file_in(folder);
  EXPECT_TRUE(path.filename().native().starts_with("events.out.tfevents."));
  EXPECT_TRUE(path.native().ends_with(".heed"));
  const std::vector<std::string> found = records(path);
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(one(fields(found[0]), 3).bytes, "brain.Event:2");

  const std::string first = value_of(found[1], 300), second = value_of(found[2], int64_t{1} << 40);
  EXPECT_EQ(one(fields(first), 1).bytes, "loss");
  EXPECT_EQ(at<float>(one(fields(first), 2).bytes, 0), 0.1f);
  EXPECT_TRUE(std::isnan(at<float>(one(fields(second), 2).bytes, 0)));

  const std::string third = value_of(found[3], 0);
  const Fields stored = inner(fields(third), 4);
  EXPECT_EQ(one(stored, 1).number, 2u);
  EXPECT_EQ(one(stored, 2).number, 3u);
  EXPECT_EQ(one(stored, 3).number, 3u);
  EXPECT_EQ(parse_image(std::as_bytes(std::span(one(stored, 4).bytes)), "image").pixels, image.pixels);

  const std::string fourth = value_of(found[4], 7);
  const Fields text = fields(fourth), tensor = inner(text, 8);
  EXPECT_EQ(one(tensor, 1).number, 7u);                      // DT_STRING
  EXPECT_EQ(one(inner(inner(tensor, 2), 2), 1).number, 1u);  // shape (1)
  EXPECT_EQ(one(tensor, 8).bytes, "# heading\n\n" + std::string(300, 'x'));
  EXPECT_EQ(one(inner(inner(text, 9), 1), 1).bytes, "text");
}

// Reference: TensorFlow's buckets, without the empty ones.
std::map<double, double> plain_buckets(const std::vector<float>& values) {
  std::vector<double> limits;
  for (double limit = 1e-12; limit < 1e20; limit *= 1.1) limits.push_back(limit);
  limits.push_back(std::numeric_limits<double>::max());
  const size_t half = limits.size();
  for (size_t i = 0; i < half; ++i) limits.push_back(-limits[i]);
  limits.push_back(0);
  std::sort(limits.begin(), limits.end());
  std::map<double, double> out;
  for (float value : values)
    if (std::isfinite(value)) ++out[*std::upper_bound(limits.begin(), limits.end(), double{value})];
  return out;
}

void expect_histogram(const std::vector<float>& values) {
  const Folder folder;
  EventFile(folder.path()).histogram("weights", 5, values);
  const std::vector<std::string> found = records(file_in(folder));
  const std::string value = value_of(found.at(1), 5);
  const Fields histogram = inner(fields(value), 5);
  std::vector<float> finite;
  for (float each : values)
    if (std::isfinite(each)) finite.push_back(each);
  double sum = 0, squares = 0;
  for (float each : finite) sum += each, squares += double{each} * each;
  EXPECT_EQ(real(histogram, 1), finite.empty() ? 0 : *std::min_element(finite.begin(), finite.end()));
  EXPECT_EQ(real(histogram, 2), finite.empty() ? 0 : *std::max_element(finite.begin(), finite.end()));
  EXPECT_EQ(real(histogram, 3), static_cast<double>(finite.size()));
  EXPECT_EQ(real(histogram, 4), sum);
  EXPECT_EQ(real(histogram, 5), squares);
  const std::vector<double> limits = reals(histogram, 6), counts = reals(histogram, 7);
  ASSERT_EQ(limits.size(), counts.size());
  EXPECT_TRUE(std::is_sorted(limits.begin(), limits.end()));
  std::map<double, double> filled;
  for (size_t i = 0; i < limits.size(); ++i) {
    if (counts[i] > 0) filled[limits[i]] = counts[i];
    // Empty buckets occur only between others.
    const bool between = i > 0 && i + 1 < counts.size() && counts[i - 1] > 0 && counts[i + 1] > 0;
    EXPECT_TRUE(counts[i] > 0 || between || finite.empty()) << i;
  }
  EXPECT_TRUE(filled == plain_buckets(values));
  const size_t lost = values.size() - finite.size();
  ASSERT_EQ(found.size(), lost > 0 ? 3u : 2u);
  if (lost == 0) return;
  const std::string scalar = value_of(found[2], 5);
  EXPECT_EQ(one(fields(scalar), 1).bytes, "weights/not_finite");
  EXPECT_EQ(at<float>(one(fields(scalar), 2).bytes, 0), static_cast<float>(lost));
}

TEST(EventFile, histograms_have_the_usual_buckets) {
  const float infinity = std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::max();
  expect_histogram({});
  expect_histogram({0});
  expect_histogram({-0.5f, -0.5f, 3});
  expect_histogram({infinity, -infinity, NAN});
  expect_histogram({1, infinity, -2, NAN});
  expect_histogram({most, -most, std::numeric_limits<float>::denorm_min(), -std::numeric_limits<float>::denorm_min(), -0.0f});
  std::vector<float> every;  // random bits: all magnitudes, both signs, some not finite
  for (uint64_t i = 0; i < 5000; ++i)
    for (uint32_t bits : philox({1, 1}, i)) every.push_back(std::bit_cast<float>(bits));
  for (int exponent = -149; exponent < 128; ++exponent)
    for (float sign : {-1.0f, 1.0f}) every.push_back(sign * std::ldexp(1.0f, exponent));
  expect_histogram(every);
}

TEST(EventFile, resumes_and_truncates) {
  const Folder folder;
  std::vector<int64_t> sizes;
  {
    EventFile events(folder.path());
    for (int64_t step = 0; step < 4; ++step) {
      sizes.push_back(events.size());
      events.scalar("loss", step, 1);
    }
  }
  const Path path = file_in(folder);
  const std::string whole = get(path);
  for (size_t cut : {size_t{1}, size_t{4}, size_t{11}, size_t{20}}) {  // an incomplete last record, as after a power failure
    put(path, whole.substr(0, whole.size() - cut));
    EventFile events(folder.path());
    EXPECT_EQ(events.size(), sizes[3]);
    events.scalar("loss", 9, 1);
    EXPECT_EQ(records(path).size(), 5u);
  }
  put(path, whole + std::string(40, '\0'));
  {
    EventFile events(folder.path());
    EXPECT_EQ(events.size(), static_cast<int64_t>(whole.size()));
    events.truncate_to(sizes[2] + 3);
    EXPECT_EQ(events.size(), sizes[2]);
    EXPECT_EQ(get(path), whole.substr(0, static_cast<size_t>(sizes[2])));
    events.truncate_to(1 << 30);
    EXPECT_EQ(events.size(), sizes[2]);
    events.truncate_to(0);
    EXPECT_EQ(events.size(), sizes[0]);
    EXPECT_EQ(one(fields(records(path).at(0)), 3).bytes, "brain.Event:2");
  }
  expect_refused([&] { EventFile(folder / "none"); }, "cannot be opened (No such file or directory)");
}

}  // namespace
}  // namespace heed::test
