// Controllable Memory's tables, from rows of any size.
#include "validate/papers/controllable_memory/controllable_memory.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "sim/core/error.h"
#include "tests/folder.h"
#include "validate/papers/validation.h"

namespace pipesim::controllable_memory_test {
namespace {

std::vector<Cell> compare(const std::string& yaml) {
  const auto folder = testing::test_folder();
  testing::write_file(folder / "controllable_memory.yaml", yaml);
  return compare_controllable_memory(folder.string(), {});
}

const Cell& cell_of(const std::vector<Cell>& cells, const std::string& name) {
  return *std::ranges::find(cells, name, &Cell::cell);
}

TEST(ControllableMemoryRows, ReadFormulasOfDevicesAndOfWhatOneFOneBHolds) {
  const auto cells = compare(
      "table1:\n"
      "- {block: V-ZB, T: 6, l_max: 12d (exact 12d-2), m: M/2d, peak: M}\n"
      "- {block: V-Min, T: 6, l_max: 4d, m: M/2d, peak: M/3}\n");
  EXPECT_EQ(cell_of(cells, "V-ZB d=12 l_max").published, 142);
  EXPECT_EQ(cell_of(cells, "V-ZB d=12 m").published, 1.0 / 24);
  EXPECT_EQ(cell_of(cells, "V-Min d=48 peak").published, 1.0 / 3);
  EXPECT_NEAR(*cell_of(cells, "V-Min d=48 T").simulated, 6, 1e-9);
  // 2 floor((p + 4) / 3) chunks of the 2p that 1F1B holds.
  EXPECT_NEAR(*cell_of(cells, "V-Min d=48 peak").simulated, 34.0 / 96, 1e-12);
  EXPECT_THROW((void)compare("table1:\n- {block: V-Min, T: six}\n"), InputError);
}

TEST(ControllableMemoryRows, FindAPublishedBlockAmongThoseOfTheSearch) {
  const auto row = [](const char* turn) {
    return std::string(
               "table8_vmin_offsets:\n- {cond: d mod 3 > 0, dF0: 1, dF1: 1, dB0: 1, dB1: 1,"
               " d_Fd0_Fd1: 1, d_F01_B01: ") +
           turn + ", d_Bd0_Bd1: 1}\n";
  };
  const auto found = compare(row("1"));
  EXPECT_EQ(*found.back().simulated, found.back().published);
  EXPECT_FALSE(missed(found));
  EXPECT_TRUE(missed(compare(row("2")))) << "a slot later two passes collide, or wait in vain";
  EXPECT_THROW((void)compare("table8_vmin_offsets:\n- {cond: d is odd}\n"), InputError);
}

TEST(ControllableMemoryRows, FitOneCellOfAPanelAndPredictTheOthers) {
  const auto cells = compare(
      "figure7_approximate:\n"
      "- {model: 9.6B, p: 16, m: 32, mb: 1, points: {1F1B: [40, 10], V-Half: [45, 6]}}\n");
  ASSERT_EQ(cells.size(), 8U);  // of each point two MFU, memory, and whether it fits
  EXPECT_EQ(cells[0].table, "Figure 7 MFU, fitted");
  EXPECT_NEAR(*cells[0].simulated, 40, 1e-6);
  EXPECT_GT(*cells[1].simulated, 40);
  EXPECT_EQ(cells[2].table, "Figure 7 MFU, first principles");
  EXPECT_NE(*cells[2].simulated, 40) << "nothing is fitted";
  EXPECT_GT(*cells[3].simulated, *cells[2].simulated);
  EXPECT_LT(*cells[5].simulated, 0.7 * *cells[4].simulated);
  EXPECT_THROW((void)compare("figure7_approximate:\n- {model: 9.6B, p: 16, m: 32, mb: 1, points: "
                             "{1F1C: [40, 10]}}\n"),
               InputError);
}

}  // namespace
}  // namespace pipesim::controllable_memory_test
