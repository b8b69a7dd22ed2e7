#include "heed/io/npy.h"

#include "tests/io/files.h"

namespace heed::test {
namespace {

// A file with this header text and version.
std::string npy(const std::string& dict, const std::string& data, char major = 1, char minor = 0) {
  const auto size = static_cast<uint32_t>(dict.size());
  return std::string("\x93NUMPY") + major + minor + std::string(reinterpret_cast<const char*>(&size), major == 1 ? 2 : 4) + dict + data;
}

std::string dict(const std::string& descr, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
}

std::string six_floats() {
  const std::vector<std::byte> bytes = bytes_in(counted({6}, DType::f32));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Npy, round_trips_every_dtype_and_layout) {
  const Folder folder;
  for (DType dtype : kEveryDType) {
    if (dtype == DType::bf16) continue;
    const Tensor wide = counted({4, 6}, dtype);
    for (const Tensor& x : {wide, wide.view({6, 4}, {1, 6}), wide.view({2, 3}, {12, 2}, 1), counted({}, dtype), counted({5}, dtype),
                            counted({2, 0, 3}, dtype), counted({1, 2, 1, 2, 1, 2, 1, 3}, dtype)}) {
      write_npy(folder / "a.npy", x);
      expect_same(read_npy(folder / "a.npy"), x);
    }
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.npy"});
}

TEST(Npy, writes_the_bytes_of_the_format) {
  const Folder folder;
  write_npy(folder / "a.npy", counted({2, 3}, DType::f32));
  const std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  EXPECT_EQ(get(folder / "a.npy"), npy(text + std::string(117 - text.size(), ' ') + "\n", six_floats()));
  write_npy(folder / "a.npy", counted({6}, DType::f32));
  EXPECT_NE(get(folder / "a.npy").find("'shape': (6,), }"), std::string::npos);
}

TEST(Npy, reads_every_version_and_order) {
  const Tensor rows = counted({2, 3}, DType::f32);
  for (char version : {'\1', '\2', '\3'}) {
    expect_same(parse_npy(held(npy(dict("<f4", "(2, 3)"), six_floats(), version))), rows);
    const Tensor columns = parse_npy(held(npy(dict("<f4", "(3, 2)", "True"), six_floats(), version)));
    expect_same(columns, rows.view({3, 2}, {1, 3}));
  }
  expect_same(parse_npy(held(npy(dict("<f4", "(6,)", "True"), six_floats()))), counted({6}, DType::f32));
  expect_same(parse_npy(held(npy(dict("<f4", "(1,2,3,)", "True"), six_floats()))), rows.view({1, 2, 3}, {1, 1, 2}));
  expect_same(parse_npy(held(npy("{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"<f4\"}", six_floats()))), rows);
}

TEST(Npy, refuses_to_write_bf16) {
  const Folder folder;
  try {
    write_npy(folder / "a.npy", counted({2}, DType::bf16));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "write_npy: found bf16, which NumPy does not know; cast the tensor to f32 first");
  }
  EXPECT_THROW(write_npy(folder / "a.npy", Tensor()), Error);
  EXPECT_TRUE(folder.names().empty());
}

TEST(Npy, refuses_bad_files) {
  const std::string data = six_floats(), good = dict("<f4", "(6,)");
  const struct {
    const char* name;
    std::string bytes, fragment;
  } bad[] = {
      {"empty file", "", "held: found no NumPy signature, expected a .npy file"},
      {"another kind of file", "PK\3\4 and then some more bytes", "found no NumPy signature"},
      {"signature alone", "\x93NUMPY", "found no NumPy signature"},
      {"version 4", npy(good, data, 4), "found version 4.0, expected 1.0, 2.0 or 3.0"},
      {"version 1.1", npy(good, data, 1, 1), "found version 1.1"},
      {"version 0", npy(good, data, 0), "found version 0.0"},
      {"length cut short", npy(good, data, 2).substr(0, 10), "found 10 bytes, expected at least 12"},
      {"header longer than the file", npy(good, "").substr(0, 40), "expected at most the 30 that follow"},
      {"header too long", std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12), "found a header of 4294967295 bytes, expected at most 65536"},
      {"empty header", npy("", data), "found the end, expected {"},
      {"not a dict", npy("[]", data), "found \"[\", expected {"},
      {"dict without end", npy("{'descr': '<f4', ", data), "found the end, expected a string"},
      {"string without end", npy("{'descr: ", data), "found no end of a string"},
      {"no colon", npy("{'descr' '<f4'}", data), "found \"'\", expected :"},
      {"no comma", npy("{'descr': '<f4' 'shape': (6,)}", data), "expected , or }"},
      {"no descr", npy("{'fortran_order': False, 'shape': (6,)}", data), "found no descr"},
      {"no shape", npy("{'descr': '<f4', 'fortran_order': False}", data), "found no shape"},
      {"no order", npy("{'descr': '<f4', 'shape': (6,)}", data), "found no fortran_order"},
      {"key twice", npy("{'descr': '<f4', 'descr': '<f4'}", data), "found the key \"descr\" a second time"},
      {"unknown key", npy("{'other': 1}", data), "found the key \"other\""},
      {"text after the dict", npy(good + "x", data), "found \"x\" after the dict"},
      {"zero byte after the dict", npy(good + std::string(1, '\0'), data), "found a zero byte"},
      {"order is a number", npy(dict("<f4", "(6,)", "0"), data), "found \"0\", expected True or False"},
      {"f8", npy(dict("<f8", "(3,)"), data),
       "found dtype \"<f8\", expected one of <f4 <f2 <i8 <i4 |u1 |b1; save it with .astype('float32')"},
      {"big-endian", npy(dict(">f4", "(6,)"), data), "it is big-endian"},
      {"i1", npy(dict("|i1", "(24,)"), data), "found dtype \"|i1\""},
      {"objects", npy(dict("|O", "(3,)"), data), "found dtype \"|O\""},
      {"text", npy(dict("<U3", "(2,)"), data), "found dtype \"<U3\""},
      {"bf16 as raw bytes", npy(dict("|V2", "(12,)"), data), "bf16 has no name in this format"},
      {"structured", npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,)}", data), "found a structured dtype"},
      {"shape is a number", npy(dict("<f4", "6"), data), "found \"6\", expected ("},
      {"shape is no tuple", npy(dict("<f4", "(6)"), data), "expected a tuple such as (3,)"},
      {"shape without comma", npy(dict("<f4", "(2 3)"), data), "found \"3\", expected , or )"},
      {"shape with two commas", npy(dict("<f4", "(2,,3)"), data), "expected a size of 0 or more"},
      {"shape is a comma", npy(dict("<f4", "(,)"), data), "expected a size of 0 or more"},
      {"negative size", npy(dict("<f4", "(-6,)"), data), "found \"-\", expected a size"},
      {"size of a number too long", npy(dict("<f4", "(9223372036854775808,)"), data), "more than 2^63 - 1"},
      {"sizes overflow", npy(dict("<f4", "(4294967296, 4294967296)"), data), "expected sizes that memory can hold"},
      {"sizes overflow to the right number", npy(dict("<f4", "(4611686018427387910,)"), data), "expected sizes that memory can hold"},
      {"nine axes", npy(dict("<f4", "(1,1,1,1,1,1,1,1,6)"), data), "found more than 8 axes"},
      {"data cut short", npy(good, data.substr(1)), "found 23 bytes of data, expected 24 for shape (6) of <f4; the file was cut short"},
      {"two arrays", npy(good, data + npy(good, data)), "a .npy file holds one array"},
      {"boolean that is 2", npy(dict("|b1", "(3,)"), std::string("\0\1\2", 3)), "neither 0 nor 1 at element 2"},
  };
  for (const auto& c : bad) {
    SCOPED_TRACE(c.name);
    expect_refused([&] { parse_npy(held(c.bytes)); }, c.fragment);
  }
}

TEST(Npy, copies_unaligned_data) {
  const Folder folder;
  for (size_t extra = 0; extra < 5; ++extra) {
    put(folder / "a.npy", npy(dict("<f4", "(6,)") + std::string(extra, ' '), six_floats()));
    expect_same(read_npy(folder / "a.npy"), counted({6}, DType::f32));
  }
}

}  // namespace
}  // namespace heed::test
