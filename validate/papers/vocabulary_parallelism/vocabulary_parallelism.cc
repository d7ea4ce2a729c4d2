#include "validate/papers/vocabulary_parallelism/vocabulary_parallelism.h"

#include "validate/papers/paper_data.h"
#include "validate/papers/paper_keys.h"
#include "validate/papers/peak_memory.h"
#include "validate/papers/simulate_cell.h"
#include "validate/papers/vocabulary_parallelism/rows.h"

namespace pipesim {
namespace {

using vocabulary_parallelism::HostRun;
using vocabulary_parallelism::MethodRow;

constexpr Bytes kCapacity = 80.0 * kGiB;

// The artifact's settings: fp16 (gradients of 16 bits), flash attention, one sample a microbatch.
// Its dropout rate is 0; masks are counted all the same (docs/reference/model.md, "Measured
// memory").
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
  run.vocabulary = row.placement;
  return run;
}

void compare_memory(std::vector<Cell>& cells, const MethodRow& row) {
  for (size_t i = 0; i < row.peak_gb.size(); ++i) {
    if (row.peak_gb[i].kind == Printed::Kind::kNothing) continue;
    const bool printed = row.peak_gb[i].kind == Printed::Kind::kNumber;
    Cell cell;
    cell.table = row.table + (printed ? " memory" : " out of memory");
    cell.cell = row.text(i) + (printed ? ", GiB" : "");
    cell.published = printed ? row.peak_gb[i].number : 1;
    cell.digits = printed ? 2 : 0;
    cell.relative = printed;
    cell.note = "not modelled: " + row.fault;
    if (row.fault.empty()) {
      const bool moved = row.placement == VocabularyPlacement::kRedistributed;
      cell.note = moved ? "as the baseline: the first GPU holds most, and no fewer layers" : "";
      cell.must_agree = printed;
      cell.median = printed ? 0.06 : 0;
      simulate(cell, [&] {
        const Bytes peak = allocated_at_peak(run_of(row, i));
        return printed ? peak / kGiB : 1.0 * (peak + kFrameworkOverhead > kCapacity);
      });
    }
    cells.push_back(cell);
  }
}

void compare_iteration(std::vector<Cell>& cells, const HostRun& run, const Hardware& hardware) {
  using namespace vocabulary_parallelism;
  const bool shared = is_sharded(run.placement);
  Cell cell;
  cell.table = shared ? "Measured shares" : "Measured stages";
  cell.cell = run.text() + ", ms";
  cell.published = run.iteration.value() * 1e3;
  cell.digits = 1;
  cell.relative = true;
  cell.note = "not modelled: " + run.fault;
  if (run.fault.empty()) {
    cell.note = "";
    cell.must_agree = true;
    cell.worst = shared ? 0.02 : 0.01;
    simulate(cell, [&] {
      const Seconds simulated =
          shared ? seconds_from_shares(run, hardware) : seconds_from_stages(run, hardware);
      return simulated.value() * 1e3;
    });
  }
  cells.push_back(cell);
}

}  // namespace

std::vector<Cell> compare_vocabulary_parallelism(const std::string& folder, const Location& asked) {
  const YamlSource source =
      YamlSource::from_file(paper_file(folder, "vocabulary_parallelism"), asked);
  YamlMap root(source.root());
  for (const char* table : {"table3_vocab_layer_scaling_factor_pct_vocab256k", "table5_1f1b",
                            "table6_vhalf", "exp_one_host_csv"}) {
    (void)root.find(table);
  }
  finish_paper(root, "vocabulary_parallelism");
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
