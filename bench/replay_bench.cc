// The replay engine and the way to it. A task is a compute pass or a transfer; items are tasks.
//
// Replay/* evaluates a graph that stands ready. MemoryPass/* reads and writes the same arrays once,
// without the dependencies: what the machine's memory allows, and so the base of the ratio.
#include <algorithm>
#include <benchmark/benchmark.h>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "bench/problems.h"
#include "sim/case/make_case.h"
#include "sim/engine/engine.h"
#include "sim/engine/jitter.h"
#include "sim/engine/lanes.h"
#include "sim/engine/replay_program.h"
#include "sim/execution/evaluate.h"
#include "sim/graph/build.h"
#include "sim/metrics/analyze.h"
#include "sim/pipeline/unequal_units.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

using bench::problem_of;

const Schedule& one_f_one_b() {
  const Schedule* schedule = find_schedule("1f1b");
  if (schedule == nullptr) throw std::runtime_error("1f1b is not registered");
  return *schedule;
}

struct Case {
  Problem problem;
  std::shared_ptr<const Program> program;
  TaskGraph graph;
};

Problem asked_problem(const benchmark::State& state) {
  return problem_of(one_f_one_b(), static_cast<int>(state.range(0)),
                    static_cast<int>(state.range(1)));
}

Case make_case(const benchmark::State& state) {
  const Problem problem = asked_problem(state);
  auto program = std::make_shared<const Program>(one_f_one_b().plan(problem));
  TaskGraph graph = build_task_graph(program, problem);
  return {problem, program, std::move(graph)};
}

void count_tasks(benchmark::State& state, size_t tasks) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(tasks));
  state.counters["tasks"] = static_cast<double>(tasks);
}

void Replay(benchmark::State& state) {
  const Case at = make_case(state);
  const auto engine = make_replay_engine();
  size_t timeline_bytes = 0;
  // The first touch of fresh memory is the machine's business, not the engine's.
  benchmark::DoNotOptimize(engine->run(at.graph, {}, {}).end.data());
  for (auto _ : state) {
    const Timeline timeline = engine->run(at.graph, {}, {});
    timeline_bytes = (timeline.start.capacity() + timeline.end.capacity()) * sizeof(double);
    benchmark::DoNotOptimize(timeline.end.data());
  }
  count_tasks(state, at.graph.size());
  const size_t resident =
      at.graph.resident_bytes() + timeline_bytes + at.program->size() * sizeof(Pass);
  state.counters["bytes_per_task"] =
      static_cast<double>(resident) / static_cast<double>(at.graph.size());
}

// Every microbatch costs something else.
Problem unequal(Problem problem) {
  std::vector<UnitKind> kinds;
  std::vector<std::uint32_t> numbers;
  for (int unit = 0; unit < problem.shape.units(); ++unit) {
    UnitKind kind;
    for (const StageCost& stage : problem.stages) {
      kind.stages.push_back(scaled(stage, 1 + 0.001 * (unit * 7919 % 1000)));
    }
    kinds.push_back(std::move(kind));
    numbers.push_back(static_cast<std::uint32_t>(unit));
  }
  set_kinds(problem, std::move(kinds), std::move(numbers));
  return problem;
}

void ReplayUnequal(benchmark::State& state) {
  const Problem problem = unequal(asked_problem(state));
  const auto program = std::make_shared<const Program>(one_f_one_b().plan(problem));
  const TaskGraph graph = build_task_graph(program, problem);
  const auto engine = make_replay_engine();
  benchmark::DoNotOptimize(engine->run(graph, {}, {}).end.data());
  for (auto _ : state) benchmark::DoNotOptimize(engine->run(graph, {}, {}).end.data());
  count_tasks(state, graph.size());
}

// Costs by the last argument, each stage and kind of pass its own, from a graph with their numbers.
// Items are tasks of all of them.
void Ensemble(benchmark::State& state) {
  const Case at = make_case(state);
  const auto lanes = static_cast<size_t>(state.range(2));
  std::vector<std::vector<double>> seconds(lanes);
  for (size_t lane = 0; lane < lanes; ++lane) {
    double factor = 1 + 0.01 * static_cast<double>(lane);
    for (const TaskClass& of : at.graph.classes()) {
      seconds[lane].push_back(of.seconds.value() * factor);
      factor += 0.0001;
    }
  }
  for (auto _ : state) {
    const auto peaks = peaks_in_order(at.graph, at.graph.classes());
    for (const RunTimes& times : replay_lanes(at.graph, seconds)) {
      benchmark::DoNotOptimize(numbers_of(at.graph.size(), times, peaks).iteration);
    }
  }
  count_tasks(state, at.graph.size() * lanes);
}

// Runs whose every pass has a factor of its own, as many as the last argument says, from a graph
// that stands to their numbers.
void JitterEnsemble(benchmark::State& state) {
  const Case at = make_case(state);
  const auto runs = static_cast<size_t>(state.range(2));
  for (auto _ : state) {
    const auto peaks = peaks_in_order(at.graph, at.graph.classes());
    for (const RunTimes& times : replay_jittered(at.graph, 0.05, 1, runs)) {
      benchmark::DoNotOptimize(numbers_of(at.graph.size(), times, peaks).iteration);
    }
  }
  count_tasks(state, at.graph.size() * runs);
}

// The draws of as many runs alone.
void JitterDraws(benchmark::State& state) {
  const Case at = make_case(state);
  std::vector<double> factors(at.program->size());
  for (auto _ : state) {
    for (int run = 0; run < state.range(2); ++run) {
      Jitter(0.05, static_cast<std::uint64_t>(run)).draw(factors.size(), factors.data(), 1);
      benchmark::DoNotOptimize(factors.data());
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(2) *
                          static_cast<std::int64_t>(factors.size()));
}

// One pass over what Replay reads (classes, rows, edges) and writes (a fresh start and end), in the
// same order and with the same allocation, but with no task waiting for another.
void MemoryPass(benchmark::State& state) {
  const Case at = make_case(state);
  const auto class_of = at.graph.class_of();
  const auto rows = at.graph.row_starts();
  const auto edges = at.graph.edges();
  for (auto _ : state) {
    Timeline timeline;
    timeline.start.resize(at.graph.size());
    timeline.end.resize(at.graph.size());
    std::uint32_t sum = 0;
    for (size_t task = 0; task < class_of.size(); ++task) {
      for (std::uint32_t e = rows[task]; e < rows[task + 1]; ++e) sum += edges[e];
      timeline.start[task] = sum;
      timeline.end[task] = class_of[task];
    }
    benchmark::DoNotOptimize(timeline.start.data());
    benchmark::DoNotOptimize(timeline.end.data());
  }
  count_tasks(state, at.graph.size());
}

void Plan(benchmark::State& state) {
  const Problem problem =
      problem_of(one_f_one_b(), static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  size_t passes = 0;
  for (auto _ : state) {
    const Program program = one_f_one_b().plan(problem);
    passes = program.size();
    benchmark::DoNotOptimize(passes);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(passes));
}

void Evaluate(benchmark::State& state) {
  const Case at = make_case(state);
  for (auto _ : state) benchmark::DoNotOptimize(evaluate(*at.program, at.problem).makespan);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(at.program->size()));
}

void build(benchmark::State& state, const Problem& problem) {
  const auto program = std::make_shared<const Program>(one_f_one_b().plan(problem));
  size_t tasks = 0;
  for (auto _ : state) {
    const TaskGraph graph = build_task_graph(program, problem);
    tasks = graph.size();
    benchmark::DoNotOptimize(graph.edges().data());
  }
  count_tasks(state, tasks);
}
void Build(benchmark::State& state) { build(state, asked_problem(state)); }
void BuildUnequal(benchmark::State& state) { build(state, unequal(asked_problem(state))); }

// Everything from a problem to the report.
void PlanBuildReplayMetrics(benchmark::State& state) {
  const Problem problem = asked_problem(state);
  const auto engine = make_replay_engine();
  size_t tasks = 0;
  for (auto _ : state) {
    const auto program = std::make_shared<const Program>(one_f_one_b().plan(problem));
    const TaskGraph graph = build_task_graph(program, problem);
    const Timeline timeline = engine->run(graph, {}, {});
    tasks = graph.size();
    benchmark::DoNotOptimize(analyze(graph, timeline).iteration);
  }
  count_tasks(state, tasks);
}

// The same to sums alone, without graph and timeline.
void plan_run_numbers(benchmark::State& state, const Problem& problem) {
  std::vector<int> ranks(problem.shape.devices);
  std::iota(ranks.begin(), ranks.end(), 0);
  size_t tasks = 0;
  for (auto _ : state) {
    const auto program = std::make_shared<const Program>(one_f_one_b().plan(problem));
    const ProgramRun run = replay_program(program, problem, {ranks}, {});
    tasks = run.tasks;
    benchmark::DoNotOptimize(numbers_of(run.tasks, run.times, run.peaks).iteration);
  }
  count_tasks(state, tasks);
}
void PlanRunNumbers(benchmark::State& state) { plan_run_numbers(state, asked_problem(state)); }
void PlanRunNumbersUnequal(benchmark::State& state) {
  plan_run_numbers(state, unequal(asked_problem(state)));
}

void Metrics(benchmark::State& state) {
  const Case at = make_case(state);
  const Timeline timeline = make_replay_engine()->run(at.graph, {}, {});
  for (auto _ : state) benchmark::DoNotOptimize(analyze(at.graph, timeline).iteration);
  count_tasks(state, at.graph.size());
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"p", "m"})->Args({64, 1024})->Args({1024, 8192})->Unit(benchmark::kMillisecond);
}

void one_size(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"p", "m"})->Args({64, 512})->Unit(benchmark::kMillisecond);
}

void lanes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"p", "m", "lanes"})->Unit(benchmark::kMillisecond);
  for (const int lanes : {1, 8, 64}) {
    bench->Args({8, 64, lanes})->Args({64, 512, lanes})->Args({64, 1024, lanes});
  }
}

BENCHMARK(Replay)->Apply(sizes)->Args({8, 64});
BENCHMARK(ReplayUnequal)->ArgNames({"p", "m"})->Args({64, 1024})->Unit(benchmark::kMillisecond);
BENCHMARK(Ensemble)->Apply(lanes);
BENCHMARK(JitterEnsemble)->Apply(lanes);
BENCHMARK(JitterDraws)->Apply(lanes);
BENCHMARK(MemoryPass)->Apply(sizes);
BENCHMARK(Plan)->Apply(one_size);
BENCHMARK(Build)->Apply(one_size);
BENCHMARK(BuildUnequal)->Apply(one_size);
BENCHMARK(Evaluate)->Apply(one_size);
BENCHMARK(Metrics)->Apply(one_size);
BENCHMARK(PlanBuildReplayMetrics)->Apply(one_size);
BENCHMARK(PlanRunNumbers)->Apply(one_size);
BENCHMARK(PlanRunNumbersUnequal)->Apply(one_size);

}  // namespace
}  // namespace pipesim
