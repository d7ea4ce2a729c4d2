// The comparisons that take rows of any model, layout and batch: SimuMax's and NeMo's.
#include <gtest/gtest.h>

#include "sim/core/error.h"
#include "tests/folder.h"
#include "validate/papers/nemo/nemo.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/simumax/simumax.h"

namespace pipesim::published_rows_test {
namespace {

std::string folder_with(const std::string& file, const std::string& yaml) {
  const auto folder = testing::test_folder();
  testing::write_file(folder / file, yaml);
  return folder.string();
}

TEST(SimuMaxRows, TakeTheSameMemoryAndTwiceTheTimeForTwiceTheMicrobatches) {
  const auto cells = simumax::compare(folder_with("simumax_b200.yaml", R"(
rows:
- {case: a, model: llama3_8b, layers: 4, tp: 1, pp: 1, dp: 8, micro_batches: 64, seq: null, real_ms: 1, real_alloc_GiB: 1}
- {case: b, model: llama3_8b, layers: 4, tp: 1, pp: 1, dp: 8, micro_batches: 128, seq: 4096, real_ms: 1, real_alloc_GiB: 1}
)"),
                                      {});
  ASSERT_EQ(cells.size(), 4U);
  EXPECT_NEAR(*cells[2].simulated / *cells[0].simulated, 2, 0.1);
  EXPECT_EQ(*cells[3].simulated, *cells[1].simulated);
  EXPECT_EQ(cells[1].table, "Memory, llama3-8b");
}

TEST(SimuMaxRows, ReadFromTheNameWhatNoKeySays) {
  const auto cells = simumax::compare(folder_with("simumax.yaml", R"(
rows:
- {case: a, model: llama3_8b, layers: 8, tp: 1, pp: 4, vp: 2, dp: 2, micro_batches: 8, real_ms: 1}
extra:
- {case: llama3_8b_l8_tp1_pp4_vp2_dp2_mbc8_sync, real_ms: 1}
)"),
                                      {});
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(*cells[0].simulated, *cells[1].simulated);
}

TEST(SimuMaxRows, SayWhatCannotBeDivided) {
  const auto cells = simumax::compare(folder_with("simumax.yaml", R"(
rows:
- {case: a, model: llama3_8b, layers: 4, tp: 3, pp: 1, dp: 1, micro_batches: 4, real_ms: 1}
)"),
                                      {});
  ASSERT_EQ(cells.size(), 1U);
  EXPECT_FALSE(cells[0].simulated);
  EXPECT_TRUE(cells[0].note.starts_with("not modelled: "));
}

TEST(NemoRows, CountSettingsThatAreNotStatedApart) {
  const auto cells = nemo::compare(folder_with("nemo_h100.yaml", R"(
rows:
- {model: LLAMA2-7B, gpus: 8, gbs: 64, mbs: 1, seq: 4096, tp: 1, pp: 4, vp: 8, tok_s_gpu: 10000}
- {model: LLAMA2-7B, gpus: 8, gbs: 64, seq: 4096, tp: 1, pp: 4, tok_s_gpu: 10000}
- {model: LLAMA2-7B, gpus: 8, gbs: 64, mbs: 1, seq: 4096, tp: 1, pp: 4, vp: 1, tok_s_gpu: 10000}
)"),
                                   {});
  ASSERT_EQ(cells.size(), 3U);
  EXPECT_EQ(cells[0].table, "H100 FP8");
  EXPECT_EQ(cells[1].table, "H100 FP8, settings assumed");
  EXPECT_EQ(*cells[0].simulated, *cells[1].simulated);  // the largest virtual size: 32 / 4
  EXPECT_GT(*cells[0].simulated, *cells[2].simulated);
}

TEST(NemoRows, RefuseAModelThatIsNotKnown) {
  EXPECT_THROW((void)nemo::compare(folder_with("nemo.yaml", R"(
rows:
- {model: LLAMA9-7B, gpus: 8, gbs: 64, mbs: 1, seq: 4096, tok_s_gpu: 10000}
)"),
                                   {}),
               InputError);
}

TEST(PaperFile, IsFoundUnderTheOtherNameOfAValidation) {
  const std::string folder = folder_with("nemo_h100.yaml", "rows: []\n");
  EXPECT_TRUE(paper_file(folder, "nemo").ends_with("nemo_h100.yaml"));
  EXPECT_FALSE(has_paper(folder, "simumax"));
  EXPECT_EQ(validation_name("simumax_b200"), "simumax");
  EXPECT_EQ(validation_name("megatron"), "megatron");
}

}  // namespace
}  // namespace pipesim::published_rows_test
