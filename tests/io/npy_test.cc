#include "heed/io/npy.h"

#include <map>

#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

// The file that numpy.save writes: the header ends at a multiple of 64 bytes.
std::string npy(const std::string& descr, const std::string& shape, const Tensor& x) {
  const std::string text = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  const std::vector<std::byte> data = bytes_in(x);
  const size_t bytes = (10 + text.size() + 1 + 63) / 64 * 64 - 10;
  return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(bytes) + '\0' + text + std::string(bytes - text.size() - 1, ' ') + '\n' +
         std::string(reinterpret_cast<const char*>(data.data()), data.size());
}

TEST(Npy, writes_the_bytes_of_the_format) {
  const Folder folder;
  const std::map<DType, std::string> names{{DType::f32, "<f4"}, {DType::f16, "<f2"}, {DType::i64, "<i8"},
                                           {DType::i32, "<i4"}, {DType::u8, "|u1"},  {DType::boolean, "|b1"}};
  for (const auto& [dtype, name] : names) {
    const Tensor wide = counted({4, 6}, dtype);
    for (const auto& [x, shape] : std::vector<std::pair<Tensor, std::string>>{{wide, "(4, 6)"},
                                                                              {wide.view({6, 4}, {1, 6}), "(6, 4)"},
                                                                              {wide.view({2, 3}, {12, 2}, 1), "(2, 3)"},
                                                                              {counted({}, dtype), "()"},
                                                                              {counted({5}, dtype), "(5,)"},
                                                                              {counted({2, 0, 3}, dtype), "(2, 0, 3)"}}) {
      write_npy(folder / "a.npy", x);
      EXPECT_EQ(get(folder / "a.npy"), npy(name, shape, x));
    }
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.npy"});
}

TEST(Npy, refuses_to_write_bf16) {
  const Folder folder;
  expect_error([&] { write_npy(folder / "a.npy", counted({2}, DType::bf16)); },
               "write_npy: found bf16, which NumPy does not know; cast the tensor to f32 first");
  EXPECT_THROW(write_npy(folder / "a.npy", Tensor()), Error);
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace heed::test
