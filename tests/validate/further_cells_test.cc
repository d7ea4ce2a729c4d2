// Further cells of the papers: models, sizes and panels beyond those of the project's own data, and
// what is said of cells that cannot be modelled, or not as the others are.
#include <algorithm>
#include <gtest/gtest.h>

#include "tests/folder.h"
#include "validate/papers/validation.h"

namespace pipesim::further_cells_test {
namespace {

std::vector<Cell> compare(const std::string& paper, const std::string& yaml) {
  const auto folder = testing::test_folder();
  testing::write_file(folder / (paper + ".yaml"), yaml);
  return std::ranges::find(validations(), paper, &Validation::name)->compare(folder.string(), {});
}

const Cell& cell_of(const std::vector<Cell>& cells, const std::string& table,
                    const std::string& name) {
  const auto found = std::ranges::find_if(
      cells, [&](const Cell& cell) { return cell.table == table && cell.cell == name; });
  EXPECT_NE(found, cells.end()) << table << ", " << name;
  return *found;
}

bool is_not_modelled(const Cell& cell, const std::string& why) {
  return !cell.simulated && cell.note.starts_with("not modelled: ") &&
         cell.note.find(why) != std::string::npos && !cell.must_agree;
}

TEST(PipeOffloadPanels, OfOtherModelsAreRunAlone) {
  const auto cells = compare("pipeoffload", R"(
fig15:
  m18p1B_16gpu: [{seq: 4096, schedule: GIS-H, mfu_pct: 60, act_mem_gb: 7}]
  m42p9B_32gpu: [{seq: 4096, schedule: 1F1B, mfu_pct: OOM, act_mem_gb: OOM}]
)");
  const Cell& memory = cell_of(cells, "Figure 15, memory", "m18p1B_16gpu GIS-H s=4096");
  EXPECT_GT(*memory.simulated, 1);
  EXPECT_GT(*cell_of(cells, "Figure 15, MFU", memory.cell).simulated, 20);
  EXPECT_TRUE(cell_of(cells, "Figure 15, out of memory", "m42p9B_32gpu 1F1B s=4096").simulated);
}

TEST(PipeOffloadPanels, WhoseLayersDoNotDivideEndNoOther) {
  const auto cells = compare("pipeoffload", R"(
fig15:
  m10p5B_16gpu: [{seq: 4096, schedule: GIS, mfu_pct: 60, act_mem_gb: 7}]
  m10p5B_8gpu: [{seq: 4096, schedule: GIS, mfu_pct: 60, act_mem_gb: 13}]
)");
  EXPECT_TRUE(is_not_modelled(cell_of(cells, "Figure 15, MFU", "m10p5B_16gpu GIS s=4096"),
                              "neither 38 layers nor 40"));
  EXPECT_TRUE(cell_of(cells, "Figure 15, MFU", "GIS s=4096").simulated);
}

TEST(PipeOffloadRows, OfFigure16NeedNoOtherTable) {
  const auto cells = compare("pipeoffload", R"(
fig16_recompute_ablation: {rows_hidden: [4096], cols_seq: [4096], reduced_activation_pct: [[43.4]]}
)");
  EXPECT_NEAR(*cell_of(cells, "Figure 16", "activation saved %, h=4096 s=4096").simulated, 45, 5);
}

TEST(FurtherZeroBubbleRows, WithoutAProfileAreModelledApart) {
  const auto cells = compare("zero_bubble", R"(
table5_bubble_rate_calculated:
- {model: 6.2B, p: 8, m: 24, 1F1B: 0.25, ZB-1p: 0.16}
- {model: 6.2B, p: 7, m: 24, 1F1B: 0.25}
)");
  const Cell& cell = cell_of(cells, "Table 5, times modelled", "6.2B p=8 m=24 1F1B");
  EXPECT_NEAR(*cell.simulated, 7.0 / 31, 0.03);  // (p - 1) / (m + p - 1), and messages
  EXPECT_FALSE(cell.must_agree);
  EXPECT_NE(cell.note.find("table9_profiled_iclr_ZB2p"), std::string::npos);
  EXPECT_NE(cell.note.find("b=3"), std::string::npos);
  EXPECT_TRUE(is_not_modelled(cell_of(cells, "Table 5, times modelled", "6.2B p=7 m=24 1F1B"),
                              "has a row with model 6.2B, p 7, n 24"));
}

TEST(FurtherZeroBubbleRows, SayWhichCellStandsInForTheFitted) {
  const std::string rows = R"(
table4_measured:
- {model: 1.5B, gpus: 8, m: 24, schedule: ZB-1p, samples_per_gpu_s: 12.9, mem_gb: 32}
- {model: 1.5B, gpus: 8, m: 64, schedule: ZB-1p, samples_per_gpu_s: 14.2, mem_gb: 32}
)";
  const std::string name = "1.5B p=8 m=64 b=6 ZB-1p, samples/s/GPU";
  const auto none = compare("zero_bubble", rows);
  const Cell& alone = cell_of(none, "Table 4 throughput, ZB-1p", name);
  EXPECT_EQ(alone.note, "no 1F1B cell to fit a factor to: factor 1");
  EXPECT_FALSE(alone.must_agree);
  const std::string fitted =
      "- {model: 1.5B, gpus: 8, m: 24, schedule: 1F1B, samples_per_gpu_s: 11.8}\n";
  const auto one = compare("zero_bubble", rows + fitted);
  EXPECT_NE(cell_of(one, "Table 4 throughput, ZB-1p", name)
                .note.find("fitted to Table 4 m=24, as Table 4 has no 1F1B cell with m=64"),
            std::string::npos);
}

TEST(ControllableMemoryPanels, WhoseLayersDoNotDivideEndNoOther) {
  const auto cells = compare("controllable_memory", R"(
figure7_approximate:
- {model: 9.6B, p: 24, m: 96, mb: 2, points: {1F1B: [43.5, 23], V-Half: [46.5, 14]}}
- {model: 21B, p: 24, m: 48, mb: 1, points: {1F1B: [43.5, 23], V-Half: OOM}}
)");
  EXPECT_TRUE(
      is_not_modelled(cell_of(cells, "Figure 7 MFU", "9.6B p=24 m=96 b=2 V-Half, MFU %"), ""));
  EXPECT_TRUE(cell_of(cells, "Figure 7 MFU, fitted", "21B p=24 m=48 b=1 1F1B, MFU %").simulated);
  EXPECT_TRUE(cell_of(cells, "Figure 7 out of memory", "21B p=24 m=48 b=1 V-Half").simulated);
}

TEST(ControllableMemoryPanels, SayThatNothingIsFitted) {
  const auto cells = compare("controllable_memory", R"(
figure7: [{model: 9.6B, p: 16, m: 32, mb: 1, points: {V-Half: [46.5, 14]}}]
)");
  EXPECT_EQ(cells[0].note, "no 1F1B point to fit a factor to: factor 1");
  EXPECT_FALSE(cells[0].must_agree);
}

TEST(ControllableMemoryGrid, RunsRowsThatSayModelAndMicroBatch) {
  const auto cells = compare("controllable_memory", R"(
table6_7:
  cells:
  - {schedule: V-Half, model: 9.6B, mb: 1, d: 1, t: 2, p: 8, seq: 1024, batch: 64, mfu_pct: 45}
  - {schedule: V-Half, model: 9.6B, mb: 1, d: 1, t: 2, p: 5, seq: 1024, batch: 64, mfu_pct: 45}
  - {schedule: V-Half, d: 1, t: 2, p: 8, seq: 1024, batch: 64, mfu_pct: 45}
)");
  ASSERT_EQ(cells.size(), 3U);
  EXPECT_GT(*cells[0].simulated, 30);
  EXPECT_LT(*cells[0].simulated, 70);
  EXPECT_TRUE(is_not_modelled(cells[1], ""));
  EXPECT_TRUE(is_not_modelled(cells[2], "model and micro batch of the row are not known"));
}

TEST(VocabularyTables, ListRowsOnOtherNumbersOfGpus) {
  const auto cells = compare("vocabulary_parallelism", R"(
table5_1f1b:
- {gpus: 12, seq: 2048, method: Baseline, mfu_pct: [46, 40, 33, 25]}
- {gpus: 32, seq: 2048, method: Baseline, mfu_pct: [46, 40, OOM, OOM], peak_mem_gb: [30, 40, 60, OOM]}
)");
  EXPECT_TRUE(is_not_modelled(
      cell_of(cells, "Table 5 MFU", "12 GPUs, seq 2048, vocabulary 32k, Baseline, %"),
      "8, 16 and 32 GPUs"));
  EXPECT_TRUE(
      cell_of(cells, "Table 5 MFU", "32 GPUs, seq 2048, vocabulary 64k, Baseline, %").simulated);
  EXPECT_EQ(cell_of(cells, "Table 5 out of memory", "32 GPUs, seq 2048, vocabulary 256k, Baseline")
                .published,
            1);
  EXPECT_EQ(std::ranges::count(cells, "Table 5 MFU", &Cell::table), 5);
}

TEST(VocabularyTables, SayWhichBaselineStandsInForTheFitted) {
  const auto cells = compare("vocabulary_parallelism", R"(
table5_1f1b:
- {gpus: 8, seq: 2048, method: Vocab-1, mfu_pct: [50, 50, 50, 50]}
- {gpus: 8, seq: 4096, method: Baseline, mfu_pct: [47, 41, 35, 26]}
)");
  EXPECT_NE(cells[0].note.find("fitted at seq 4096, as there is no baseline at seq 2048"),
            std::string::npos)
      << cells[0].note;
}

}  // namespace
}  // namespace pipesim::further_cells_test
