// Tables 6 and 7: MFU by data, tensor and pipeline ranks and micro batch, from first principles.
#include <fmt/format.h>
#include <optional>
#include <vector>

#include "models/layer_work.h"
#include "validate/papers/controllable_memory/controllable_memory.h"
#include "validate/papers/controllable_memory/names.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/paper_keys.h"
#include "validate/papers/simulate_cell.h"
#include "validate/papers/timed_run.h"

namespace pipesim::controllable_memory {
namespace {

struct Row {
  const Name* name = nullptr;
  std::string model_name;
  std::optional<Transformer> model;
  int data = 1;
  int tensor = 1;
  int pipeline = 1;
  int seq = 0;
  int batch = 0;
  std::optional<int> micro_batch;
  Printed mfu;
};

int size(YamlMap& row, const char* key) {
  return static_cast<int>(row.require(key, "a whole number").integer(1, 1 << 24));
}

Row read_row(const YamlValue& value) {
  YamlMap map(value);
  std::vector<std::string> names;
  for (const Name& each : kNames) names.emplace_back(each.paper);
  Row row;
  const std::string schedule = map.require("schedule", "a name").choice(names);
  for (const Name& each : kNames) {
    if (schedule == each.paper) row.name = &each;
  }
  row.data = size(map, "d");
  row.tensor = size(map, "t");
  row.pipeline = size(map, "p");
  row.seq = size(map, "seq");
  row.batch = size(map, "batch");
  row.mfu = read_printed(map.require("mfu_pct", "percent, OOM or SKIP"), 100);
  if (const auto micro = map.find("mb"))
    row.micro_batch = static_cast<int>(micro->integer(1, 4096));
  if (const auto model = map.find("model")) {
    row.model_name = model->text() + " ";
    row.model = model_of(*model);
    row.model->max_position_embeddings = row.seq;
  }
  finish_row(map);
  return row;
}

// Like the runs of Figure 7 (runs.cc), with tensor ranks that divide the sequence as well.
TimedRun timed_run(const Row& row, const Hardware& hardware) {
  const std::string schedule = row.name->schedule;
  const bool megatron = schedule.ends_with("1f1b");
  const int samples = row.data * *row.micro_batch;
  if (row.batch % samples != 0) {
    throw InfeasibleError(
        fmt::format("d x mb, {}, do not divide the batch of {}", samples, row.batch));
  }
  TimedRun run;
  run.model = *row.model;
  LayerContext& context = run.setting.context;
  context.micro_batch_size = *row.micro_batch;
  context.seq_length = row.seq;
  context.tensor = row.tensor;
  context.sequence_parallel = row.tensor > 1;
  context.flash_attention = false;
  context.dropout = true;
  if (row.name->recompute) context.recompute = RecomputeGranularity::kFull;
  run.setting.state.data = row.data;
  run.setting.state.gradients_in_fp32 = false;
  run.setting.fused_backward = megatron;
  run.hardware = hardware;
  run.split = kSplit;
  run.schedule = schedule;
  run.devices = row.pipeline;
  run.chunks = chunks_of(*row.name, run.model, row.pipeline);
  run.microbatches = row.batch / samples;
  run.sync = megatron ? OptimizerSync::kAllReduce : OptimizerSync::kPostValidation;
  run.plan_as_if_equal = !megatron;
  const std::string fault = fault_of(run.model, context);
  if (!fault.empty()) throw InfeasibleError(fault);
  return run;
}

Cell compare_row(const Row& row, const Hardware& hardware) {
  Cell cell;
  cell.table = "Tables 6 and 7";
  cell.cell = fmt::format("{}{} d={} t={} p={} seq={} batch={}{}, MFU %", row.model_name,
                          row.name->paper, row.data, row.tensor, row.pipeline, row.seq, row.batch,
                          row.micro_batch ? fmt::format(" mb={}", *row.micro_batch) : "");
  cell.published = row.mfu.number;
  cell.digits = 2;
  cell.relative = true;
  if (!row.model || !row.micro_batch) {
    cell.note = "not modelled: model and micro batch of the row are not known";
    if (row.model) cell.note = "not modelled: the micro batch 'mb' of the row is not known";
    if (row.micro_batch) cell.note = "not modelled: the 'model' of the row is not known";
    return cell;
  }
  simulate(cell, [&] {
    const double flops = row.batch * model_flops(*row.model, row.seq, false).value();
    const Seconds seconds = iteration_seconds(timed_run(row, hardware));
    return 100 * flops / (row.data * row.tensor * row.pipeline) / kPeakFlops / seconds.value();
  });
  return cell;
}

}  // namespace

void compare_grid(std::vector<Cell>& cells, const YamlValue& table, const Location& asked) {
  const Hardware hardware = cluster_of_catalog("a100-roce", asked);
  YamlMap map(table);
  const auto given = map.find("cells");
  finish_row(map);
  if (!given) return;
  std::vector<Row> rows;
  for (const YamlValue& row : given->list()) rows.push_back(read_row(row));
  for (const Row& row : rows) {
    if (row.mfu.kind == Printed::Kind::kNumber) cells.push_back(compare_row(row, hardware));
  }
}

}  // namespace pipesim::controllable_memory
