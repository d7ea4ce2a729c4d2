// How long schedules take to plan, and search to find the best under memory limits.
//
// Plan/NAME/p/m plans one program; items are passes. Offload/NAME/p/m/v plans which activations of
// one wait on the host: all may go, copies each way take a fifth of a stage's passes, and two
// devices share a link; items are activations. Search/p/m is a frontier of 20 limits as
// `pipesim search --pareto` makes it, on as many threads as the machine has.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "bench/problems.h"
#include "sim/execution/with_offload.h"
#include "sim/planning/schedule.h"
#include "sim/read/scenario.h"
#include "sim/search/search.h"

namespace pipesim {
namespace {

void plan(benchmark::State& state, const Schedule& schedule) {
  const Problem problem = bench::problem_of(schedule, static_cast<int>(state.range(0)),
                                            static_cast<int>(state.range(1)));
  if (const auto refusal = schedule.refusal(problem)) {
    state.SkipWithError(refusal->reason.c_str());
    return;
  }
  std::int64_t passes = 0;
  for (auto _ : state) {
    const Program program = schedule.plan(problem);
    passes = 0;
    for (int device = 0; device < problem.shape.devices; ++device) {
      passes += static_cast<std::int64_t>(program.passes(device).size());
    }
    benchmark::DoNotOptimize(passes);
  }
  state.SetItemsProcessed(state.iterations() * passes);
}

void offload(benchmark::State& state, const Schedule& schedule) {
  const auto chunks = static_cast<int>(state.range(2));
  Problem problem = bench::problem_of(schedule, static_cast<int>(state.range(0)),
                                      static_cast<int>(state.range(1)), chunks);
  for (StageCost& cost : problem.stages) {
    cost.copy_out = cost.copy_in =
        0.2 * (cost.forward + cost.backward_input + cost.backward_weight);
  }
  problem.devices_per_host_link = 2;
  problem.copy_alone_factor = 0.7;
  const Program program = schedule.plan(problem);
  for (auto _ : state) benchmark::DoNotOptimize(with_offload(program, problem, chunks));
  state.SetItemsProcessed(state.iterations() * problem.shape.devices * chunks *
                          problem.shape.units());
}

void search(benchmark::State& state) {
  const Scenario scenario =
      read_scenario(YamlSource("bench", fmt::format(R"(
schedule: 1f1b
parallel: {{pipeline_model_parallel_size: {}}}
batch: {{num_microbatches: {}}}
cost: {{kind: given, per: device, forward: 18.522 ms, backward_input: 18.086 ms,
       backward_weight: 9.337 ms, transfer: 0.601 ms}}
memory: {{kind: given, per: device, activation: 3.7 GiB, weight_stash: 1.6 GiB}}
)",
                                                    state.range(0), state.range(1))));
  SearchOptions options;
  options.refinement.effort = kFrontierEffort;
  for (auto _ : state) {
    benchmark::DoNotOptimize(Search(scenario, options).frontier(20));
  }
}

}  // namespace
}  // namespace pipesim

int main(int argc, char** argv) {
  using namespace pipesim;
  for (const Schedule* schedule : schedules()) {
    benchmark::RegisterBenchmark(("Plan/" + title_of(*schedule)).c_str(),
                                 [schedule](benchmark::State& state) { plan(state, *schedule); })
        ->Args({32, 256})
        ->Args({64, 512})
        ->Unit(benchmark::kMillisecond);
  }
  for (const char* name : {"interleaved-1f1b", "gis-h"}) {
    benchmark::RegisterBenchmark(
        (std::string("Offload/") + name).c_str(),
        [name](benchmark::State& state) { offload(state, *find_schedule(name)); })
        ->Args({32, 256, 4})
        ->Args({64, 512, 4})
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RegisterBenchmark("Search", search)
      ->Args({16, 128})
      ->Args({32, 256})
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
