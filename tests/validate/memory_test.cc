#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/core/data_folder.h"
#include "validate/papers/memory/golden.h"
#include "validate/papers/paper_data.h"

namespace pipesim {
namespace {

std::vector<GoldenPeak> peaks_in(const std::string& text) {
  const auto path = std::filesystem::temp_directory_path() / "pipesim_golden.yaml";
  std::ofstream(path) << text;
  return golden_peaks(path.string(), {});
}

// A decoder of 12 layers on one node: what Megatron-LM's test of that name records.
constexpr const char* kRow = R"(rows:
- id: gpt/one
  arguments: {--num-layers: 12, --hidden-size: 512, --num-attention-heads: 8, --micro-batch-size: 4,
    --global-batch-size: 32, --seq-length: 1024, --max-position-embeddings: 1024, --transformer-impl: local,
    --use-distributed-optimizer: true, --bf16: true, --deterministic-mode: false}
  measured:
    dev_dgx_a100: {peak_allocated_bytes: 4735000000, allocated_bytes: 612000000}
    dev_dgx_h100: {iteration_seconds_median: 1}
)";

TEST(GoldenMemory, ComparesARowByItsArguments) {
  const auto peaks = peaks_in(kRow);
  ASSERT_EQ(peaks.size(), 1U) << "a platform without a peak is left out";
  EXPECT_EQ(peaks[0].family, "gpt");
  EXPECT_EQ(peaks[0].gpus, 8);
  ASSERT_TRUE(peaks[0].simulated) << peaks[0].reason;
  EXPECT_LT(std::abs(peaks[0].error()), 0.06);
  EXPECT_NE(peaks[0].scenario.find("vocab_size: 50304"), std::string::npos);
}

TEST(GoldenMemory, NamesWhatItDoesNotModel) {
  std::string text = kRow;
  text.replace(text.find("--bf16"), 6, "--img-h: 336, --bf16");
  const auto peaks = peaks_in(text);
  EXPECT_FALSE(peaks[0].simulated);
  EXPECT_EQ(peaks[0].reason, "img_h: images");
  const auto json = nlohmann::json::parse(golden_json(peaks));
  EXPECT_EQ(json[0]["status"], "not modelled");
  EXPECT_TRUE(json[0]["simulated_bytes"].is_null());
}

TEST(GoldenMemory, MoreNodesWhereLessStateStaysAllocated) {
  std::string text = kRow;
  text.replace(text.find("612000000"), 9, "300000000");
  text.replace(text.find("size: 32,"), 9, "size: 256,");
  EXPECT_GT(peaks_in(text)[0].gpus, 8);
}

TEST(GoldenMemory, RefusesAFileWithoutRows) {
  EXPECT_THROW(peaks_in("row: []\n"), InputError);
  EXPECT_THROW(peaks_in("rows: [{id: a}]\n"), InputError);
}

TEST(GoldenMemory, ProjectsPeaksAreNear) {
  std::vector<double> errors;
  for (const GoldenPeak& peak : golden_peaks(paper_file(data_folder("papers"), "memory"), {})) {
    if (peak.measured > kGoldenFrom && peak.simulated) errors.push_back(std::abs(peak.error()));
  }
  ASSERT_GE(errors.size(), 25U);
  std::ranges::sort(errors);
  EXPECT_LT(errors[errors.size() / 2], 0.06);
}

}  // namespace
}  // namespace pipesim
