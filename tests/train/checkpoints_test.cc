#include <signal.h>
#include <sys/resource.h>

#include "heed/core/random.h"
#include "heed/train/run_folder.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;

Checkpoint sample(int64_t step) {
  return {{{"weight", Tensor::full({7, 5}, static_cast<double>(step))},
           {"weight.first_moment", counted({3, 1, 4}, DType::f32)},
           {"half", counted({9}, DType::bf16)},
           {"order", counted({5}, DType::i64)},
           {"mask", counted({11}, DType::boolean)},
           {"none", counted({0, 3}, DType::f32)},
           {"one", counted({}, DType::f32)}},
          {{"step", step}, {"seed", ~uint64_t{0}}, {"best", 0.1}, {"text", "\"quotes\"\n\u00e4"}, {"files", {{"metrics.csv", 12}}}}};
}

void expect_sample(const std::optional<Checkpoint>& found, int64_t step) {
  ASSERT_TRUE(found.has_value());
  const Checkpoint expected = sample(step);
  EXPECT_EQ(found->state, expected.state);
  ASSERT_EQ(found->tensors.size(), expected.tensors.size());
  for (size_t i = 0; i < expected.tensors.size(); ++i) {
    EXPECT_EQ(found->tensors[i].first, expected.tensors[i].first);
    expect_same(found->tensors[i].second, expected.tensors[i].second);
  }
}

void say_nothing(const std::string& text) { ADD_FAILURE() << text; }

TEST(Checkpoints, come_back_as_they_were_written) {
  const Folder folder;
  Checkpoints checkpoints(folder / "checkpoints");
  EXPECT_FALSE(checkpoints.newest(say_nothing).has_value());
  checkpoints.write(120, sample(120));
  EXPECT_TRUE(fs::exists(folder / "checkpoints/step-0000120.safetensors"));
  expect_sample(checkpoints.newest(say_nothing), 120);
  expect_error([&] { Checkpoints(folder.path(), 0); }, "found 0 to keep, expected 1 or more");
  expect_error([&] { checkpoints.write(-1, {}); }, "found step -1");
  checkpoints.write(121, {});
  EXPECT_TRUE(checkpoints.newest(say_nothing)->tensors.empty());
  expect_error([&] { checkpoints.write(122, {{}, {{"text", "\xff"}}}); }, "not UTF-8");
}

TEST(Checkpoints, the_newest_stay) {
  const Folder folder;
  Checkpoints checkpoints(folder.path(), 2);
  for (int64_t step : {8, 9, 10, 12'345'678}) checkpoints.write(step, sample(step));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"step-0000010.safetensors", "step-12345678.safetensors"}));
  expect_sample(checkpoints.newest(say_nothing), 12'345'678);
  // The run was taken back: what lay ahead of it counts no more.
  checkpoints.write(11, sample(11));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"step-0000010.safetensors", "step-0000011.safetensors"}));
  put(folder / ".heed-1-0.tmp", "left by a process that was killed");
  put(folder / "notes.txt", "left by a person");
  checkpoints.write(12, sample(12));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"notes.txt", "step-0000011.safetensors", "step-0000012.safetensors"}));
}

// The newest is replaced by these bytes: it must be passed over with a sentence that names it.
void expect_passed_over(const Folder& folder, const std::string& bytes, const std::string& what) {
  put(folder / "step-0000002.safetensors", bytes);
  std::vector<std::string> said;
  const auto found = Checkpoints(folder.path()).newest([&](const std::string& text) { said.push_back(text); });
  ASSERT_EQ(said.size(), 1u) << what;
  EXPECT_NE(said[0].find("step-0000002.safetensors: "), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("passed over for the one before"), std::string::npos) << said[0];
  expect_sample(found, 1);
}

TEST(Checkpoints, every_flipped_bit_is_seen) {
  const Folder folder;
  for (int64_t step : {1, 2}) Checkpoints(folder.path()).write(step, sample(step));
  const std::string good = get(folder / "step-0000002.safetensors");
  uint64_t header = 0;
  std::memcpy(&header, good.data(), sizeof header);
  // All of the first bytes; then at random, in the header and in the data alike.
  std::vector<uint64_t> places;
  for (uint64_t bit = 0; bit < 80; ++bit) places.push_back(bit);
  for (uint64_t i = 0; i < 400; ++i) {
    const auto random = philox({1, 2}, i);
    const uint64_t begin = i % 2 ? 8 : 8 + header, end = i % 2 ? 8 + header : good.size();
    places.push_back(begin * 8 + random[0] % ((end - begin) * 8));
  }
  for (uint64_t place : places) {
    std::string bad = good;
    bad[place / 8] = static_cast<char>(bad[place / 8] ^ 1 << place % 8);
    expect_passed_over(folder, bad, "bit " + std::to_string(place));
    if (HasFailure()) break;
  }
}

TEST(Checkpoints, every_wrong_length_is_seen) {
  const Folder folder;
  for (int64_t step : {1, 2}) Checkpoints(folder.path()).write(step, sample(step));
  const std::string good = get(folder / "step-0000002.safetensors");
  for (size_t length = 0; length < good.size() && !HasFailure(); length += length < 32 ? 1 : 13)
    expect_passed_over(folder, good.substr(0, length), "length " + std::to_string(length));
  expect_passed_over(folder, good.substr(0, good.size() - 1), "one byte less");
  expect_passed_over(folder, good + '\0', "one byte more");
  std::string zeros = good;  // as a power cut leaves a file whose length alone reached the disk
  std::fill(zeros.end() - 64, zeros.end(), '\0');
  expect_passed_over(folder, zeros, "zeros at the end");
}

TEST(Checkpoints, says_why_a_file_is_none) {
  const Folder folder;
  write_safetensors(folder / "step-0000003.safetensors", sample(3).tensors);
  fs::create_directory(folder / "step-0000004.safetensors");
  put(folder / "step-.safetensors", "");
  put(folder / "step-5x.safetensors", "");
  std::vector<std::string> said;
  EXPECT_FALSE(Checkpoints(folder.path()).newest([&](const std::string& text) { said.push_back(text); }).has_value());
  ASSERT_EQ(said.size(), 2u);
  EXPECT_NE(said[0].find("found a folder, expected a file"), std::string::npos) << said[0];
  EXPECT_NE(said[1].find("found no heed.state, expected a checkpoint that heed wrote"), std::string::npos) << said[1];
}

TEST(Checkpoints, a_full_disk_leaves_the_one_before) {
  const Folder folder;
  Checkpoints checkpoints(folder.path(), 1);
  checkpoints.write(1, sample(1));
  // A limit on the size of files stands in for the disk.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{2000, before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  expect_refused(
      [&] {
        checkpoints.write(2, {{{"large", Tensor::zeros({1000})}}, {}});
      },
      "step-0000002.safetensors: writing failed after 2000 bytes");
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"step-0000001.safetensors"});
  expect_sample(checkpoints.newest(say_nothing), 1);
}

}  // namespace
}  // namespace heed::test
