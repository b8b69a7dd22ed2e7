// Damaged and hostile safetensors files: each is refused with a specific message.
#include "heed/io/safetensors.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

std::string bad_file(const std::string& header, size_t data = 0) {
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + header + std::string(data, '\0');
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

// One tensor "x" with this entry, and data bytes.
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets, size_t data) {
  return bad_file("{\"x\":" + entry(dtype, shape, offsets) + "}", data);
}

TEST(Safetensors, refuses_invalid_files) {
  const std::string f32 = "\"F32\"", good = entry(f32, "[1]", "[0,4]");
  const struct {
    const char* name;
    std::string bytes, fragment;
  } bad[] = {
      {"empty file", "", "held: found 0 bytes, expected a safetensors file"},
      {"seven bytes", "1234567", "found 7 bytes, expected a safetensors file"},
      {"header longer than the format allows", std::string("\x01\xe1\xf5\x05\0\0\0\0", 8),
       "found a header of 100000001 bytes, expected at most 100000000"},
      {"header of 2^64 - 1 bytes", std::string(8, '\xff'), "found a header of 18446744073709551615 bytes"},
      {"header of 2^63 bytes", std::string("\0\0\0\0\0\0\0\x80{}", 10), "found a header of 9223372036854775808 bytes"},
      {"header longer than the file", std::string("\x20\0\0\0\0\0\0\0{}", 10),
       "found a header of 32 bytes, expected at most the 2 that follow"},
      {"no header", std::string(8, '\0'), "found no { at byte 8"},
      {"a zip file", "PK\3\4 and then some more bytes", "is this a safetensors file?"},
      {"header is a list", bad_file("[]"), "found no { at byte 8"},
      {"header is not JSON", bad_file("{x}"), "expected JSON"},
      {"header cut short", bad_file(R"({"x":{"dtype":"F32")"), "unexpected end of input"},
      {"two headers", bad_file("{}{}"), "expected end of input"},
      {"zero bytes as padding", bad_file(std::string("{}\0\0", 4)), "found a zero byte"},
      {"name is not UTF-8", bad_file("{\"\xff\":" + good + "}", 4), "expected JSON"},
      {"tensor twice", bad_file("{\"x\":" + good + ",\"x\":" + entry(f32, "[1]", "[4,8]") + "}", 8), "found tensor \"x\" a second time"},
      {"metadata twice", bad_file(R"({"__metadata__":{},"__metadata__":{}})"), "__metadata__: found a second time"},
      {"metadata key twice", bad_file(R"({"__metadata__":{"a":"1","a":"2"}})"), "found the key \"a\" a second time"},
      {"metadata is a string", bad_file(R"({"__metadata__":"a"})"), "__metadata__: found \"a\", expected an object"},
      {"metadata is null", bad_file(R"({"__metadata__":null})"), "__metadata__: found null, expected an object"},
      {"metadata holds a number", bad_file(R"({"__metadata__":{"a":1}})"), "found 1 under \"a\", expected a string"},
      {"metadata holds an object", bad_file(R"({"__metadata__":{"a":{}}})"), "found an object or a list, expected a string"},
      {"entry is a number", bad_file(R"({"x":5})"), "tensor \"x\": found 5, expected an object"},
      {"entry is a list", bad_file(R"({"x":[]})"), "tensor \"x\": found a list, expected an object"},
      {"entry is empty", bad_file(R"({"x":{}})"), "tensor \"x\": found no dtype"},
      {"no shape", bad_file(R"({"x":{"dtype":"F32","data_offsets":[0,4]}})", 4), "found no shape"},
      {"no offsets", bad_file(R"({"x":{"dtype":"F32","shape":[1]}})", 4), "found no data_offsets"},
      {"unknown key", bad_file(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"extra":1}})", 4), "found the key \"extra\""},
      {"dtype twice", bad_file(R"({"x":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4), "found dtype a second time"},
      {"shape twice", bad_file(R"({"x":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}})", 4), "found shape a second time"},
      {"dtype F64", one("\"F64\"", "[1]", "[0,8]", 8), "found dtype \"F64\", expected F32, BF16, F16, I64, I32, U8 or BOOL; convert"},
      {"dtype I8", one("\"I8\"", "[1]", "[0,1]", 1), "found dtype \"I8\""},
      {"dtype F8_E4M3", one("\"F8_E4M3\"", "[1]", "[0,1]", 1), "found dtype \"F8_E4M3\""},
      {"dtype in small letters", one("\"f32\"", "[1]", "[0,4]", 4), "found dtype \"f32\""},
      {"dtype is a number", one("7", "[1]", "[0,4]", 4), "found dtype 7, expected a string"},
      {"dtype is a list", one("[]", "[1]", "[0,4]", 4), "found an object or a list in dtype"},
      {"shape is a number", one(f32, "1", "[0,4]", 4), "found shape 1, expected a list"},
      {"shape is an object", one(f32, "{}", "[0,4]", 4), "found an object or a list in shape"},
      {"shape is nested", one(f32, "[[1]]", "[0,4]", 4), "found an object or a list in shape"},
      {"negative size", one(f32, "[-1]", "[0,4]", 4), "found -1 in shape, expected whole numbers"},
      {"broken size", one(f32, "[1.5]", "[0,4]", 4), "found 1.5 in shape"},
      {"size is a string", one(f32, "[\"1\"]", "[0,4]", 4), "found \"1\" in shape"},
      {"size of 2^63", one(f32, "[9223372036854775808]", "[0,4]", 4), "found 9223372036854775808 in shape"},
      {"size of 2^64", one(f32, "[18446744073709551616]", "[0,4]", 4), "in shape, expected whole numbers"},
      {"sizes overflow", one(f32, "[4294967296,4294967296]", "[0,0]", 0), "expected sizes that memory can hold"},
      {"sizes overflow to the right number", one(f32, "[4611686018427387905]", "[0,4]", 4), "expected sizes that memory can hold"},
      {"sizes overflow next to a zero", one(f32, "[0,4294967296,4294967296]", "[0,0]", 0), "expected sizes that memory can hold"},
      {"nine axes", one(f32, "[1,1,1,1,1,1,1,1,1]", "[0,4]", 4), "found more than 8 axes"},
      {"one offset", one(f32, "[1]", "[0]", 4), "found 1 data_offsets, expected 2"},
      {"three offsets", one(f32, "[1]", "[0,4,8]", 8), "found more than 2 data_offsets"},
      {"negative offset", one(f32, "[1]", "[-4,0]", 4), "found -4 in data_offsets"},
      {"offsets backwards", one(f32, "[1]", "[4,0]", 4), "run backwards, from 4 to 0"},
      {"shape larger than the data", one(f32, "[2]", "[0,4]", 4), "found 4 bytes of data, expected 8 for shape (2) of F32"},
      {"shape smaller than the data", one(f32, "[]", "[0,8]", 8), "found 8 bytes of data, expected 4 for shape () of F32"},
      {"data cut short", one(f32, "[4]", "[0,16]", 15), "found data_offsets up to 16, expected at most the 15 bytes of data"},
      {"offset far outside", one(f32, "[1]", "[9223372036854775803,9223372036854775807]", 4), "expected at most the 4 bytes of data"},
      {"bytes after the last tensor", one(f32, "[1]", "[0,4]", 5), "found 1 bytes after the last tensor"},
      {"data without tensors", bad_file("{}", 3), "found 3 bytes after the last tensor"},
      {"hole at the beginning", one(f32, "[1]", "[4,8]", 8), "found data from byte 4, expected byte 0: there is a gap"},
      {"hole between", bad_file("{\"x\":" + good + ",\"y\":" + entry(f32, "[1]", "[8,12]") + "}", 12),
       "tensor \"y\": found data from byte 8, expected byte 4"},
      {"overlap", bad_file("{\"x\":" + entry(f32, "[2]", "[0,8]") + ",\"y\":" + entry(f32, "[2]", "[4,12]") + "}", 12),
       "it overlaps another tensor"},
      {"the same data twice", bad_file("{\"x\":" + good + ",\"y\":" + good + "}", 4), "it overlaps another tensor"},
      {"empty tensor inside another", bad_file("{\"x\":" + entry(f32, "[2]", "[0,8]") + ",\"y\":" + entry(f32, "[0]", "[4,4]") + "}", 8),
       "it overlaps"},
      {"name with terminal control characters", bad_file(R"({"\u001b[31mx":5})"), "tensor \"\\x1b[31mx\": found 5"},
  };
  const Folder folder;
  for (const auto& c : bad) {
    SCOPED_TRACE(c.name);
    expect_refused([&] { Safetensors::parse(mapped_bytes(c.bytes)); }, c.fragment);
    put(folder / "held", c.bytes);
    expect_refused([&] { Safetensors::open(folder / "held"); }, c.fragment);
  }
}

TEST(Safetensors, refuses_invalid_booleans_on_access) {
  std::string bytes = bad_file("{\"x\":" + entry("\"BOOL\"", "[4]", "[0,4]") + ",\"y\":" + entry("\"BOOL\"", "[1]", "[4,5]") + "}", 5);
  bytes[bytes.size() - 3] = 2;
  const Safetensors file = Safetensors::parse(mapped_bytes(bytes));
  expect_refused([&] { file.tensor("x"); }, "held: tensor \"x\": found a boolean that is neither 0 nor 1 at element 2");
  EXPECT_FALSE(file.tensor("y").item<bool>());
}

TEST(Safetensors, refuses_every_truncated_file) {
  const std::string whole = bad_file("{\"x\":" + entry("\"F32\"", "[2]", "[0,8]") + "}", 8);
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(Safetensors::parse(mapped_bytes(whole.substr(0, length))), FileError) << length << " bytes";
  EXPECT_EQ(Safetensors::parse(mapped_bytes(whole)).tensor("x").count(), 2);
}

}  // namespace
}  // namespace heed::test
