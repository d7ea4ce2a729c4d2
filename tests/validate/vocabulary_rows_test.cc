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
- {method_csv: interlaced, gpus: 2, num_microbatches: 4, micro_batch: 1, seq: 2048, vocab: 64000, iter_ms: 200}
)");
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_GT(*cells[0].simulated, 150 + 50);
  EXPECT_LT(*cells[0].simulated, 150 + 80);
  EXPECT_TRUE(cells[0].must_agree);
  EXPECT_FALSE(cells[1].simulated);
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
