#include <gtest/gtest.h>

#include "sim/core/error.h"
#include "tests/folder.h"
#include "validate/papers/vocabulary_parallelism/vocabulary_parallelism.h"

namespace pipesim::vocabulary_rows_test {
namespace {

std::vector<Cell> compare(const std::string& yaml) {
  const auto folder = testing::test_folder();
  testing::write_file(folder / "vocabulary_parallelism.yaml", yaml);
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
- {method_csv: base, gpus: 2, micro_batch: 1, num_microbatches: 4, seq: 2048, hidden: 1024, vocab: 64000,
   layers: 8, layers_last_stage: 4, iter_ms: 200, F_us_per_stage: [10000, 10000],
   B_us_per_stage: [20000, 20000]}
)");
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_GT(*cells[0].simulated, 150 + 50);
  EXPECT_LT(*cells[0].simulated, 150 + 80);
  EXPECT_TRUE(cells[0].must_agree);
  EXPECT_FALSE(cells[1].simulated);
  EXPECT_EQ(cells[1].note,
            "not modelled: no 1F1B model of the paper has 8 layers of hidden size 1024");
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

// One factor is fitted for a model; a divided vocabulary then saves the last stage's extra work.
TEST(VocabularyRows, FitTheBaselineOfAModelAndPredictTheOtherMethods) {
  const std::string rows = R"(
table5_1f1b:
- {gpus: 8, seq: 2048, method: Baseline, mfu_pct: [46, 40, 33, 25]}
- {gpus: 8, seq: 2048, method: Redis, mfu_pct: [46, 46, 44, 39]}
- {gpus: 8, seq: 2048, method: Vocab-1, mfu_pct: [50, 50, 50, 50]}
)";
  const auto cells = compare(rows);
  ASSERT_EQ(cells.size(), 40U);  // 12 MFU and 4 gains in two units; the same from first principles
  EXPECT_EQ(cells[0].table, "Table 5 MFU, fitted");
  EXPECT_NEAR(*cells[0].simulated, 46, 1e-6);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_GE(*cells[4 + i].simulated, *cells[i].simulated - 1e-9) << cells[4 + i].cell;
    EXPECT_GT(*cells[8 + i].simulated, *cells[4 + i].simulated) << cells[8 + i].cell;
    const Cell& gain = cells[12 + 2 * i];
    EXPECT_NEAR(*gain.simulated, *cells[8 + i].simulated - *cells[i].simulated, 1e-9);
    EXPECT_EQ(gain.table, "Table 5 gain of Vocab-1");
    const Cell& points = cells[13 + 2 * i];
    EXPECT_EQ(points.table, "Table 5 points gained by Vocab-1");
    EXPECT_EQ(points.simulated, gain.simulated);
    EXPECT_FALSE(points.relative);
  }
  EXPECT_EQ(cells[20].table, "Table 5 MFU, first principles");
  EXPECT_NE(*cells[20].simulated, 46) << "nothing is fitted";
}

// The longer the runs on one host found the output layer against the others, the more it costs
// where the vocabulary is larger than that of the fitted cell.
TEST(VocabularyRows, TakeTheOutputsShareFromMeasuredPasses) {
  const auto with_output = [](int microseconds) {
    std::string stages = "10000";
    for (int stage = 0; stage < 6; ++stage) stages += ", 10000";
    return "table5_1f1b:\n- {gpus: 8, seq: 2048, method: Baseline, mfu_pct: [46, 40, 33, 25]}\n"
           "exp_one_host_csv:\n- {method_csv: base, gpus: 8, micro_batch: 1, num_microbatches: 128,"
           " seq: 2048, hidden: 3072, vocab: 128000, layers: 32, layers_last_stage: 4, iter_ms: "
           "8000,"
           " F_us_per_stage: [" +
           stages + ", " + std::to_string(10000 + microseconds) + "], B_us_per_stage: [" + stages +
           ", " + std::to_string(10000 + microseconds) + "]}\n";
  };
  const auto little = compare(with_output(5000));
  const auto more = compare(with_output(10000));
  EXPECT_NEAR(*little[0].simulated, *more[0].simulated, 1e-6) << "fitted";
  EXPECT_GT(*little[3].simulated, *more[3].simulated) << "a vocabulary eight times as large";
}

// Measured at two vocabularies, an output whose seconds do not grow with the vocabulary costs
// little where the vocabulary is larger than both.
TEST(VocabularyRows, TellWhatTheOutputTakesAWordFromWhatItTakesAToken) {
  const auto with_outputs = [](int small, int large) {
    std::string rows =
        "table5_1f1b:\n- {gpus: 8, seq: 2048, method: Baseline, mfu_pct: [46, 40, 33, 25]}\n"
        "exp_one_host_csv:\n";
    for (const auto& [words, microseconds] : {std::pair{32000, small}, {128000, large}}) {
      std::string stages = "10000";
      for (int stage = 0; stage < 6; ++stage) stages += ", 10000";
      stages += ", " + std::to_string(10000 + microseconds);
      rows +=
          "- {method_csv: base, gpus: 8, micro_batch: 1, num_microbatches: 128, seq: 2048,"
          " hidden: 3072, vocab: " +
          std::to_string(words) + ", layers: 32, layers_last_stage: 4, iter_ms: 8000," +
          " F_us_per_stage: [" + stages + "], B_us_per_stage: [" + stages + "]}\n";
    }
    return rows;
  };
  const auto of_words = compare(with_outputs(2000, 8000));
  const auto of_tokens = compare(with_outputs(7000, 8000));
  EXPECT_GT(*of_tokens[3].simulated, 1.2 * *of_words[3].simulated);
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
}  // namespace pipesim::vocabulary_rows_test
