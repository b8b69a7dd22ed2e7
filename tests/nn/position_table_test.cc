// Position tables compute rows on first use.
#include "heed/nn/position_table.h"

#include <gtest/gtest.h>

#include "heed/core/dry_run.h"
#include "tests/expect_error.h"
#include "tests/test_device.h"

namespace heed::test {
namespace {

PositionTable counting(int64_t positions, int64_t* rows) {
  return {positions, 2, [rows]() -> PositionTable::Fill {
            *rows = 0;
            return [rows](int64_t position, std::span<float> row) {
              ++*rows;
              row[0] = static_cast<float>(position);
              row[1] = -row[0];
            };
          }};
}

TEST(PositionTable, computes_requested_rows) {
  int64_t rows = -1;
  const PositionTable table = counting(int64_t{1} << 40, &rows);
  EXPECT_EQ(rows, -1);
  EXPECT_EQ(table.rows(3, kCpu).to_vector<float>(), (std::vector<float>{0, 0, 1, -1, 2, -2}));
  EXPECT_LE(rows, 256);
  const int64_t before = rows;
  const PositionTable copy = table;
  EXPECT_EQ(copy.rows(5, kCpu).shape(), (Shape{5, 2}));
  EXPECT_EQ(rows, before);  // copies share computed rows
  const Tensor positions = Tensor::from(std::vector<int64_t>{700, 2}, {1, 2}, test_device());
  EXPECT_EQ(table.at(positions, kCpu).to_vector<float>(), (std::vector<float>{700, -700, 2, -2}));
}

TEST(PositionTable, checks_its_range) {
  int64_t rows = 0;
  const PositionTable table = counting(4, &rows);
  EXPECT_EQ(table.rows(4, kCpu).size(0), 4);
  expect_error([&] { table.rows(5, kCpu); }, "positions: 5 tokens, expected at most 4");
  expect_error(
      [&] {
        table.at(Tensor::from(std::vector<int64_t>{4}, {1, 1}, test_device()), kCpu);
      },
      "positions: a token at position 4, expected less than 4");
}

TEST(PositionTable, computes_no_rows_in_a_dry_run) {
  int64_t rows = -1;
  const PositionTable table = counting(int64_t{1} << 30, &rows);
  {
    const DryRun dry;
    EXPECT_EQ(table.rows(int64_t{1} << 30, kCpu).shape(), (Shape{int64_t{1} << 30, 2}));
  }
  EXPECT_EQ(rows, -1);
  EXPECT_EQ(table.rows(2, kCpu).to_vector<float>(), (std::vector<float>{0, 0, 1, -1}));
}

}  // namespace
}  // namespace heed::test
