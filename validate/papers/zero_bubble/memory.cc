// Measured memory per GPU: Tables 4, 6 and 11.
#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "sim/scenario/read_model.h"
#include "validate/papers/peak_memory.h"
#include "validate/papers/zero_bubble/zero_bubble.h"

namespace pipesim {
namespace {

struct Row {
  std::string model;
  std::string schedule;  // as the paper calls it
  int devices = 0;
  int microbatches = 0;
  int micro_batch = 0;
  double gigabytes = 0;
  Location where;
};

struct Name {
  const char* paper;
  const char* schedule;
};
constexpr std::array<Name, 5> kNames{{{"1F1B", "1f1b"},
                                      {"1F1B-I", "interleaved-1f1b"},
                                      {"ZB-1p", "zb-1p"},
                                      {"ZB-2p", "zb-2p"},
                                      {"ZB-V", "zb-v"}}};

// Micro batch sizes stand in the table of models where a row has none.
int micro_batch_of(const std::string& model, YamlMap& root) {
  const auto models = root.find("table3_models");
  if (!models) return 0;
  for (const YamlValue& each : models->list()) {
    YamlMap map(each);
    const bool found = map.require("model", "a name").text() == model;
    if (found) return static_cast<int>(map.require("b", "micro batch size").integer(1, 1 << 20));
  }
  return 0;
}

Row read_row(const YamlValue& value, YamlMap& root) {
  YamlMap map(value);
  Row row;
  row.where = value.where();
  row.model = map.require("model", "a model's name").text();
  row.schedule = map.require("schedule", "a schedule's name").text();
  const auto devices = map.find("p");
  row.devices =
      static_cast<int>((devices ? *devices : map.require("gpus", "devices")).integer(1, 1 << 16));
  row.microbatches = static_cast<int>(map.require("m", "microbatches").integer(1, 1 << 20));
  const auto batch = map.find("b");
  row.micro_batch =
      batch ? static_cast<int>(batch->integer(1, 1 << 20)) : micro_batch_of(row.model, root);
  if (row.micro_batch == 0) value.fail("no micro batch size 'b' here or in table3_models");
  row.gigabytes = map.require("mem_gb", "gigabytes").number(0, 1e6);
  return row;
}

// The settings of the authors' runs: fp16, so that gradients are 16 bits; attention that makes its
// scores, as their memory per layer (34h + 5as) has it; first and last stage with a layer less.
MeasuredRun run_of(const Row& row, const std::optional<DeviceSeconds>& seconds) {
  MeasuredRun run;
  std::string name = row.model;
  for (char& letter : name) letter = letter == 'B' ? 'b' : letter;
  run.model = find_model("zb-" + name, row.where);
  const bool halved = row.schedule.ends_with('*');  // the same samples in twice the microbatches
  const std::string called = row.schedule.substr(0, row.schedule.size() - (halved ? 1 : 0));
  const auto* const found =
      std::ranges::find_if(kNames, [&called](const Name& each) { return called == each.paper; });
  if (found == kNames.end()) throw InputError(row.where, "no schedule is called " + called);
  run.schedule = found->schedule;
  run.devices = row.devices;
  run.microbatches = halved ? 2 * row.microbatches : row.microbatches;
  run.split = {.count_embedding = true, .count_loss = true};
  if (run.schedule == "zb-v") run.chunks = 2;
  if (run.schedule == "interleaved-1f1b") run.chunks = (run.model.num_layers + 2) / row.devices;
  run.context.micro_batch_size = halved ? std::max(1, row.micro_batch / 2) : row.micro_batch;
  run.context.seq_length = run.model.max_position_embeddings;
  run.context.flash_attention = false;
  run.context.dropout = true;
  run.state.gradients_in_fp32 = false;
  run.seconds = seconds;
  return run;
}

}  // namespace

void compare_zero_bubble_memory(std::vector<Cell>& cells, YamlMap& root,
                                const ProfileOf& profile_of) {
  for (const auto& [key, table] : {std::pair{"table4_measured", "Table 4 memory"},
                                   std::pair{"table6_measured_same_memory", "Table 6 memory"},
                                   std::pair{"table11_same_memory", "Table 11 memory"}}) {
    const auto rows = root.find(key);
    if (!rows) continue;
    for (const YamlValue& each : rows->list()) {
      const Row row = read_row(each, root);
      Cell cell;
      cell.table = table;
      cell.cell = fmt::format("{} p={} m={} b={} {}, GiB", row.model, row.devices, row.microbatches,
                              row.micro_batch, row.schedule);
      cell.published = row.gigabytes;
      cell.digits = 1;
      cell.relative = true;
      try {
        const auto seconds = profile_of(row.model, row.devices, row.microbatches);
        if (!seconds) cell.note = "planned with passes as long as their FLOPs";
        cell.simulated = allocated_at_peak(run_of(row, seconds)) / kGiB;
      } catch (const InfeasibleError& error) {
        cell.note = std::string("not modelled: ") + error.what();
      }
      if (key != std::string("table11_same_memory")) {
        cell.must_agree = cell.simulated.has_value();
        cell.worst = 0.10;
        cell.median = 0.06;
      }
      cells.push_back(cell);
    }
  }
}

}  // namespace pipesim
