#include "heed/io/safetensors.h"

#include <signal.h>
#include <sys/resource.h>

#include "heed/core/copy.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;

void expect_same(const Safetensors& file, const NamedTensors& tensors) {
  ASSERT_EQ(file.names().size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(file.names()[i], tensors[i].first);
    test::expect_same(file.tensor(tensors[i].first), tensors[i].second);
  }
}

NamedTensors some_tensors() {
  NamedTensors out;
  for (DType dtype : {DType::boolean, DType::u8, DType::f16, DType::bf16, DType::i32, DType::f32, DType::i64}) {
    const std::string name = name_of(dtype);
    out.emplace_back(name + ".matrix", counted({3, 5}, dtype));
    out.emplace_back(name + ".scalar", counted({}, dtype));
    out.emplace_back(name + ".empty", counted({2, 0, 3}, dtype));
    out.emplace_back(name + ".eight", counted({1, 2, 1, 2, 1, 2, 1, 3}, dtype));
    const Tensor wide = counted({4, 6}, dtype);
    out.emplace_back(name + ".transposed", wide.view({6, 4}, {1, 6}));
    out.emplace_back(name + ".part", wide.view({2, 3}, {12, 2}, 1));
    out.emplace_back(name + ".repeated", wide.view({3, 6}, {0, 1}));
  }
  return out;
}

TEST(Safetensors, round_trips_every_dtype_and_layout) {
  const Folder folder;
  const NamedTensors tensors = some_tensors();
  const Metadata metadata = {{"format", "pt"}, {"", "empty key"}, {"text", "\xc3\xa4 \"quoted\" \n"}};
  write_safetensors(folder / "a.safetensors", tensors, metadata);
  const Safetensors file = Safetensors::open(folder / "a.safetensors");
  expect_same(file, tensors);
  EXPECT_EQ(file.metadata(), metadata);
  EXPECT_TRUE(file.contains("f32.matrix"));
  EXPECT_FALSE(file.contains("f32"));
  EXPECT_EQ(file.entry("bf16.matrix").shape, (Shape{3, 5}));
  EXPECT_EQ(file.entry("bf16.matrix").dtype, DType::bf16);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.safetensors"});
}

TEST(Safetensors, round_trips_an_empty_file) {
  const Folder folder;
  write_safetensors(folder / "a", {});
  EXPECT_TRUE(Safetensors::open(folder / "a").names().empty());
  EXPECT_EQ(get(folder / "a"), std::string("\10\0\0\0\0\0\0\0{}      ", 16));
}

TEST(Safetensors, writes_the_bytes_of_the_format) {
  const Folder folder;
  write_safetensors(
      folder / "a",
      {{"b", Tensor::from<uint8_t>(std::vector<uint8_t>{7}, {1}, kCpu)}, {"a", Tensor::from<float>(std::vector<float>{1}, {}, kCpu)}},
      {{"k", "v"}});
  const std::string header = R"({"__metadata__":{"k":"v"},"b":{"dtype":"U8","shape":[1],"data_offsets":[4,5]},)"
                             R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(get(folder / "a"),
            std::string(1, static_cast<char>(padded.size())) + std::string(7, '\0') + padded + std::string("\0\0\x80\x3f\7", 5));
}

TEST(Safetensors, tensors_borrow_the_file_and_outlive_its_reader) {
  const Folder folder;
  const Tensor x = counted({1 << 20}, DType::f32);
  write_safetensors(folder / "a", {{"x", x}});
  const int64_t before = memory_use(kCpu).in_use;
  Tensor read;
  {
    const Safetensors file = Safetensors::open(folder / "a");
    read = file.tensor("x");
    EXPECT_EQ(memory_use(kCpu).in_use, before);
  }
  copy_into(Tensor::zeros({1 << 20}, kCpu), read);  // stays in this process
  test::expect_same(Safetensors::open(folder / "a").tensor("x"), x);
}

TEST(Safetensors, replaces_the_file_that_its_own_tensors_borrow) {
  const Folder folder;
  const Tensor x = counted({100, 100}, DType::f32);
  write_safetensors(folder / "a", {{"x", x}});
  const Tensor read = Safetensors::open(folder / "a").tensor("x");
  write_safetensors(folder / "a", {{"y", read.view({100, 100}, {1, 100})}});
  test::expect_same(read, x);
  test::expect_same(Safetensors::open(folder / "a").tensor("y"), x.view({100, 100}, {1, 100}));
}

TEST(Safetensors, copies_unaligned_data) {
  const std::string header =
      R"({"u":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"x":{"dtype":"F32","shape":[3000000],"data_offsets":[1,12000001]}})";
  const Tensor x = counted({3'000'000}, DType::f32);
  const std::vector<std::byte> bytes = bytes_in(x);
  const Folder folder;
  put(folder / "a", std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header + "\5" +
                        std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  const Safetensors file = Safetensors::open(folder / "a");
  EXPECT_EQ(file.tensor("u").item<uint8_t>(), 5);
  test::expect_same(file.tensor("x"), x);
  test::expect_same(file.tensor("x"), x);  // released pages are read again
}

TEST(Safetensors, suggests_similar_names_if_a_tensor_is_missing) {
  const Folder folder;
  write_safetensors(folder / "a", {{"encoder.0.weight", counted({1}, DType::f32)},
                                   {"encoder.1.weight", counted({1}, DType::f32)},
                                   {"head.bias", counted({1}, DType::f32)},
                                   {"zzz", counted({1}, DType::f32)}});
  const Safetensors file = Safetensors::open(folder / "a");
  expect_refused([&] { file.tensor("encoder.1.weigth"); },
                 "a: found no tensor \"encoder.1.weigth\" among 4; the nearest names are \"encoder.1.weight\", \"encoder.0.weight\", ");
  expect_refused([&] { file.entry(""); }, "the nearest names are \"zzz\", ");
}

TEST(Safetensors, refuses_to_write_unreadable_files) {
  const Folder folder;
  put(folder / "a", "old");
  const Tensor x = counted({2}, DType::f32);
  expect_refused([&] { write_safetensors(folder / "a", {{"x", x}, {"y", x}, {"x", x}}); }, "a: found tensor \"x\" a second time");
  expect_refused([&] { write_safetensors(folder / "a", {{"\xff", x}}); }, "expected UTF-8");
  expect_refused([&] { write_safetensors(folder / "a", {{"x", x}}, {{"k", "\xff"}}); }, "expected UTF-8");
  expect_refused([&] { write_safetensors(folder / "a", {{"x", x}}, {{"k", std::string(9 << 20, 'x')}}); }, "more than 4194304 bytes");
  EXPECT_THROW(write_safetensors(folder / "a", {{"x", Tensor()}}), Error);
  EXPECT_THROW(write_safetensors(folder / "a", {{"__metadata__", x}}), Error);
  EXPECT_EQ(get(folder / "a"), "old");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

TEST(Safetensors, a_failed_write_changes_nothing) {
  const Folder folder;
  const NamedTensors small = {{"x", counted({8}, DType::f32)}}, large = {{"x", counted({1 << 20}, DType::f32)}};
  write_safetensors(folder / "a", small);
  write_sharded(folder / "s", {{"x", small[0].second}, {"y", small[0].second}}, 32);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit tight{1 << 20, before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &tight);
  expect_refused([&] { write_safetensors(folder / "a", large); }, "writing failed after 1048576 bytes");
  expect_refused([&] { write_sharded(folder / "s", {{"x", counted({8}, DType::i64)}, {"y", large[0].second}}, 32); }, "writing failed");
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  expect_same(Safetensors::open(folder / "a"), small);
  test::expect_same(Safetensors::open(folder / "s").tensor("x"), small[0].second);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"a", "s"}));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "s"), {}), 3);
}

// --- memory and time ---------------------------------------------------------------------------------------------------

std::string framed(const std::string& header) {
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + header;
}

TEST(Safetensors, opens_a_large_file_without_reading_it) {
  const Folder folder;
  const int64_t count = int64_t{1} << 28;  // 1 GiB of zeros in a sparse file
  put(folder / "a", framed(R"({"x":{"dtype":"F32","shape":[268435456],"data_offsets":[0,1073741824]}}     )"));
  fs::resize_file(folder / "a", fs::file_size(folder / "a") + static_cast<uintmax_t>(4 * count));
  const int64_t before = process_bytes("VmRSS");
  const Tensor x = Safetensors::open(folder / "a").tensor("x");
  EXPECT_EQ(x.view({1}, {1}, count - 1).item(), 0);
  EXPECT_LT(process_bytes("VmRSS") - before, 8 << 20);
}

// Opens a hostile file, which must not use more memory than its size plus 64 MiB.
void expect_bounded(const std::string& header, const std::string& fragment) {
  SCOPED_TRACE(fragment);
  const Folder folder;
  put(folder / "a", framed(header));
  if (kSanitized || !reset_high_water()) return expect_refused([&] { Safetensors::open(folder / "a"); }, fragment);
  const int64_t before = process_bytes("VmRSS");
  expect_refused([&] { Safetensors::open(folder / "a"); }, fragment);
  EXPECT_LT(process_bytes("VmHWM") - before, static_cast<int64_t>(header.size()) + (64 << 20));
}

TEST(Safetensors, hostile_headers_use_little_memory) {
  const size_t header_size = 95'000'000;
  std::string tiny = "{";
  for (int i = 0; tiny.size() < header_size; ++i)
    tiny += "\"" + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)";
  expect_bounded(tiny, "found more than 131072 tensors");
  std::string pairs = R"({"__metadata__":{)";
  for (int i = 0; pairs.size() < header_size; ++i) pairs += "\"" + std::to_string(i) + "\":\"\",";
  expect_bounded(pairs, "found more than 131072 tensors and metadata entries");
  std::string names = "{";
  for (char i = 'a'; names.size() < header_size; ++i)
    names += "\"" + std::string(4'000'000, i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)";
  expect_bounded(names, "found more than 8388608 bytes of names and metadata");
  expect_bounded("{\"" + std::string(header_size, 'x'), "found a string, number or whitespace");
  expect_bounded("{" + std::string(header_size, ' '), "found a string, number or whitespace");
  std::string lists = R"({"x":{"dtype":"U8","shape":[)";
  lists.append(header_size, '[');
  expect_bounded(lists, "found an object or a list in shape");
}

TEST(Safetensors, accepts_a_header_at_the_limits_with_little_memory) {
  std::string header = "{";
  for (int64_t i = 0; i < kMaxHeaderItems; ++i)  // names of 60 bytes: 7.5 MiB in total
    header += (i ? ",\"" : "\"") + std::string(54, 'x') + std::to_string(100'000 + i) +
              R"(":{"dtype":"U8","shape":[1,1,1,1,1,1,1,0],"data_offsets":[0,0]})";
  const Folder folder;
  put(folder / "a", framed(header + "}"));
  const bool measured = !kSanitized && reset_high_water();
  const int64_t before = process_bytes("VmRSS");
  const Safetensors file = Safetensors::open(folder / "a");
  EXPECT_TRUE(file.contains(std::string(54, 'x') + "123456"));
  if (measured) {
    EXPECT_LT(process_bytes("VmHWM") - before, static_cast<int64_t>(header.size()) + (64 << 20));
  }
}

}  // namespace
}  // namespace heed::test
