#include "validate/papers/megatron/megatron.h"

#include <fmt/format.h>
#include <optional>

#include "models/layer_work.h"
#include "sim/core/data_folder.h"
#include "sim/read/hardware.h"
#include "sim/read/model.h"
#include "sim/read/yaml.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/paper_keys.h"
#include "validate/papers/simulate_cell.h"
#include "validate/papers/timed_run.h"

namespace pipesim::megatron {
namespace {

// Settings of every row of a table.
struct Stack {
  std::string table;
  Hardware hardware;
  bool counts_recomputed = false;
  bool blocking = false;
  CostSetting setting;
};

struct Row {
  std::string name;
  Transformer model;
  int pipeline = 1;
  int global_batch = 1;
  int microbatches = 1;
  int chunks = 1;
  bool assumed = false;  // micro batch or virtual size
  CostSetting setting;
  std::optional<double> tflops;
  std::optional<Seconds> seconds;

  [[nodiscard]] int gpus() const { return pipeline * setting.context.tensor * setting.state.data; }
};

bool flag(YamlMap& map, const char* key) {
  const auto value = map.find(key);
  return value && value->flag();
}

int size(YamlMap& map, const char* key) {
  return static_cast<int>(map.require(key, "a whole number").integer(1, 1 << 20));
}

Stack read_stack(YamlMap& map, const HardwareCatalog& catalog) {
  static const std::vector<std::string> kCounts{"model", "recomputed"};
  static const std::vector<std::string> kRecompute{"none", "selective", "full"};
  Stack stack;
  stack.table = map.require("table", "a title").text();
  (void)map.require("source", "where it was published");
  stack.hardware = catalog.cluster(map.require("cluster", "a name of the catalogue")).hardware;
  stack.counts_recomputed =
      map.require("counts", "model or recomputed").choice(kCounts) == "recomputed";
  stack.blocking = flag(map, "blocking");
  LayerContext& context = stack.setting.context;
  context.seq_length = size(map, "seq_length");
  context.sequence_parallel = flag(map, "sequence_parallel");
  context.flash_attention = flag(map, "flash_attention");
  context.dropout = flag(map, "dropout");
  context.scatter_sends = flag(map, "scatter_sends");
  if (const auto recompute = map.find("recompute")) {
    const std::string granularity = recompute->choice(kRecompute);
    if (granularity == "full") context.recompute = RecomputeGranularity::kFull;
    if (granularity == "selective") context.recompute = RecomputeGranularity::kSelective;
  }
  stack.setting.state.gradients_in_fp32 = flag(map, "fp32_gradients");
  stack.setting.state.distributed_optimizer = flag(map, "distributed_optimizer");
  stack.setting.overlap.tensor = flag(map, "overlap_tensor");
  stack.setting.overlap.gradient_reduce = flag(map, "overlap_gradients");
  stack.setting.overlap.parameter_gather = flag(map, "overlap_parameters");
  stack.setting.fused_backward = flag(map, "async_reduction");
  return stack;
}

Row read_row(const YamlValue& value, const Stack& stack) {
  YamlMap map(value);
  Row row;
  row.setting = stack.setting;
  row.model = read_model(map.require("model", "a name or a map"));
  const auto name = map.find("name");
  row.name = name ? name->text() : row.model.name;
  row.setting.context.tensor = size(map, "tensor");
  // A single tensor rank has no sequence to divide.
  if (row.setting.context.tensor == 1) row.setting.context.sequence_parallel = false;
  row.setting.state.data = size(map, "data");
  row.pipeline = size(map, "pipeline");
  const YamlValue batch = map.require("global_batch", "a whole number");
  row.global_batch = static_cast<int>(batch.integer(1, 1 << 20));
  const auto micro = map.find("micro_batch");
  if (micro) row.setting.context.micro_batch_size = static_cast<int>(micro->integer(1, 1024));
  row.microbatches =
      microbatches_of(batch, row.setting.state.data, row.setting.context.micro_batch_size);
  const auto chunks = map.find("virtual");
  const int layers = row.model.num_layers / row.pipeline;
  row.chunks = row.pipeline == 1 ? 1 : layers;
  if (chunks) row.chunks = static_cast<int>(chunks->integer(1, 1024));
  row.assumed = !micro || !chunks;
  if (const auto tflops = map.find("tflops")) row.tflops = tflops->number(1e-9, 1e5);
  if (const auto seconds = map.find("seconds")) row.seconds = Seconds(seconds->number(0, 1e5));
  if (!row.tflops && !row.seconds) value.fail("needs tflops or seconds");
  map.finish();
  return row;
}

Seconds iteration(const Row& row, const Stack& stack) {
  TimedRun run;
  run.model = row.model;
  run.setting = row.setting;
  run.hardware = stack.hardware;
  run.schedule = row.chunks > 1 ? "interleaved-1f1b" : "1f1b";
  run.devices = row.pipeline;
  run.chunks = row.chunks;
  run.microbatches = row.microbatches;
  run.blocking = stack.blocking;
  return iteration_seconds(run);
}

// Flops of an iteration on all GPUs, as the source counts.
Flops counted_flops(const Row& row, const Stack& stack) {
  const double times = stack.counts_recomputed ? 4.0 / 3.0 : 1.0;
  return times * row.global_batch * model_flops(row.model, row.setting.context.seq_length, false);
}

Cell compare_row(const Row& row, const Stack& stack) {
  const Flops counted = counted_flops(row, stack);
  const auto tflops = [&](Seconds seconds) {
    return counted.value() / seconds.value() / row.gpus() / 1e12;
  };
  Cell cell;
  cell.table = stack.table + (row.assumed ? ", settings assumed" : "");
  cell.cell =
      fmt::format("{} t={} p={} d={} v={} b={}", row.name, row.setting.context.tensor, row.pipeline,
                  row.setting.state.data, row.chunks, row.setting.context.micro_batch_size);
  cell.digits = 1;
  cell.relative = true;
  cell.published = row.tflops ? *row.tflops : tflops(*row.seconds);
  simulate(cell, [&] {
    const Seconds seconds = iteration(row, stack);
    cell.note = fmt::format("{:.2f} s", seconds.value());
    return tflops(seconds);
  });
  return cell;
}

}  // namespace

std::vector<Cell> compare(const std::string& folder, const Location& asked) {
  const YamlSource source = YamlSource::from_file(paper_file(folder, "megatron"), asked);
  const HardwareCatalog catalog = read_hardware_folder(data_folder("catalog"), asked);
  std::vector<Cell> cells;
  for (const YamlValue& table : source.root().list()) {
    YamlMap map(table);
    const Stack stack = read_stack(map, catalog);
    for (const YamlValue& row : map.require("rows", "a list").list()) {
      cells.push_back(compare_row(read_row(row, stack), stack));
    }
    map.finish();
  }
  return cells;
}

}  // namespace pipesim::megatron
