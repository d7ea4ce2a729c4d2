// Measured memory per GPU: Tables 4, 6 and 11.
#include <fmt/format.h>

#include "validate/papers/paper_keys.h"
#include "validate/papers/peak_memory.h"
#include "validate/papers/simulate_cell.h"
#include "validate/papers/zero_bubble/row.h"
#include "validate/papers/zero_bubble/zero_bubble.h"

namespace pipesim::zero_bubble {
namespace {

MeasuredRun measured_run(const Row& row, const std::optional<DeviceSeconds>& seconds) {
  const Run of = run_of(row);
  MeasuredRun run;
  run.model = of.model;
  run.context = of.context;
  run.state = of.state;
  run.split = of.split;
  run.schedule = of.schedule;
  run.devices = row.devices;
  run.chunks = of.chunks;
  run.microbatches = of.microbatches;
  run.seconds = seconds;
  return run;
}

}  // namespace

void compare_memory(std::vector<Cell>& cells, YamlMap& root, const ProfileOf& profile_of) {
  const auto models = read_models(root);
  for (const auto& [key, table] : {std::pair{"table4_measured", "Table 4 memory"},
                                   std::pair{"table6_measured_same_memory", "Table 6 memory"},
                                   std::pair{"table11_same_memory", "Table 11 memory"}}) {
    const auto rows = root.find(key);
    if (!rows) continue;
    for (const YamlValue& each : rows->list()) {
      YamlMap map(each);
      (void)map.require("schedule", "as the paper calls it");
      Row row = read_row(each, map, models);
      const auto gigabytes = map.find("mem_gb");
      finish_row(map, {"samples_per_gpu_s"});
      if (!gigabytes || gigabytes->is_null()) continue;
      const bool same_memory = key == std::string("table11_same_memory");
      Cell cell;
      if (same_memory) cell.note = correct_misprint(row, models);
      cell.table = table;
      cell.cell = row.text() + ", GiB";
      cell.published = gigabytes->number(0, 1e6);
      cell.digits = 1;
      cell.relative = true;
      const auto seconds = profile_of(row.model, row.devices, row.microbatches);
      if (!seconds) cell.note += "planned with passes as long as their FLOPs";
      simulate(cell, [&] { return allocated_at_peak(measured_run(row, seconds)) / kGiB; });
      if (!same_memory) {
        cell.must_agree = cell.simulated.has_value();
        cell.worst = 0.10;
        cell.median = 0.06;
      }
      cells.push_back(cell);
    }
  }
}

}  // namespace pipesim::zero_bubble
