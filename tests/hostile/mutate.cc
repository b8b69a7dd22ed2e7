#include "tests/hostile/mutate.h"

#include <zlib.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace heed::test {
namespace {

using Json = nlohmann::json;

// clang-format off
const std::vector<std::string> kNumbers = {
    "-1", "0", "1", "2", "3", "255", "65536", "2147483647", "2147483648", "4294967296",
    "1099511627776", "9223372036854775807", "-9223372036854775808", "18446744073709551616", "1e30", "1e308", "1e400", "-1e400", "0.5", "1e-320",
    "nan", "NaN", "inf", "-0.0", "0x10", "00012", "1_000", "1e", "--1"};
// clang-format on

std::string deep(RandomSource& rng) {
  const size_t levels = size_t{10} << rng.below(15);
  const bool closed = !rng.one_in(3);
  const std::string open = rng.one_in(2) ? "[" : "{\"a\":", close = open == "[" ? "]" : "}";
  std::string out;
  for (size_t i = 0; i < levels; ++i) out += open;
  out += "1";
  for (size_t i = 0; closed && i < levels; ++i) out += close;
  return out;
}

std::string hostile_value(RandomSource& rng) {  // in JSON or TOML syntax
  switch (rng.below(9)) {
    case 0: return "\"\"";
    case 1: return "\"" + std::string(size_t{1} << rng.below(18), 'a') + "\"";
    case 2: return "null";
    case 3: return rng.one_in(2) ? "true" : "[]";
    case 4: return rng.one_in(2) ? "{}" : "[[], {}, null, 1, \"x\"]";
    case 5: return deep(rng);
    case 6: return rng.one_in(2) ? "\"\\ud800\"" : "\"\xff\xfe\"";
    default: return rng.of(kNumbers);
  }
}

// Pointers to all values of a document.
void collect(Json& at, std::vector<Json*>& all, size_t max_values) {
  if (all.size() >= max_values) return;
  all.push_back(&at);
  if (at.is_structured())
    for (Json& inner : at) collect(inner, all, max_values);
}

// Whether an earlier change made the text too deep or too long for the parser used here, which is less robust than heed's.
bool too_much_to_parse(const std::string& text) {
  int64_t depth = 0, deepest = 0;
  for (const char letter : text) {
    depth += letter == '[' || letter == '{' ? 1 : letter == ']' || letter == '}' ? -1 : 0;
    deepest = std::max(deepest, depth);
  }
  return deepest > 500 || text.size() > (size_t{16} << 20);
}

std::string change_json(const std::string& text, RandomSource& rng, std::string& what) {
  if (too_much_to_parse(text)) return text;
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return text;
  std::vector<Json*> values;
  collect(json, values, 4000);
  Json& place = *rng.of(values);
  const std::string mark = "@@hostile@@";
  std::string replacement = hostile_value(rng);
  switch (rng.below(5)) {
    case 0: {  // remove or rename a key
      std::vector<Json*> objects;
      for (Json* each : values)
        if (each->is_object() && !each->empty()) objects.push_back(each);
      if (objects.empty()) break;
      Json& object = *rng.of(objects);
      const std::string key = std::next(object.begin(), static_cast<std::ptrdiff_t>(rng.below(object.size()))).key();
      what += "key " + key + "; ";
      const Json value = object[key];
      object.erase(key);
      if (rng.one_in(2)) object[key + (rng.one_in(2) ? "s" : "")] = rng.one_in(2) ? value : Json(mark);
      break;
    }
    case 1:  // repeat the last element
      if (place.is_array() && !place.empty()) {
        const Json last = place.back();
        for (size_t i = size_t{1} << rng.below(12); i > 0; --i) place.push_back(last);
        what += "longer list; ";
        break;
      }
      [[fallthrough]];
    case 2:
      if (place.is_number_integer() && rng.one_in(2)) {
        place = place.get<int64_t>() + (rng.one_in(2) ? 1 : -1);
        what += "one more or less; ";
        break;
      }
      [[fallthrough]];
    default: place = mark; what += "value " + replacement.substr(0, 40) + "; ";
  }
  std::string out = json.dump(rng.one_in(2) ? 2 : -1, ' ', false, Json::error_handler_t::replace);
  if (const size_t at = out.find("\"" + mark + "\""); at != out.npos) out.replace(at, mark.size() + 2, replacement);
  return out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size() - 1);
    out.push_back(text.substr(begin, end + 1 - begin));
    begin = end + 1;
  }
  return out;
}

std::string change_lines(const std::string& text, RandomSource& rng, const std::function<std::string(const std::string&)>& change,
                         std::string& what) {
  std::vector<std::string> lines = lines_of(text);
  if (lines.empty()) return text;
  const size_t at = rng.below(lines.size());
  const auto place = lines.begin() + static_cast<std::ptrdiff_t>(at);
  const size_t kind = rng.below(6);
  what += "line " + std::to_string(at + 1) + "; ";
  if (kind == 0) lines.erase(place);
  if (kind == 1) lines.insert(place, std::string(lines[at]));
  if (kind == 2) std::swap(lines[at], lines[rng.below(lines.size())]);
  if (kind > 2) *place = change(*place);
  std::string out;
  for (const std::string& line : lines) out += line;
  return out;
}

std::string change_toml_line(const std::string& line, RandomSource& rng, std::string& what) {
  const size_t equal = line.find('=');
  if (equal == line.npos) return line;
  if (rng.one_in(5)) return "x" + line;
  const std::string value = hostile_value(rng);
  what += "value " + value.substr(0, 40) + "; ";
  return line.substr(0, equal + 1) + " " + value + "\n";
}

// Replaces a number in the text.
std::string change_number(const std::string& text, RandomSource& rng, std::string& what) {
  const size_t from = rng.below(text.size());
  const size_t begin = text.find_first_of("0123456789", from);
  if (begin == text.npos) return text;
  const size_t end = std::min(text.find_first_not_of("0123456789.eE", begin), text.size());
  const std::string& number = rng.of(kNumbers);
  what += "number " + number + "; ";
  return text.substr(0, begin) + number + text.substr(end);
}

std::string change_bytes(std::string bytes, RandomSource& rng, std::string& what) {
  if (bytes.empty()) return "x";
  const auto here = [&] { return rng.below(bytes.size()); };
  // Half of the positions are among the first bytes, to hit headers.
  const size_t at = rng.one_in(2) ? here() : rng.below(std::min<size_t>(bytes.size(), 200));
  switch (rng.below(8)) {
    case 0:
      what += "bit; ";
      for (size_t i = size_t{1} << rng.below(5); i > 0; --i) bytes[here()] ^= static_cast<char>(1 << rng.below(8));
      bytes[at] ^= static_cast<char>(1 << rng.below(8));
      return bytes;
    case 1: what += "cut; "; return bytes.substr(0, rng.one_in(2) ? at : here());
    case 2: what += "repeat; "; return bytes.insert(at, bytes.substr(here(), 1 + rng.below(4096)));
    case 3: what += "delete; "; return bytes.erase(at, 1 + rng.below(size_t{1} << rng.below(12)));
    case 4:
      what += "word; ";
      for (size_t i = at; i < std::min(bytes.size(), at + (size_t{1} << rng.below(4))); ++i)
        bytes[i] = rng.one_in(2) ? '\xff' : rng.one_in(2) ? '\x7f' : '\0';
      return bytes;
    case 5:
      what += "noise; ";
      for (size_t i = at; i < std::min(bytes.size(), at + 64); ++i) bytes[i] = static_cast<char>(rng.next());
      return bytes;
    case 6: {
      what += "bad text; ";
      const std::vector<std::string> bad = {"\xff",    "\xc0\x80", "\xed\xa0\x80", "\xf8\x88\x80\x80\x80", std::string(1, '\0'),
                                            "\x1b[2J", "\r",       "\xef\xbb\xbf"};
      return bytes.insert(at, rng.of(bad));
    }
    default: what += "tail; "; return bytes + bytes.substr(here());
  }
}

std::string change_safetensors(const std::string& bytes, RandomSource& rng, std::string& what) {
  if (bytes.size() < 8) return bytes;
  uint64_t size = 0;
  for (size_t i = 8; i-- > 0;) size = size << 8 | static_cast<unsigned char>(bytes[i]);
  if (size > bytes.size() - 8) return bytes;
  const std::string header = change_json(bytes.substr(8, size), rng, what);
  std::string out;
  for (size_t i = 0; i < 8; ++i) out += static_cast<char>(header.size() >> (8 * i));
  return out + header + bytes.substr(8 + size);
}

std::string mutate_once(const std::string& bytes, Format format, RandomSource& rng, std::string& what) {
  const bool known = !rng.one_in(3);
  if (!bytes.empty() && known) switch (format) {
      case Format::json: return change_json(bytes, rng, what);
      case Format::safetensors: return change_safetensors(bytes, rng, what);
      case Format::toml:
        return change_lines(
            bytes, rng, [&](const std::string& line) { return change_toml_line(line, rng, what); }, what);
      case Format::json_lines:
        return change_lines(
            bytes, rng, [&](const std::string& line) { return change_json(line, rng, what) + "\n"; }, what);
      case Format::lines:
        return change_lines(
            bytes, rng,
            [&](const std::string& line) { return rng.one_in(2) ? change_number(line, rng, what) : change_bytes(line, rng, what); }, what);
      case Format::gz: {
        std::string inner = gunzip(bytes);
        what += "inside; ";
        return gz(change_bytes(std::move(inner), rng, what));
      }
      default: break;
    }
  return change_bytes(bytes, rng, what);
}

}  // namespace

// SplitMix64 (Steele, Lea and Flood 2014).
uint64_t RandomSource::next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Format format_of(const std::string& name) {
  const auto ends = [&](const char* end) { return name.ends_with(end); };
  if (ends(".gz")) return Format::gz;
  if (ends(".json")) return Format::json;
  if (ends(".jsonl")) return Format::json_lines;
  if (ends(".toml")) return Format::toml;
  if (ends(".safetensors")) return Format::safetensors;
  if (ends(".txt") || ends(".csv") || ends(".tsv") || ends(".en") || ends(".de")) return Format::lines;
  return Format::binary;
}

std::string mutated(const std::string& bytes, Format format, RandomSource& rng, std::string& what) {
  std::string out = bytes;
  for (size_t i = 1 + rng.below(3); i > 0; --i) out = mutate_once(out, format, rng, what);
  return out;
}

std::string gz(const std::string& bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::runtime_error("zlib");
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string gunzip(const std::string& bytes) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) throw std::runtime_error("zlib");
  std::string out(size_t{1} << 22, '\0');  // the valid files are smaller
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int end = inflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return end == Z_STREAM_END ? out : bytes;
}

}  // namespace heed::test
