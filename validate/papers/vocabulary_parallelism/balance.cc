// The paper's claim for V-Half: with a divided vocabulary devices compute and hold alike, whatever
// its size.
#include <algorithm>
#include <fmt/format.h>
#include <functional>

#include "sim/case/simulate.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "validate/papers/vocabulary_parallelism/vocabulary_parallelism.h"

namespace pipesim::vocabulary_parallelism {
namespace {

constexpr double kMostPercent = 3;

Report report_of(const MethodRow& row, VocabularyPlacement placement, int vocabulary) {
  Scenario scenario = read_scenario(
      YamlSource("balance", fmt::format(R"(
model: {{base: {}, vocab_size: {}, max_position_embeddings: {}}}
cluster: a100-roce
schedule: {}
parallel: {{pipeline_model_parallel_size: {}}}
batch: {{num_microbatches: 128, micro_batch_size: 1, seq_length: {}}}
vocabulary: {}
)",
                                        row.model_name, vocabulary, row.seq, row.schedule, row.gpus,
                                        row.seq, to_text(placement))));
  return simulate(prepare_first(std::move(scenario))).report;
}

// By how much the device that has most has more than the one that has least.
double percent_apart(const Report& report, const std::function<double(const DeviceReport&)>& of) {
  const auto [least, most] = std::ranges::minmax(report.devices, {}, of);
  return 100 * (of(most) / of(least) - 1);
}

}  // namespace

void compare_balance(std::vector<Cell>& cells, const MethodRow& row) {
  if (row.table != "Table 6" || row.placement != VocabularyPlacement::kVocab1 ||
      !row.fault.empty()) {
    return;
  }
  for (const auto placement : {VocabularyPlacement::kVocab1, VocabularyPlacement::kVocab2}) {
    for (const int vocabulary : kVocabularies) {
      const Report report = report_of(row, placement, vocabulary);
      Cell cell;
      cell.table = "Balance of V-Half";
      cell.published = kMostPercent;
      cell.digits = 1;
      cell.must_agree = true;
      cell.may_be_lower = true;
      const std::string run = fmt::format("{} GPUs, seq {}, vocabulary {}k, {}", row.gpus, row.seq,
                                          vocabulary / 1000, to_text(placement));
      cell.cell = run + ", compute, % apart";
      cell.simulated =
          percent_apart(report, [](const DeviceReport& device) { return device.busy.value(); });
      cells.push_back(cell);
      cell.cell = run + ", memory, % apart";
      cell.simulated = percent_apart(
          report, [](const DeviceReport& device) { return device.peak_memory()->value(); });
      cells.push_back(cell);
    }
  }
}

}  // namespace pipesim::vocabulary_parallelism
