// Speed of the SimGrid engine in tasks (compute passes and messages) per second, one run from the
// call to the timeline: copying the graph, building the platform, simulating, copying the result.
#include <benchmark/benchmark.h>
#include <memory>
#include <vector>

#include "bench/processor.h"
#include "models/cluster.h"
#include "sim/case/make_case.h"
#include "sim/engine/jitter.h"
#include "sim/engine/simgrid.h"
#include "sim/graph/build.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

struct Case {
  Cluster cluster;
  std::unique_ptr<TaskGraph> graph;
  std::vector<double> seconds;
};

// The noise on pass times of an ensemble.
constexpr double kNoise = 1e-3;

// `pipelines` 1F1B pipelines of a 10 ms forward; device d of each on node d, which has one card.
Case make_case(int devices, int microbatches, int pipelines, double message_seconds, double noise) {
  Case made;
  made.cluster.gpus_per_node = pipelines;
  made.cluster.nic_bandwidth = BytesPerSecond(50e9);
  made.cluster.nic_latency = Seconds(5e-6);
  const Schedule& schedule = *find_schedule("1f1b");
  Problem problem;
  problem.shape = {devices, 1, microbatches, 1};
  problem.placement = schedule.place(devices, 1);
  StageCost cost;
  cost.forward = Seconds(0.010);
  cost.backward_input = Seconds(0.012);
  cost.backward_weight = Seconds(0.008);
  problem.stages.assign(devices, cost);
  std::vector<std::vector<int>> ranks(pipelines);
  for (int rank = 0; rank < devices * pipelines; ++rank) {
    ranks[rank % pipelines].push_back(rank);
  }
  BuildOptions options;
  const Seconds latency = made.cluster.nic_latency;
  options.message = [message_seconds, latency](int, int, int, int, std::uint32_t) {
    return MessageCost{Seconds(message_seconds), latency};
  };
  made.graph = std::make_unique<TaskGraph>(
      build_task_graph(std::make_shared<Program>(schedule.plan(problem)), problem, ranks, options));
  if (noise > 0) made.seconds = jittered(*made.graph, noise, 1);
  return made;
}

// `tasks_per_cpu_s` counts all processes and is what to compare on a machine that does other work.
void run(benchmark::State& state, const Case& of, const SimGridOptions& options) {
  const double before = bench::processor_seconds();
  double shared = 0;
  {
    const auto engine = make_simgrid_engine(options);
    for (auto _ : state) {
      const Timeline timeline = engine->run(*of.graph, of.cluster, of.seconds);
      shared = timeline.shared_links ? 1 : 0;
    }
  }
  const auto tasks = static_cast<double>(of.graph->size());
  const auto runs = static_cast<double>(state.iterations());
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(of.graph->size()));
  state.counters["tasks"] = tasks;
  state.counters["tasks_per_cpu_s"] = tasks * runs / (bench::processor_seconds() - before);
  state.counters["shared"] = shared;
}

// One pipeline, whose messages never meet: replayed, or all the same by SimGrid; with noise no two
// devices act at the same instant, and SimGrid's clock stops more often.
void alone(benchmark::State& state, double noise, bool by_simgrid) {
  const Case of =
      make_case(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)), 1, 6e-4, noise);
  run(state, of, {.replay_undisturbed = !by_simgrid});
}
void shapes_alone(benchmark::internal::Benchmark* of) {
  for (const auto& shape : {std::pair(32, 256), std::pair(64, 512), std::pair(256, 1024)}) {
    of->Args({shape.first, shape.second});
  }
  of->UseRealTime()->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(alone, usual, 0, false)->Apply(shapes_alone);
BENCHMARK_CAPTURE(alone, by_simgrid, 0, true)->Apply(shapes_alone);
BENCHMARK_CAPTURE(alone, noise, kNoise, false)->Apply(shapes_alone);
BENCHMARK_CAPTURE(alone, noise_by_simgrid, kNoise, true)->Apply(shapes_alone);

// Eight pipelines through the one card of each node: with noise, as an ensemble runs them.
void contended(benchmark::State& state) {
  const Case of = make_case(16, static_cast<int>(state.range(0)), 8, 1e-3, kNoise);
  run(state, of, {});
}
BENCHMARK(contended)->Arg(64)->Arg(256)->Arg(1024)->Arg(2048)->UseRealTime()->Unit(
    benchmark::kMillisecond);

// GPUs that are hosts, with a tenth of them taken by each direction of messages that flow.
void gpu_hosts(benchmark::State& state) {
  Case of = make_case(32, 256, 1, 6e-4, 0);
  of.cluster.message_share = state.range(0) == 0 ? 0 : 0.1;
  run(state, of, {.gpu = GpuModel::kHost, .replay_undisturbed = false});
}
BENCHMARK(gpu_hosts)->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

// The cost of a run before its first task, which a search or a property test pays for each small
// case.
void smallest(benchmark::State& state) {
  const Case of = make_case(2, 1, 1, 6e-4, 0);
  run(state, of, {.replay_undisturbed = false});
}
BENCHMARK(smallest)->UseRealTime()->Unit(benchmark::kMillisecond);

// Sixteen runs of one contended graph, two at a time.
void ensemble(benchmark::State& state) {
  const Case of = make_case(16, 64, 8, 1e-3, kNoise);
  const auto engine = make_simgrid_engine({.processes = 2});
  std::vector<std::vector<double>> seconds;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    seconds.push_back(jittered(*of.graph, kNoise, seed));
  }
  for (auto _ : state) {
    const auto timelines = engine->run_all(*of.graph, of.cluster, seconds);
    benchmark::DoNotOptimize(timelines.data());
  }
  state.SetItemsProcessed(state.iterations() * 16 * static_cast<std::int64_t>(of.graph->size()));
}
BENCHMARK(ensemble)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pipesim
