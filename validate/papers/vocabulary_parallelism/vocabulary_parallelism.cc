#include "validate/papers/vocabulary_parallelism/vocabulary_parallelism.h"

#include "validate/papers/paper_data.h"
#include "validate/papers/peak_memory.h"
#include "validate/papers/vocabulary_parallelism/rows.h"

namespace pipesim {
namespace {

using vocabulary_parallelism::HostRun;
using vocabulary_parallelism::MethodRow;

// The artifact's settings: fp16 (gradients of 16 bits), flash attention, one sample a microbatch.
// Its dropout rate is 0; masks are counted all the same (docs/model.md, "Measured memory").
MeasuredRun run_of(const MethodRow& row, size_t vocabulary) {
  MeasuredRun run;
  run.model = row.with_vocabulary(vocabulary);
  run.schedule = row.schedule;
  run.chunks = row.chunks;
  run.devices = row.gpus;
  run.microbatches = 128;
  run.context.micro_batch_size = 1;
  run.context.seq_length = row.seq;
  run.context.dropout = true;
  run.state.gradients_in_fp32 = false;
  run.vocabulary = *row.placement;
  return run;
}

void compare_memory(std::vector<Cell>& cells, const MethodRow& row) {
  for (size_t i = 0; i < row.peak_gb.size(); ++i) {
    Cell cell;
    cell.table = row.table + " memory";
    cell.cell = row.text(i) + ", GiB";
    cell.published = row.peak_gb[i];
    cell.digits = 2;
    cell.relative = true;
    cell.note = "not modelled: no such method";
    if (row.placement) {
      const bool moved = *row.placement == VocabularyPlacement::kRedistributed;
      cell.note = moved ? "as the baseline: the first GPU holds most, and no fewer layers" : "";
      cell.simulated = allocated_at_peak(run_of(row, i)) / kGiB;
      cell.must_agree = true;
      cell.median = 0.06;
    }
    cells.push_back(cell);
  }
}

void compare_iteration(std::vector<Cell>& cells, const HostRun& run, const Hardware& hardware) {
  using namespace vocabulary_parallelism;
  const bool shared = run.placement && is_sharded(*run.placement);
  Cell cell;
  cell.table = shared ? "Measured shares" : "Measured stages";
  cell.cell = run.text() + ", ms";
  cell.published = run.iteration.value() * 1e3;
  cell.digits = 1;
  cell.relative = true;
  cell.note = "not modelled: no such method";
  if (run.placement) {
    const Seconds simulated =
        shared ? seconds_from_shares(run, hardware) : seconds_from_stages(run, hardware);
    cell.simulated = simulated.value() * 1e3;
    cell.note = "";
    cell.must_agree = true;
    cell.worst = shared ? 0.02 : 0.01;
  }
  cells.push_back(cell);
}

}  // namespace

std::vector<Cell> compare_vocabulary_parallelism(const std::string& folder, const Location& asked) {
  const YamlSource source =
      YamlSource::from_file(paper_file(folder, "vocabulary_parallelism"), asked);
  YamlMap root(source.root());
  const Hardware hardware = cluster_of_catalog("a100-roce", asked);
  const std::vector<MethodRow> rows = vocabulary_parallelism::read_rows(root);
  std::vector<HostRun> runs;
  if (const auto given = root.find("exp_one_host_csv")) {
    runs = vocabulary_parallelism::read_host_runs(*given);
  }
  std::vector<Cell> cells;
  for (const MethodRow& row : rows) compare_memory(cells, row);
  vocabulary_parallelism::compare_throughput(cells, rows, runs, hardware);
  for (const MethodRow& row : rows) vocabulary_parallelism::compare_balance(cells, row);
  if (const auto table = root.find("table3_vocab_layer_scaling_factor_pct_vocab256k")) {
    compare_scaling(cells, *table, asked);
  }
  for (const HostRun& run : runs) compare_iteration(cells, run, hardware);
  if (cells.empty()) root.value().fail("no table of this paper in this file");
  return cells;
}

}  // namespace pipesim
