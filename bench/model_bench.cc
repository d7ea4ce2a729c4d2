// From a model, sizes and hardware to the seconds of all stages and of the step, as a sweep does it
// for every point: by models/ alone, and from a scenario that has been read. The counter says how
// often one such computation allocates.
#include <benchmark/benchmark.h>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "models/stage_cost.h"
#include "models/step_cost.h"
#include "sim/core/data_folder.h"
#include "sim/prepare/prepare.h"
#include "sim/read/hardware.h"
#include "sim/read/model.h"
#include "sim/read/scenario.h"

namespace {
long allocations = 0;
}

// Not inlined: gcc would take the pairs for mismatched.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace pipesim {
namespace {

void count_allocations(benchmark::State& state, long before) {
  const long each = (allocations - before) / static_cast<long>(state.iterations());
  state.counters["allocations"] = static_cast<double>(each);
}

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
  const long before = allocations;
  for (auto unused : state) {
    const LayerCosts costs = layer_costs(model, setting, hardware);
    fill_stage_seconds(model, setting, hardware, layout, place, costs, stages);
    benchmark::DoNotOptimize(
        step_cost(model, setting, hardware, layout, place, costs, 0).total().value());
    benchmark::DoNotOptimize(stages.data());
  }
  count_allocations(state, before);
}
BENCHMARK_CAPTURE(stage_costs, llama3_70b, "llama3-70b")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(stage_costs, mixtral, "mixtral-8x7b")->Unit(benchmark::kMicrosecond);

Scenario scenario_of(const std::string& model, const std::string& schedule, int devices) {
  return read_scenario(YamlSource(
      "bench", "model: " + model + "\ncluster: dgx-h100\nschedule: " + schedule +
                   "\nparallel: {pipeline_model_parallel_size: " + std::to_string(devices) +
                   ", tensor_model_parallel_size: 8, sequence_parallel: true}\n"
                   "batch: {num_microbatches: 64, micro_batch_size: 1, seq_length: 4096}\n"));
}

// make_problem: seconds and bytes of every stage, memory and messages included.
void problem(benchmark::State& state, const char* schedule) {
  const Scenario scenario = scenario_of("llama3-70b", schedule, static_cast<int>(state.range(0)));
  const long before = allocations;
  for (auto unused : state) {
    const Problem made = prepare_first(scenario).problem;
    benchmark::DoNotOptimize(made.stages.data());
  }
  count_allocations(state, before);
}
BENCHMARK_CAPTURE(problem, one_f_one_b, "1f1b")->Arg(4)->Arg(16)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(problem, interleaved,
                  "{name: interleaved-1f1b, virtual_pipeline_model_parallel_size: 5}")
    ->Arg(16)
    ->Unit(benchmark::kMicrosecond);

// The step that closes an iteration, on every device.
void closing(benchmark::State& state) {
  const Scenario scenario = scenario_of("llama3-70b", "1f1b", static_cast<int>(state.range(0)));
  const long before = allocations;
  for (auto unused : state) {
    benchmark::DoNotOptimize(prepare_first(scenario).closing.data());
  }
  count_allocations(state, before);
}
BENCHMARK(closing)->Arg(4)->Arg(16)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace pipesim
