#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "sim/core/error.h"
#include "validate/papers/vocabulary_parallelism/vocabulary_parallelism.h"

namespace pipesim {
namespace {

std::vector<Cell> compare(const std::string& yaml) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "vocabulary_rows";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "vocabulary_parallelism.yaml") << yaml;
  return compare_vocabulary_parallelism(folder.string(), {});
}

// 1F1B of 4 microbatches on 2 equal stages of 10 + 20 ms is 150 ms; messages and the step of two
// billion parameters come on top.
TEST(VocabularyRows, TakeMeasuredStagesAndAddMessagesAndTheStep) {
  const auto cells = compare(R"(
exp_one_host_csv:
- {method_csv: base, gpus: 2, micro_batch: 1, num_microbatches: 4, seq: 2048, hidden: 3072, vocab: 64000,
   layers: 32, layers_last_stage: 16, iter_ms: 200, F_us_per_stage: [10000, 10000],
   B_us_per_stage: [20000, 20000]}
- {method_csv: new, gpus: 2, num_microbatches: 4, micro_batch: 1, seq: 2048, vocab: 64000, iter_ms: 200}
)");
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_GT(*cells[0].simulated, 150 + 50);
  EXPECT_LT(*cells[0].simulated, 150 + 80);
  EXPECT_TRUE(cells[0].must_agree);
  EXPECT_FALSE(cells[1].simulated);
}

// The same stages and, on each, 4 x (3 + 1 + 1) ms of vocabulary passes; the step is as long.
TEST(VocabularyRows, TakeMeasuredSharesOfTheVocabulary) {
  std::string rows = "exp_one_host_csv:\n";
  for (const char* method : {"vocab", "synctwice", "interlaced"}) {
    rows += std::string("- {method_csv: ") + method +
            ", gpus: 2, micro_batch: 1, num_microbatches: 4, seq: 2048, hidden: 3072, vocab: 64000,"
            " layers: 32, layers_last_stage: 16, iter_ms: 230, F_us_per_stage: [10000, 10000],"
            " B_us_per_stage: [20000, 20000], vocab_out_us_per_stage: [3000, 3000],"
            " col28_us_per_stage: [1000, 1000], col29_us_per_stage: [1000, 1000]}\n";
  }
  const auto cells = compare(rows);
  ASSERT_EQ(cells.size(), 3U);
  for (const Cell& cell : cells) {
    EXPECT_GT(*cell.simulated, 150 + 20 + 50) << cell.cell;
    EXPECT_LT(*cell.simulated, 150 + 20 + 90) << cell.cell;
    EXPECT_TRUE(cell.must_agree);
  }
  EXPECT_THROW((void)compare(rows.replace(rows.find("vocab_out_us"), 5, "votes")), InputError);
}

TEST(VocabularyRows, RefuseAStageTooFew) {
  EXPECT_THROW((void)compare(R"(
exp_one_host_csv:
- {method_csv: redis, gpus: 2, micro_batch: 1, num_microbatches: 4, seq: 2048, hidden: 3072, vocab: 64000,
   layers: 32, layers_last_stage: 16, iter_ms: 200, F_us_per_stage: [10000], B_us_per_stage: [20000, 20000]}
)"),
               InputError);
}

TEST(VocabularyRows, DivideTheOutputBetterThanTheInput) {
  const auto cells = compare(R"(
table3_vocab_layer_scaling_factor_pct_vocab256k:
  columns: [8GPU, 64GPU]
  rows:
  - {seq: 2048, layer: Output-Vocab-1, v: [90, 50]}
  - {seq: 2048, layer: Input, v: [40, 10]}
)");
  ASSERT_EQ(cells.size(), 4U);
  EXPECT_NEAR(*cells[0].simulated, 100, 10);  // a matmul, which divides nearly linearly
  EXPECT_GT(*cells[0].simulated, *cells[2].simulated);
  EXPECT_FALSE(cells[1].simulated);
}

}  // namespace
}  // namespace pipesim
