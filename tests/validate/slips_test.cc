// A slip in a table from elsewhere is an error where it stands, with the nearest name: nothing is
// left out without a word.
#include <algorithm>
#include <gtest/gtest.h>

#include "sim/core/error.h"
#include "tests/folder.h"
#include "validate/papers/paper_keys.h"
#include "validate/papers/validation.h"

namespace pipesim::slips_test {
namespace {

struct Slip {
  const char* paper;
  const char* yaml;
  int line;
  int column;
  const char* message;
};
void PrintTo(const Slip& slip, std::ostream* out) { *out << slip.paper << ": " << slip.yaml; }

class Slips : public ::testing::TestWithParam<Slip> {};

std::vector<Cell> compare(const std::string& paper, const std::string& yaml) {
  const auto folder = testing::test_folder();
  testing::write_file(folder / (paper + ".yaml"), yaml);
  return std::ranges::find(validations(), paper, &Validation::name)->compare(folder.string(), {});
}

TEST_P(Slips, AreRefusedWhereTheyStand) {
  const Slip& slip = GetParam();
  try {
    (void)compare(slip.paper, slip.yaml);
    FAIL() << "nothing was said";
  } catch (const InputError& error) {
    EXPECT_EQ(error.where().line, slip.line) << error.what();
    EXPECT_EQ(error.where().column, slip.column) << error.what();
    EXPECT_NE(std::string(error.what()).find(slip.message), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    OfTables, Slips,
    ::testing::Values(
        Slip{"zero_bubble", "tabel8_bubble_rate_calculated_ZBV: []\n", 1, 1,
             "did you mean 'table8_bubble_rate_calculated_ZBV'"},
        Slip{"zero_bubble", "table12_small_m: []\nfig9: {}\n", 2, 1, "unknown key; valid: "},
        Slip{"zero_bubble",
             "table9_profiled_iclr_ZB2p:\n- {model: x, p: 60000, n: 1000000, l: 24}\n", 2, 3,
             "240000000000 passes in an iteration"},
        Slip{"vocabulary_parallelism", "table6_v_half: []\n", 1, 1, "did you mean 'table6_vhalf'"},
        Slip{"pipeoffload", "fig15: {}\nfig16_recompute_ablatoin: {}\n", 2, 1,
             "did you mean 'fig16_recompute_ablation'"},
        Slip{"pipeoffload", "fig15:\n  m10p5B-8gpux: []\n", 2, 3, "did you mean 'm10p5B_8gpu'"},
        Slip{"controllable_memory", "table6_8: {}\n", 1, 1, "did you mean 'table6_7'"},
        Slip{"nemo", "rows: []\nextra: []\n", 2, 1, "unknown key"},
        Slip{"simumax", "rows: []\nextar: []\n", 2, 1, "did you mean 'extra'"}));

INSTANTIATE_TEST_SUITE_P(
    OfColumns, Slips,
    ::testing::Values(
        Slip{"zero_bubble",
             "table4_measured:\n"
             "- {model: 1.5B, gpus: 8, m: 24, schedule: ZB-2p, sample_per_gpu_s: 14, mem_gb: 59}\n",
             2, 50, "did you mean 'samples_per_gpu_s'"},
        Slip{"zero_bubble",
             "table4_measured:\n"
             "- {model: 1.5B, gpus: 8, m: 24, schedule: ZB-2p, samples_per_gpu_s: 14, mem_bg: 5}\n",
             2, 73, "did you mean 'mem_gb'"},
        Slip{"zero_bubble",
             "table5_bubble_rate_calculated:\n- {model: 1.5B, p: 8, m: 24, ZB-3p: 0.1}\n", 2, 30,
             "unknown key"},
        Slip{"zero_bubble",
             "table3_models:\n- {model: 1.5B, layrs: 22, gpus: 8, b: 6, m: [24, 32, 64]}\n", 2, 17,
             "did you mean 'layers'"},
        Slip{"vocabulary_parallelism",
             "table5_1f1b:\n- {gpus: 8, seq: 2048, method: Redis, mfu_pc: [1, 1, 1, 1]}\n", 2, 39,
             "did you mean 'mfu_pct'"},
        Slip{"vocabulary_parallelism",
             "table3_vocab_layer_scaling_factor_pct_vocab256k:\n  columns: [8CPU]\n  rows: []\n", 2,
             13, "expected a number of GPUs as '8GPU'"},
        Slip{"pipeoffload",
             "fig15:\n  m10p5B_8gpu:\n"
             "  - {seq: 4096, schedule: GIS, mfu_pct: 60, act_mem_gb: 13, mfu: 3}\n",
             3, 61, "unknown key"},
        Slip{"pipeoffload",
             "fig1_k_grid: {rows_hidden: [8192], cols_seq: [2048], k: [[1]], kk: [[1]]}\n", 1, 64,
             "did you mean 'k'"},
        Slip{"controllable_memory",
             "figure7_approximate:\n- {model: 9.6B, p: 16, m: 64, mb: 2, sq: 5, points: {}}\n", 2,
             38, "did you mean 'seq'"},
        Slip{"controllable_memory", "table1:\n- {block: V-Min, T: 6, peek: M}\n", 2, 24,
             "did you mean 'peak'"},
        Slip{"nemo",
             "rows:\n- {model: LLAMA2-7B, gpus: 8, gbs: 64, mbs: 1, seq: 4096, tok_s_gpus: 1}\n", 2,
             59, "did you mean 'tok_s_gpu'"},
        Slip{"simumax", "rows:\n- {case: a, model: llama3_8b, layers: 4, dp: 8, real_mss: 1}\n", 2,
             49, "did you mean 'real_ms'"}));

INSTANTIATE_TEST_SUITE_P(
    OfNames, Slips,
    ::testing::Values(
        Slip{"zero_bubble",
             "table4_measured:\n"
             "- {model: 1.5B, gpus: 8, m: 24, schedule: ZB-3p, samples_per_gpu_s: 14}\n",
             2, 43, "did you mean 'ZB-"},
        Slip{"zero_bubble",
             "table4_measured:\n"
             "- {model: 15.6B, gpus: 8, m: 24, schedule: ZB-2p, samples_per_gpu_s: 14}\n",
             2, 11, "did you mean 'zb-1"},
        Slip{"vocabulary_parallelism",
             "table5_1f1b:\n- {gpus: 8, seq: 2048, method: Basline, mfu_pct: [1, 1, 1, 1]}\n", 2,
             32, "did you mean 'Baseline'"},
        Slip{"vocabulary_parallelism", "exp_one_host_csv:\n- {method_csv: bse}\n", 2, 16,
             "did you mean 'base'"},
        Slip{"vocabulary_parallelism",
             "table3_vocab_layer_scaling_factor_pct_vocab256k:\n  columns: [8GPU]\n  rows:\n"
             "  - {seq: 2048, layer: Outputt, v: [90]}\n",
             4, 24, "is not known"},
        Slip{"controllable_memory", "table1:\n- {block: V-Max, T: 6}\n", 2, 11,
             "did you mean 'V-Min'"},
        Slip{"controllable_memory",
             "table6_7:\n  cells:\n"
             "  - {schedule: V-Max, d: 1, t: 4, p: 5, seq: 3072, batch: 640, mfu_pct: 60}\n",
             3, 16, "did you mean 'V-Min'"},
        Slip{
            "pipeoffload",
            "fig15:\n  m10p5B_8gpu:\n  - {seq: 4096, schedule: GISX, mfu_pct: 60, act_mem_gb: 9}\n",
            3, 27, "did you mean 'GIS'"},
        Slip{"pipeoffload",
             "fig15:\n  m10p5B_8gpu:\n"
             "  - {seq: 4096, schedule: PO-F, mfu_pct: SKP, act_mem_gb: SKIP}\n",
             3, 42, "expected a number, OOM or SKIP, not 'SKP'; did you mean 'SKIP'"},
        Slip{"pipeoffload", "fig15:\n  m11p5B_8gpu: []\n", 2, 16, "did you mean 'po-10.5b'"}));

TEST(PaperKeys, AllowNotesAndFactsOfOtherTables) {
  const auto cells = compare("controllable_memory",
                             "paper: a title\nstatus: partial\ntable5_note: text\n"
                             "table2_models: [{model: 9.6B}]\nother: {}\n"
                             "table1:\n- {block: V-ZB, T: 6, note: printed so}\n");
  EXPECT_EQ(cells.size(), 2U);
  EXPECT_EQ(not_compared(testing::test_folder().string(), "controllable_memory"),
            (std::vector<std::string>{"table2_models", "other"}));
}

// Nor does what no machine simulates end the others.
TEST(PaperKeys, LeaveRowsOutThatAreBeyondAnyRun) {
  const auto cells =
      compare("simumax",
              "rows:\n- {case: x, model: llama3_70b, layers: 1000, tp: 1, pp: 1000, dp: 1, ep: 1, "
              "cp: 1, micro_batches: 16000000, seq: null, real_ms: 843, real_alloc_GiB: 66}\n");
  ASSERT_EQ(cells.size(), 2U);
  for (const Cell& cell : cells) {
    EXPECT_NE(cell.note.find("32000000000 passes in an iteration"), std::string::npos) << cell.note;
  }
}

TEST(PaperKeys, TakeNoTableForANote) {
  EXPECT_THROW((void)compare("controllable_memory",
                             "table5_note: [{model: 9.6B}]\ntable1:\n- {block: V-ZB, T: 6}\n"),
               InputError);
}

}  // namespace
}  // namespace pipesim::slips_test
