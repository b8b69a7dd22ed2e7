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

std::string deep(Chance& chance) {
  const size_t levels = size_t{10} << chance.below(15);
  const bool closed = !chance.one_in(3);
  const std::string open = chance.one_in(2) ? "[" : "{\"a\":", close = open == "[" ? "]" : "}";
  std::string out;
  for (size_t i = 0; i < levels; ++i) out += open;
  out += "1";
  for (size_t i = 0; closed && i < levels; ++i) out += close;
  return out;
}

std::string hostile_value(Chance& chance) {  // as JSON and TOML write it
  switch (chance.below(9)) {
    case 0: return "\"\"";
    case 1: return "\"" + std::string(size_t{1} << chance.below(18), 'a') + "\"";
    case 2: return "null";
    case 3: return chance.one_in(2) ? "true" : "[]";
    case 4: return chance.one_in(2) ? "{}" : "[[], {}, null, 1, \"x\"]";
    case 5: return deep(chance);
    case 6: return chance.one_in(2) ? "\"\\ud800\"" : "\"\xff\xfe\"";
    default: return chance.of(kNumbers);
  }
}

// Every place in a document, as pointers.
void collect(Json& at, std::vector<Json*>& all, size_t most) {
  if (all.size() >= most) return;
  all.push_back(&at);
  if (at.is_structured())
    for (Json& inner : at) collect(inner, all, most);
}

// A text that an earlier change has nested so deeply, or made so long, that the parser here, unlike the one of heed, would not live through
// it.
bool too_much_to_parse(const std::string& text) {
  int64_t depth = 0, deepest = 0;
  for (const char letter : text) {
    depth += letter == '[' || letter == '{' ? 1 : letter == ']' || letter == '}' ? -1 : 0;
    deepest = std::max(deepest, depth);
  }
  return deepest > 500 || text.size() > (size_t{16} << 20);
}

std::string change_json(const std::string& text, Chance& chance, std::string& what) {
  if (too_much_to_parse(text)) return text;
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return text;
  std::vector<Json*> places;
  collect(json, places, 4000);
  Json& place = *chance.of(places);
  const std::string mark = "@@hostile@@";
  std::string put = hostile_value(chance);
  switch (chance.below(5)) {
    case 0: {  // a key goes, or has another name
      std::vector<Json*> objects;
      for (Json* each : places)
        if (each->is_object() && !each->empty()) objects.push_back(each);
      if (objects.empty()) break;
      Json& object = *chance.of(objects);
      const std::string key = std::next(object.begin(), static_cast<std::ptrdiff_t>(chance.below(object.size()))).key();
      what += "key " + key + "; ";
      const Json value = object[key];
      object.erase(key);
      if (chance.one_in(2)) object[key + (chance.one_in(2) ? "s" : "")] = chance.one_in(2) ? value : Json(mark);
      break;
    }
    case 1:  // as often as it takes to hurt
      if (place.is_array() && !place.empty()) {
        const Json last = place.back();
        for (size_t i = size_t{1} << chance.below(12); i > 0; --i) place.push_back(last);
        what += "longer list; ";
        break;
      }
      [[fallthrough]];
    case 2:
      if (place.is_number_integer() && chance.one_in(2)) {
        place = place.get<int64_t>() + (chance.one_in(2) ? 1 : -1);
        what += "one more or less; ";
        break;
      }
      [[fallthrough]];
    default: place = mark; what += "value " + put.substr(0, 40) + "; ";
  }
  std::string out = json.dump(chance.one_in(2) ? 2 : -1, ' ', false, Json::error_handler_t::replace);
  if (const size_t at = out.find("\"" + mark + "\""); at != out.npos) out.replace(at, mark.size() + 2, put);
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

std::string change_lines(const std::string& text, Chance& chance, const std::function<std::string(const std::string&)>& change,
                         std::string& what) {
  std::vector<std::string> lines = lines_of(text);
  if (lines.empty()) return text;
  const size_t at = chance.below(lines.size());
  const auto place = lines.begin() + static_cast<std::ptrdiff_t>(at);
  const size_t kind = chance.below(6);
  what += "line " + std::to_string(at + 1) + "; ";
  if (kind == 0) lines.erase(place);
  if (kind == 1) lines.insert(place, std::string(lines[at]));
  if (kind == 2) std::swap(lines[at], lines[chance.below(lines.size())]);
  if (kind > 2) *place = change(*place);
  std::string out;
  for (const std::string& line : lines) out += line;
  return out;
}

std::string change_toml_line(const std::string& line, Chance& chance, std::string& what) {
  const size_t equal = line.find('=');
  if (equal == line.npos) return line;
  if (chance.one_in(5)) return "x" + line;
  const std::string value = hostile_value(chance);
  what += "value " + value.substr(0, 40) + "; ";
  return line.substr(0, equal + 1) + " " + value + "\n";
}

// A number in the text becomes another.
std::string change_number(const std::string& text, Chance& chance, std::string& what) {
  const size_t from = chance.below(text.size());
  const size_t begin = text.find_first_of("0123456789", from);
  if (begin == text.npos) return text;
  const size_t end = std::min(text.find_first_not_of("0123456789.eE", begin), text.size());
  const std::string& number = chance.of(kNumbers);
  what += "number " + number + "; ";
  return text.substr(0, begin) + number + text.substr(end);
}

std::string change_bytes(std::string bytes, Chance& chance, std::string& what) {
  if (bytes.empty()) return "x";
  const auto here = [&] { return chance.below(bytes.size()); };
  // Headers come first: half of all places are among the first bytes.
  const size_t at = chance.one_in(2) ? here() : chance.below(std::min<size_t>(bytes.size(), 200));
  switch (chance.below(8)) {
    case 0:
      what += "bit; ";
      for (size_t i = size_t{1} << chance.below(5); i > 0; --i) bytes[here()] ^= static_cast<char>(1 << chance.below(8));
      bytes[at] ^= static_cast<char>(1 << chance.below(8));
      return bytes;
    case 1: what += "cut; "; return bytes.substr(0, chance.one_in(2) ? at : here());
    case 2: what += "repeat; "; return bytes.insert(at, bytes.substr(here(), 1 + chance.below(4096)));
    case 3: what += "delete; "; return bytes.erase(at, 1 + chance.below(size_t{1} << chance.below(12)));
    case 4:
      what += "word; ";
      for (size_t i = at; i < std::min(bytes.size(), at + (size_t{1} << chance.below(4))); ++i)
        bytes[i] = chance.one_in(2) ? '\xff' : chance.one_in(2) ? '\x7f' : '\0';
      return bytes;
    case 5:
      what += "noise; ";
      for (size_t i = at; i < std::min(bytes.size(), at + 64); ++i) bytes[i] = static_cast<char>(chance.next());
      return bytes;
    case 6: {
      what += "bad text; ";
      const std::vector<std::string> bad = {"\xff",    "\xc0\x80", "\xed\xa0\x80", "\xf8\x88\x80\x80\x80", std::string(1, '\0'),
                                            "\x1b[2J", "\r",       "\xef\xbb\xbf"};
      return bytes.insert(at, chance.of(bad));
    }
    default: what += "tail; "; return bytes + bytes.substr(here());
  }
}

std::string change_safetensors(const std::string& bytes, Chance& chance, std::string& what) {
  if (bytes.size() < 8) return bytes;
  uint64_t size = 0;
  for (size_t i = 8; i-- > 0;) size = size << 8 | static_cast<unsigned char>(bytes[i]);
  if (size > bytes.size() - 8) return bytes;
  const std::string header = change_json(bytes.substr(8, size), chance, what);
  std::string out;
  for (size_t i = 0; i < 8; ++i) out += static_cast<char>(header.size() >> (8 * i));
  return out + header + bytes.substr(8 + size);
}

std::string once(const std::string& bytes, Format format, Chance& chance, std::string& what) {
  const bool known = !chance.one_in(3);
  if (!bytes.empty() && known) switch (format) {
      case Format::json: return change_json(bytes, chance, what);
      case Format::safetensors: return change_safetensors(bytes, chance, what);
      case Format::toml:
        return change_lines(
            bytes, chance, [&](const std::string& line) { return change_toml_line(line, chance, what); }, what);
      case Format::json_lines:
        return change_lines(
            bytes, chance, [&](const std::string& line) { return change_json(line, chance, what) + "\n"; }, what);
      case Format::lines:
        return change_lines(
            bytes, chance,
            [&](const std::string& line) {
              return chance.one_in(2) ? change_number(line, chance, what) : change_bytes(line, chance, what);
            },
            what);
      case Format::gz: {
        std::string inner = gunzip(bytes);
        what += "inside; ";
        return gz(change_bytes(std::move(inner), chance, what));
      }
      default: break;
    }
  return change_bytes(bytes, chance, what);
}

}  // namespace

// SplitMix64 (Steele, Lea and Flood 2014).
uint64_t Chance::next() {
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

std::string mutated(const std::string& bytes, Format format, Chance& chance, std::string& what) {
  std::string out = bytes;
  for (size_t i = 1 + chance.below(3); i > 0; --i) out = once(out, format, chance, what);
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
  std::string out(size_t{1} << 22, '\0');  // the good files are smaller
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
