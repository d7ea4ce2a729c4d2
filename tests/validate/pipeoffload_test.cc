// PipeOffload's figures, from rows of any size.
#include "validate/papers/pipeoffload/pipeoffload.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "sim/core/error.h"
#include "tests/folder.h"

namespace pipesim::pipeoffload_test {
namespace {

std::vector<Cell> compare(const std::string& yaml) {
  const auto folder = testing::test_folder();
  testing::write_file(folder / "pipeoffload.yaml", yaml);
  return compare_pipeoffload(folder.string(), {});
}

const Cell& cell_of(const std::vector<Cell>& cells, const std::string& name) {
  return *std::ranges::find(cells, name, &Cell::cell);
}

TEST(PipeOffloadRows, HaveTheRatioOfCopiesToComputeByHand) {
  const auto cells = compare("fig1_k_grid: {rows_hidden: [8192], cols_seq: [2048], k: [[1.0]]}\n");
  const double h = 8192;
  const double s = 2048;
  // 16 + 4 x 8/64 elements of two bytes less one, the way there and back; F, B and W of 8 groups of
  // keys and values, all scores; and a number per token and head that flash attention keeps.
  const double bytes = 2 * (s * h * (16 + 4 * 8 / 64.0) + 4 * s * 64);
  const double flops = 3 * 2 * (s * h * h * (8 + 2 + 2 * 8 / 64.0) + 2 * s * s * h);
  EXPECT_NEAR(*cell_of(cells, "k, h=8192 s=2048").simulated, bytes / 15e9 / (flops / 220e12), 1e-9);
}

TEST(PipeOffloadRows, RunTheSchedulesThatTheyName) {
  const auto cells = compare(R"(
fig1_k_grid: {rows_hidden: [8192], cols_seq: [2048], k: [[1.0]]}
fig15: {m10p5B_8gpu: [{seq: 2048, schedule: PO-H, mfu_pct: 50, act_mem_gb: 2},
                      {seq: 2048, schedule: GIS-H, mfu_pct: 50, act_mem_gb: 4},
                      {seq: 65536, schedule: GIS, mfu_pct: OOM, act_mem_gb: OOM},
                      {seq: 2048, schedule: PO-F, mfu_pct: SKIP, act_mem_gb: SKIP}]}
)");
  const auto memory = [&cells](const std::string& name) { return *cell_of(cells, name).simulated; };
  EXPECT_LT(memory("PO-H s=2048"), memory("GIS-H s=2048"));
  EXPECT_EQ(memory("GIS s=65536"), 1) << "out of memory";
  const Cell& skipped = cell_of(cells, "PO-F s=2048");
  EXPECT_EQ(skipped.table, "Figure 15, skipped");
  EXPECT_EQ(*skipped.simulated, 1) << "copies take longer than passes: no plan";
}

TEST(PipeOffloadRows, AreRefusedWhereTheirShapeIsWrong) {
  EXPECT_THROW(
      (void)compare("fig1_k_grid: {rows_hidden: [8192], cols_seq: [2048, 4096], k: [[1.0]]}\n"),
      InputError);
}

}  // namespace
}  // namespace pipesim::pipeoffload_test
