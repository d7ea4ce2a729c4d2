// Iteration times from stages' measured times: the artifact's runs on one host.
#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "sim/scenario/read_model.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/timed_run.h"
#include "validate/papers/vocabulary_parallelism/shared_vocabulary.h"
#include "validate/papers/vocabulary_parallelism/vocabulary_parallelism.h"

namespace pipesim {
namespace {

int size(YamlMap& map, const char* key) {
  return static_cast<int>(map.require(key, "a whole number").integer(1, 1 << 24));
}

std::vector<Seconds> microseconds(YamlMap& map, const char* key, int stages) {
  const YamlValue value = map.require(key, "microseconds of every stage");
  std::vector<Seconds> seconds;
  for (const YamlValue& each : value.list()) seconds.emplace_back(each.number(0, 1e12) * 1e-6);
  if (std::cmp_not_equal(seconds.size(), stages)) value.fail("expected one for every GPU");
  return seconds;
}

// The last stage has the layers that the row says, the others share the rest, later ones taking
// what does not divide (as the measured times have it).
std::vector<int> layers_of(int layers, int last, int stages) {
  std::vector<int> split(static_cast<size_t>(stages), last);
  const int rest = layers - last;
  const int others = stages - 1;
  for (int stage = 0; stage < others; ++stage) {
    split[static_cast<size_t>(stage)] = rest / others + (stage >= others - rest % others ? 1 : 0);
  }
  return split;
}

Transformer model_of(YamlMap& map, int seq, const Location& where) {
  const int hidden = size(map, "hidden");
  const int layers = size(map, "layers");
  for (const char* name : {"vp-4b", "vp-10b", "vp-21b"}) {
    Transformer model = find_model(name, where);
    if (model.hidden_size != hidden || model.num_layers != layers) continue;
    model.vocab_size = size(map, "vocab");
    model.max_position_embeddings = seq;
    return model;
  }
  throw InputError(where, "no model of the paper has these sizes");
}

}  // namespace

void compare_measured_stages(std::vector<Cell>& cells, const YamlValue& rows,
                             const Location& asked) {
  const Hardware hardware = cluster_of_catalog("a100-roce", asked);
  for (const YamlValue& value : rows.list()) {
    YamlMap map(value);
    const std::string method = map.require("method_csv", "base, redis, ...").text();
    if (sharded_method(method)) {
      cells.push_back(compare_measured_shares(value, asked));
      continue;
    }
    TimedRun run;
    run.devices = size(map, "gpus");
    run.microbatches = size(map, "num_microbatches");
    LayerContext& context = run.setting.context;
    context.seq_length = size(map, "seq");
    context.micro_batch_size = size(map, "micro_batch");
    Cell cell;
    cell.table = "Measured stages";
    cell.published = map.require("iter_ms", "milliseconds").number(1e-9, 1e12);
    cell.cell = fmt::format("{} GPUs, seq {}, vocabulary {}k, {}, ms", run.devices,
                            context.seq_length, size(map, "vocab") / 1000, method);
    cell.digits = 1;
    cell.relative = true;
    if (method != "base" && method != "redis") {
      cell.note = "not modelled: no such method";
      cells.push_back(cell);
      continue;
    }
    run.model = model_of(map, context.seq_length, value.where());
    run.hardware = hardware;
    run.layers = layers_of(run.model.num_layers, size(map, "layers_last_stage"), run.devices);
    run.setting.state.gradients_in_fp32 = false;
    const auto forward = microseconds(map, "F_us_per_stage", run.devices);
    const auto backward = microseconds(map, "B_us_per_stage", run.devices);
    for (size_t stage = 0; stage < forward.size(); ++stage) {
      run.measured.push_back({forward[stage], backward[stage]});
    }
    cell.simulated = iteration_seconds(run).value() * 1e3;
    cell.must_agree = true;
    cell.worst = 0.01;
    cells.push_back(cell);
  }
}

}  // namespace pipesim
