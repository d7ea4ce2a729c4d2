#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "sim/core/data_folder.h"
#include "validate/papers/memory/ran.h"

namespace pipesim {
namespace {

std::vector<RunMemory> runs_in(const std::string& text) {
  const auto path = std::filesystem::temp_directory_path() / "pipesim_ran.yaml";
  std::ofstream(path) << text;
  return memory_of_runs(path.string(), data_folder("papers") + "/runs/rules.yaml", {});
}

constexpr const char* kShape =
    "gpu: H100-SXM5-80GB, tp: 8, pp: 1, mbs: 1, seq: 4096, precision: bf16, step_s: 1, "
    "model: Llama 3 8B";

TEST(RunMemory, SaysWhetherWhatRanFits) {
  const auto runs =
      runs_in(std::string("dgxc:\n- {id: small, gpus: 8, gbs: 8, ") + kShape +
              "}\n- {id: other, gpus: 8, gbs: 8, max_memory_usage_log: 20, " + kShape + "}\n");
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].fits, MemoryFit::kYes);
  EXPECT_FALSE(runs[0].printed);
  ASSERT_TRUE(runs[1].printed);
  EXPECT_EQ(*runs[1].printed, 20 * kGiB);
  EXPECT_NE(run_memory_text(runs).find("dgxc"), std::string::npos);
}

TEST(RunMemory, AddsContextAndMarginToWhatNvidiaSmiShows) {
  const auto runs = runs_in(std::string("dgxc:\n- {id: a, gpus: 8, gbs: 8, mem: 30GB, ") + kShape +
                            "}\n- {id: b, gpus: 8, gbs: 8, memory_GB: 30, " + kShape + "}\n");
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_GT(*runs[0].simulated, *runs[1].simulated + kGiB);
}

TEST(RunMemory, LeavesOutWhatRanOutOfMemory) {
  const auto runs =
      runs_in(std::string("dgxc:\n- {id: a, gpus: 8, gbs: 8, max_memory_allocated_bytes: OOM, ") +
              kShape + "}\n");
  EXPECT_TRUE(runs.empty());
}

}  // namespace
}  // namespace pipesim
