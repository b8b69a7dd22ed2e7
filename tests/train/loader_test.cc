#include "heed/train/loader.h"

#include <atomic>
#include <chrono>

#include "heed/train/batch_order.h"
#include "tests/expect_error.h"

namespace heed {
namespace {

Batch numbered(const std::vector<int64_t>& samples) { return {.samples = std::ssize(samples), .extra = {static_cast<double>(samples[0])}}; }

TEST(Loader, batches_come_in_order_for_any_number_of_threads) {
  for (const int64_t threads : {0, 1, 2, 7}) {
    // Building takes different times.
    const auto make = [](const std::vector<int64_t>& samples) {
      std::this_thread::sleep_for(std::chrono::microseconds(samples[0] * 7919 % 500));
      return numbered(samples);
    };
    Loader loader(batches_in_order(101, 2), 3, make, threads, 4);
    for (int64_t i = 3; i < 51; ++i) {
      const Batch batch = loader.next();
      EXPECT_EQ(batch.extra.at(0), static_cast<double>(2 * i));
      EXPECT_EQ(batch.samples, i < 50 ? 2 : 1);
    }
    expect_error([&] { loader.next(); }, "loader: all 51 batches are taken");
  }
}

TEST(Loader, few_batches_are_buffered) {
  std::atomic<int> built = 0;
  const auto make = [&](const std::vector<int64_t>& samples) {
    ++built;
    return numbered(samples);
  };
  Loader loader(batches_in_order(100, 1), 0, make, 3, 2);
  for (int i = 1; i <= 50; ++i) {
    loader.next();
    EXPECT_LE(built, i + 2);
  }
}

TEST(Loader, errors_are_rethrown_by_next) {
  for (const int64_t threads : {0, 1, 3}) {
    const auto make = [](const std::vector<int64_t>& samples) {
      check<FileError>(samples[0] != 2, "image ", samples[0], ": damaged");
      return numbered(samples);
    };
    Loader loader(batches_in_order(5, 1), 0, make, threads);
    EXPECT_EQ(loader.next().extra.at(0), 0);
    EXPECT_EQ(loader.next().extra.at(0), 1);
    expect_error<FileError>([&] { loader.next(); }, "image 2: damaged");
    EXPECT_EQ(loader.next().extra.at(0), 3);
  }
}

TEST(Loader, may_be_destroyed_before_all_is_taken) {
  for (int i = 0; i < 20; ++i) {
    Loader loader(batches_in_order(1000, 1), 0, numbered, 3, 1 + static_cast<size_t>(i % 3));
    if (i % 2 == 0) loader.next();
  }
  Loader nothing_left(batches_in_order(3, 1), 3, numbered, 2);
  expect_error([&] { nothing_left.next(); }, "all 3 batches are taken");
  expect_error([] { Loader(batches_in_order(3, 1), 0, numbered, -1); }, "loader: -1 threads, 8 batches ahead, expected at least 0 and 1");
}

}  // namespace
}  // namespace heed
