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
  return {{{"weight", Tensor::full({7, 5}, static_cast<double>(step), kCpu)},
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

void expect_no_message(const std::string& text) { ADD_FAILURE() << text; }

TEST(Checkpoints, are_read_as_written) {
  const Folder folder;
  Checkpoints checkpoints(folder / "checkpoints");
  EXPECT_FALSE(checkpoints.newest(expect_no_message).has_value());
  checkpoints.write(120, sample(120));
  EXPECT_TRUE(fs::exists(folder / "checkpoints/step-0000120.safetensors"));
  expect_sample(checkpoints.newest(expect_no_message), 120);
  expect_error([&] { Checkpoints(folder.path(), 0); }, "found 0 to keep, expected 1 or more");
  expect_error([&] { checkpoints.write(-1, {}); }, "found step -1");
  checkpoints.write(121, {});
  EXPECT_TRUE(checkpoints.newest(expect_no_message)->tensors.empty());
  expect_error([&] { checkpoints.write(122, {{}, {{"text", "\xff"}}}); }, "not UTF-8");
}

TEST(Checkpoints, the_newest_are_kept) {
  const Folder folder;
  Checkpoints checkpoints(folder.path(), 2);
  for (int64_t step : {8, 9, 10, 12'345'678}) checkpoints.write(step, sample(step));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"step-0000010.safetensors", "step-12345678.safetensors"}));
  expect_sample(checkpoints.newest(expect_no_message), 12'345'678);
  // The run was rewound: checkpoints of later steps are deleted.
  checkpoints.write(11, sample(11));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"step-0000010.safetensors", "step-0000011.safetensors"}));
  put(folder / ".heed-1-0.tmp", "left by a process that was killed");
  put(folder / "notes.txt", "left by a person");
  checkpoints.write(12, sample(12));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"notes.txt", "step-0000011.safetensors", "step-0000012.safetensors"}));
}

// Replaces the newest checkpoint by these bytes, which must be skipped with a message that names it.
void expect_skipped(const Folder& folder, const std::string& bytes, const std::string& what) {
  put(folder / "step-0000002.safetensors", bytes);
  std::vector<std::string> messages;
  const auto found = Checkpoints(folder.path()).newest([&](const std::string& text) { messages.push_back(text); });
  ASSERT_EQ(messages.size(), 1u) << what;
  EXPECT_NE(messages[0].find("step-0000002.safetensors: "), std::string::npos) << messages[0];
  EXPECT_NE(messages[0].find("using the previous checkpoint instead"), std::string::npos) << messages[0];
  expect_sample(found, 1);
}

TEST(Checkpoints, every_flipped_bit_is_detected) {
  const Folder folder;
  for (int64_t step : {1, 2}) Checkpoints(folder.path()).write(step, sample(step));
  const std::string good = get(folder / "step-0000002.safetensors");
  uint64_t header = 0;
  std::memcpy(&header, good.data(), sizeof header);
  // All bits of the first bytes, then random ones in the header and in the data.
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
    expect_skipped(folder, bad, "bit " + std::to_string(place));
    if (HasFailure()) break;
  }
}

TEST(Checkpoints, every_wrong_length_is_detected) {
  const Folder folder;
  for (int64_t step : {1, 2}) Checkpoints(folder.path()).write(step, sample(step));
  const std::string good = get(folder / "step-0000002.safetensors");
  for (size_t length = 0; length < good.size() && !HasFailure(); length += length < 32 ? 1 : 13)
    expect_skipped(folder, good.substr(0, length), "length " + std::to_string(length));
  expect_skipped(folder, good.substr(0, good.size() - 1), "one byte less");
  expect_skipped(folder, good + '\0', "one byte more");
  std::string zeros = good;  // as after a power failure when only the new length reached the disk
  std::fill(zeros.end() - 64, zeros.end(), '\0');
  expect_skipped(folder, zeros, "zeros at the end");
}

TEST(Checkpoints, reports_files_that_are_no_checkpoints) {
  const Folder folder;
  write_safetensors(folder / "step-0000003.safetensors", sample(3).tensors);
  fs::create_directory(folder / "step-0000004.safetensors");
  put(folder / "step-.safetensors", "");
  put(folder / "step-5x.safetensors", "");
  std::vector<std::string> messages;
  EXPECT_FALSE(Checkpoints(folder.path()).newest([&](const std::string& text) { messages.push_back(text); }).has_value());
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_NE(messages[0].find("found a folder, expected a file"), std::string::npos) << messages[0];
  EXPECT_NE(messages[1].find("found no heed.state, expected a checkpoint that heed wrote"), std::string::npos) << messages[1];
}

TEST(Checkpoints, a_full_disk_leaves_the_previous_one) {
  const Folder folder;
  Checkpoints checkpoints(folder.path(), 1);
  checkpoints.write(1, sample(1));
  // A limit on the file size makes writes fail as a full disk does.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{2000, before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  expect_refused(
      [&] {
        checkpoints.write(2, {{{"large", Tensor::zeros({1000}, kCpu)}}, {}});
      },
      "step-0000002.safetensors: writing failed after 2000 bytes");
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"step-0000001.safetensors"});
  expect_sample(checkpoints.newest(expect_no_message), 1);
}

}  // namespace
}  // namespace heed::test
