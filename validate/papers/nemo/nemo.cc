#include "validate/papers/nemo/nemo.h"

#include <fmt/format.h>

#include "models/layer_work.h"
#include "sim/read/model.h"
#include "sim/read/yaml.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/paper_keys.h"
#include "validate/papers/timed_run.h"

namespace pipesim::nemo {
namespace {

struct Row {
  std::string name;
  TimedRun run;
  int gpus = 1;
  int global_batch = 1;
  bool assumed = false;  // micro batch or virtual size
};

// "LLAMA2-7B" is llama2-7b here.
Transformer model_of(const YamlValue& value) {
  std::string name = value.text();
  for (char& letter : name) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return find_model(name, value.where());
}

int size(YamlMap& map, const char* key) {
  const auto value = map.find(key);
  return value && !value->is_null() ? static_cast<int>(value->integer(1, 1 << 24)) : 1;
}

bool states(YamlMap& map, const char* key) {
  const auto value = map.find(key);
  return value && !value->is_null();
}

// Settings of NeMo-Framework-Launcher's configurations, which the data file lists; dropout in
// GPT-3's, as there.
void configure(TimedRun& run, const std::string& name) {
  LayerContext& context = run.setting.context;
  context.sequence_parallel = context.tensor > 1;
  context.precision = Precision::kFp8;
  context.dropout = name.starts_with("GPT3");
  run.setting.state.gradients_in_fp32 = false;
  run.setting.state.distributed_optimizer = true;
  run.setting.overlap = {.tensor = true, .gradient_reduce = true, .parameter_gather = true};
  run.setting.fused_backward = true;
  run.blocking = false;
}

Row read_row(YamlMap& map) {
  const YamlValue& value = map.value();
  Row row;
  const YamlValue model = map.require("model", "a model's name");
  row.name = model.text();
  row.gpus = static_cast<int>(map.require("gpus", "GPUs").integer(1, 1 << 20));
  const YamlValue batch = map.require("gbs", "global batch");
  row.global_batch = static_cast<int>(batch.integer(1, 1 << 24));
  TimedRun& run = row.run;
  run.model = model_of(model);
  LayerContext& context = run.setting.context;
  context.seq_length = static_cast<int>(map.require("seq", "sequence length").integer(1, 1 << 24));
  context.micro_batch_size = size(map, "mbs");
  context.tensor = size(map, "tp");
  context.context = size(map, "cp");
  context.expert = size(map, "ep");
  run.devices = size(map, "pp");
  const bool stated = states(map, "vp") || run.devices == 1;
  run.chunks = stated ? size(map, "vp") : run.model.num_layers / run.devices;
  row.assumed = !stated || !states(map, "mbs");
  run.schedule = run.chunks > 1 ? "interleaved-1f1b" : "1f1b";
  const int model_gpus = context.tensor * context.context * run.devices;
  if (row.gpus % model_gpus != 0) value.fail("tp x cp x pp does not divide the GPUs");
  run.setting.state.data = row.gpus / model_gpus;
  run.microbatches = microbatches_of(batch, run.setting.state.data, context.micro_batch_size);
  configure(run, row.name);
  return row;
}

void compare_row(std::vector<Cell>& cells, const YamlValue& value, const Hardware& hardware) {
  YamlMap map(value);
  Row row = read_row(map);
  row.run.hardware = hardware;
  const LayerContext& context = row.run.setting.context;
  std::string fault = fault_of(row.run.model, context);
  std::optional<Seconds> seconds;
  try {
    if (fault.empty()) seconds = iteration_seconds(row.run);
  } catch (const InfeasibleError& error) {
    fault = error.what();
  }
  const auto add = [&](const char* key, const char* unit, double of_iteration) {
    const auto published = map.find(key);
    if (!published || published->is_null()) return;
    Cell cell;
    cell.table = row.assumed ? "H100 FP8, settings assumed" : "H100 FP8";
    cell.cell = fmt::format("{} {} GPUs t={} p={} v={} c={} b={}, {}", row.name, row.gpus,
                            context.tensor, row.run.devices, row.run.chunks, context.context,
                            context.micro_batch_size, unit);
    cell.published = published->number(1e-9, 1e12);
    cell.digits = 0;
    cell.relative = true;
    if (seconds) cell.simulated = of_iteration / seconds->value() / row.gpus;
    if (!seconds) cell.note = "not modelled: " + fault;
    cells.push_back(cell);
  };
  const double flops =
      row.global_batch * model_flops(row.run.model, context.seq_length, false).value();
  add("tok_s_gpu", "tokens/s/GPU", 1.0 * row.global_batch * context.seq_length);
  add("model_tflops_s_gpu", "model TFLOP/s/GPU", flops / 1e12);
  finish_row(map);
}

}  // namespace

std::vector<Cell> compare(const std::string& folder, const Location& asked) {
  const YamlSource source = YamlSource::from_file(paper_file(folder, "nemo"), asked);
  const Hardware hardware = cluster_of_catalog("dgx-h100", asked);
  YamlMap root(source.root());
  const YamlValue rows = root.require("rows", "a list");
  finish_paper(root, "nemo");
  std::vector<Cell> cells;
  for (const YamlValue& row : rows.list()) {
    compare_row(cells, row, hardware);
  }
  return cells;
}

}  // namespace pipesim::nemo
