// From a model, sizes and hardware to the seconds of all stages and of the step, as a sweep does it
// for every point.
#include <benchmark/benchmark.h>
#include <vector>

#include "models/stage_cost.h"
#include "models/step_cost.h"
#include "sim/core/data_folder.h"
#include "sim/scenario/read_hardware.h"
#include "sim/scenario/read_model.h"

namespace pipesim {
namespace {

void stage_costs(benchmark::State& state, const char* name) {
  const Transformer model = find_model(name, {});
  const HardwareCatalog catalog = read_hardware_folder(data_folder("catalog"), {});
  const Hardware& hardware = catalog.clusters.front().hardware;
  CostSetting setting;
  setting.context.seq_length = 4096;
  setting.context.tensor = model.experts ? 1 : 8;
  setting.context.sequence_parallel = !model.experts;
  setting.state = {.data = 4, .distributed_optimizer = true};
  const Placement place = Placement::looped(4, 1);
  const Layout layout = even_layout(model, place, {});
  std::vector<StageCost> stages(4);
  for (auto unused : state) {
    const LayerCosts costs = layer_costs(model, setting, hardware);
    fill_stage_seconds(model, setting, hardware, layout, place, costs, stages);
    benchmark::DoNotOptimize(
        step_cost(model, setting, hardware, layout, place, costs, 0).total().value());
    benchmark::DoNotOptimize(stages.data());
  }
}
BENCHMARK_CAPTURE(stage_costs, llama3_70b, "llama3-70b")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(stage_costs, mixtral, "mixtral-8x7b")->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace pipesim
