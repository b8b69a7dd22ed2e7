// Sharded checkpoints with an index.
#include "heed/io/json.h"
#include "heed/io/safetensors.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;

NamedTensors five_tensors() {
  NamedTensors out;
  for (int64_t i = 0; i < 5; ++i) out.emplace_back("layer." + std::to_string(i), counted({i + 1, 4}, i % 2 ? DType::bf16 : DType::f32));
  return out;
}

TEST(Sharded, round_trips) {
  const Folder folder;
  const NamedTensors tensors = five_tensors();  // of 16, 16, 48, 32 and 80 bytes
  write_sharded(folder / "new/model", tensors, 64, {{"format", "pt"}});
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "new/model"), {}), 5);
  const Json index = read_json(folder / "new/model/model.safetensors.index.json");
  EXPECT_EQ(index["metadata"]["total_size"], 192);
  EXPECT_EQ(index["weight_map"]["layer.1"], "model-00001-of-00004.safetensors");
  EXPECT_EQ(index["weight_map"]["layer.4"], "model-00004-of-00004.safetensors");
  for (const char* way : {"new/model", "new/model/model.safetensors.index.json"}) {
    const Safetensors file = Safetensors::open(folder / way);
    ASSERT_EQ(file.names().size(), 5u);
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(file.names()[i], tensors[i].first);
      expect_same(file.tensor(tensors[i].first), tensors[i].second);
    }
    EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}}));
  }
}

TEST(Sharded, refuses_a_name_in_two_shards) {
  const Folder folder;
  const Tensor x = counted({4}, DType::f32);
  expect_refused([&] { write_sharded(folder.path(), {{"x", x}, {"x", x}}, 16); }, "found tensor \"x\" a second time");
  EXPECT_TRUE(folder.names().empty());
  EXPECT_THROW(write_sharded(folder.path(), {}, 0), Error);
  put(folder / "file", "");
  expect_refused([&] { write_sharded(folder / "file", {{"x", x}}, 16); }, "file: the folder cannot be created");
}

TEST(Sharded, writes_an_empty_model) {
  const Folder folder;
  write_sharded(folder.path(), {}, 10);
  EXPECT_TRUE(Safetensors::open(folder.path()).names().empty());
}

TEST(Sharded, finds_the_checkpoint_in_a_folder) {
  const Folder folder;
  const NamedTensors x = {{"x", counted({4}, DType::f32)}};
  expect_refused([&] { Safetensors::open(folder.path()); }, "found no safetensors file, expected model.safetensors or");
  write_safetensors(folder / "adapter.safetensors", x);
  EXPECT_TRUE(Safetensors::open(folder.path()).contains("x"));
  write_safetensors(folder / "other.safetensors", x);
  expect_refused([&] { Safetensors::open(folder.path()); }, "found 2 files that end in .safetensors");
  write_safetensors(folder / "model.safetensors", {{"y", x[0].second}});
  EXPECT_TRUE(Safetensors::open(folder.path()).contains("y"));
  write_sharded(folder.path(), x, 100);
  expect_refused([&] { Safetensors::open(folder.path()); }, "found both model.safetensors and model.safetensors.index.json");
  expect_refused([&] { Safetensors::open(folder / "none"); }, "there is no such file");
}

TEST(Sharded, contains_only_indexed_tensors) {
  const Folder folder;
  const Tensor x = counted({4}, DType::f32), y = counted({2}, DType::i64);
  write_safetensors(folder / "1.safetensors", {{"x", x}, {"old", x}});
  write_safetensors(folder / "2.safetensors", {{"x", y}, {"y", y}});
  put(folder / "a.index.json", R"({"weight_map": {"x": "1.safetensors", "y": "2.safetensors"}})");
  const Safetensors file = Safetensors::open(folder.path());
  EXPECT_EQ(file.names(), (std::vector<std::string>{"x", "y"}));
  expect_same(file.tensor("x"), x);
}

TEST(Sharded, ignores_other_keys_of_an_index) {
  const std::string text =
      R"({"other": {"weight_map": {"a": 1}}, "weight_map": {"x": "f"}, "list": [{"x": "g"}], "metadata": {"total_size": 4}})";
  EXPECT_EQ(parse_safetensors_index("text", text), (std::map<std::string, std::string>{{"x", "f"}}));
}

TEST(Sharded, hostile_indexes_use_little_memory) {
  std::string tiny = R"({"weight_map": {)", wide = tiny;
  for (int i = 0; tiny.size() < size_t{60} << 20; ++i) tiny += "\"" + std::to_string(i) + "\":\"f\",";
  for (int i = 0; wide.size() < size_t{60} << 20; ++i) wide += "\"" + std::to_string(i) + "\":\"" + std::string(100'000, 'f') + "\",";
  const bool measured = !kSanitized && reset_high_water();
  const int64_t before = process_bytes("VmRSS");
  expect_refused([&] { parse_safetensors_index("text", tiny); }, "found more than 131072 tensors");
  expect_refused([&] { parse_safetensors_index("text", wide); }, "found more than 16777216 bytes of names");
  if (measured) {
    EXPECT_LT(process_bytes("VmHWM") - before, 64 << 20);
  }
}

TEST(Sharded, refuses_invalid_indexes) {
  const Folder folder;
  write_safetensors(folder / "a.safetensors", {{"x", counted({1}, DType::f32)}});
  fs::create_directory(folder / "inner");
  write_safetensors(folder / "inner/a.safetensors", {{"x", counted({1}, DType::f32)}});
  fs::create_symlink("../a.safetensors", folder / "inner/link.safetensors");
  fs::create_symlink("a.safetensors", folder / "inner/fine.safetensors");
  fs::create_symlink("..", folder / "inner/up");
  put(folder / "inner/short.safetensors", "1234");
  const std::string absolute = (folder / "a.safetensors").string();
  const auto index = [](const std::string& file) { return R"({"weight_map": {"x": ")" + file + "\"}}"; };
  const struct {
    const char* name;
    std::string text, fragment;
  } bad[] = {
      {"empty", "", "expected JSON"},
      {"a list", "[]", "found no object weight_map"},
      {"no weight_map", R"({"metadata": {}})", "found no object weight_map"},
      {"weight_map is a list", R"({"weight_map": []})", "found no object weight_map"},
      {"file is a number", R"({"weight_map": {"x": 1}})", "found a number for tensor \"x\", expected a file name"},
      {"name twice", R"({"weight_map": {"x": "a.safetensors", "x": "b.safetensors"}})", "found tensor \"x\" a second time"},
      {"weight_map twice", R"({"weight_map": {}, "weight_map": {}})", "found weight_map a second time"},
      {"file is a list", R"({"weight_map": {"x": []}})", "found an object or a list for tensor \"x\""},
      {"a string", "\"weight_map\"", "found no object weight_map"},
      {"no file name", index(""), "expected one in the folder of the index"},
      {"a folder", index("up/"), "expected one in the folder of the index"},
      {"absolute path", index(absolute), "expected one in the folder of the index"},
      {"path upwards", index("../a.safetensors"), "found file \"../a.safetensors\" for tensor \"x\""},
      {"path upwards in the middle", index("up/../../a.safetensors"), "expected one in the folder of the index"},
      {"path with a zero byte", index("a.safetensors\\u0000b"), "expected one in the folder of the index"},
      {"link upwards", index("link.safetensors"), "is a link out of the folder"},
      {"folder link upwards", index("up/a.safetensors"), "is a link out of the folder"},
      {"missing shard", index("none.safetensors"), "the file \"none.safetensors\" it names cannot be found"},
      {"the folder itself", index("."), "found a folder, expected a file"},
      {"damaged shard", index("short.safetensors"), "short.safetensors: found 4 bytes, expected a safetensors file"},
      {"shard without the tensor", R"({"weight_map": {"y": "a.safetensors"}})", "tensor \"y\" should be in \"a.safetensors\""},
  };
  for (const auto& c : bad) {
    SCOPED_TRACE(c.name);
    put(folder / "inner/model.safetensors.index.json", c.text);
    expect_refused([&] { Safetensors::open(folder / "inner"); }, c.fragment);
  }
  for (const char* fine : {"a.safetensors", "./a.safetensors", "fine.safetensors"}) {
    put(folder / "inner/model.safetensors.index.json", index(fine));
    EXPECT_TRUE(Safetensors::open(folder / "inner").contains("x")) << fine;
  }
}

}  // namespace
}  // namespace heed::test
