#include "sim/case/simulate.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "models/layer_work.h"
#include "models/stage_cost.h"
#include "sim/case/problem.h"
#include "sim/case/roofline.h"
#include "sim/engine/engine.h"
#include "sim/engine/jitter.h"
#include "sim/engine/simgrid.h"
#include "sim/metrics/analyze.h"
#include "sim/planning/schedule.h"
#include "sim/scenario/modelled.h"

namespace pipesim {
namespace {

// The jitter that turns a run with shared links into an ensemble when the scenario names none.
constexpr double kContentionJitter = 1e-3;
constexpr double kSteadyTolerance = 1e-9;
constexpr int kMaxIterations = 64;

class Stopwatch {
 public:
  // Seconds since the last call, or since the start.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

double link_factor(const Scenario& scenario, int from, int to) {
  double factor = 1;
  for (const DegradedLink& link : scenario.perturb.links) {
    if (link.from == from && link.to == to) factor *= link.factor;
  }
  return factor;
}

// Only the bytes' time is spent on a way that others share, or that is degraded.
MessageCost modelled_message(const Scenario& scenario, const ScheduleChoice& choice,
                             const Problem& problem, std::pair<int, int> stages, double factor) {
  const auto [from, to] = stages;
  const Seconds whole = problem.stage(std::min(from, to)).transfer;
  const Placement& place = problem.placement;
  const Seconds latency =
      message_latency(scenario.modelled->model, cost_setting_of(scenario, choice),
                      *scenario.hardware, place.device(from), place.device(to));
  return {latency + factor * (whole - latency), latency};
}

// Under all-reduce, gradients come before the norm that joins all devices.
void add_closing(const Scenario& scenario, const ScheduleChoice& choice, BuildOptions& options) {
  for (const StepCost& step : closing_costs(scenario, choice)) {
    // What overlaps the passes is taken from the gradients first.
    const Seconds gradients = std::max(Seconds(0), step.reduce - step.hidden);
    options.gradients_of_device.push_back(gradients);
    options.optimizer_of_device.push_back(step.total() - gradients - step.norm);
    options.collective = std::max(options.collective, step.norm);
  }
}

BuildOptions build_options(const Scenario& scenario, const ScheduleChoice& choice,
                           const Problem& problem, int iterations) {
  BuildOptions options;
  options.iterations = iterations;
  options.sync = scenario.sync;
  options.blocking = blocking_calls(scenario, choice);
  if (scenario.engine == EngineKind::kSimGrid) {
    options.contending_copies = host_way(scenario, choice).duplex;
  }
  options.collective = scenario.cost.collective;
  options.optimizer = scenario.cost.optimizer;
  if (scenario.roofline) add_closing(scenario, choice, options);
  options.message = [&scenario, &choice, &problem](int from, int to, int rank_from, int rank_to) {
    const double factor = link_factor(scenario, rank_from, rank_to);
    if (scenario.roofline) return modelled_message(scenario, choice, problem, {from, to}, factor);
    if (!scenario.cost.message) {
      // On a cluster a message of a given time fills its way for that long; without one it has no
      // way to share, only time that passes.
      const Seconds seconds = factor * problem.stage(std::min(from, to)).transfer;
      return MessageCost{seconds, scenario.cluster ? Seconds(0) : seconds};
    }
    const Route way = route(*scenario.cluster, rank_from, rank_to);
    const Bytes message = *scenario.cost.message / problem.shape.splits;
    return MessageCost{way.latency + factor * (message / way.bandwidth), way.latency};
  };
  const bool timed = scenario.gpu == GpuModel::kHost;
  for (const SpeedChange& change : scenario.perturb.stragglers) {
    if (timed) break;  // the SimGrid host slows down by itself
    const auto ranks = static_cast<size_t>(scenario.parallel.pipeline) *
                       static_cast<size_t>(scenario.parallel.pipelines);
    options.slowdown_of_rank.resize(ranks, 1.0);
    options.slowdown_of_rank[change.rank] /= change.factor;
  }
  return options;
}

std::vector<std::vector<int>> ranks_of(const Scenario& scenario) {
  std::vector<std::vector<int>> ranks(scenario.parallel.pipelines);
  for (int pipeline = 0; pipeline < scenario.parallel.pipelines; ++pipeline) {
    for (int device = 0; device < scenario.parallel.pipeline; ++device) {
      ranks[pipeline].push_back(rank_of(scenario, pipeline, device));
    }
  }
  return ranks;
}

Report run_ensemble(const Scenario& scenario, const Engine& engine, const Cluster& cluster,
                    double jitter, Simulation& simulation, Stopwatch& watch) {
  const Perturbation& perturb = scenario.perturb;
  std::vector<Report> reports;
  // A few at a time: durations and timelines of one run are three numbers per task.
  constexpr int kAtOnce = 4;
  for (int first = 0; first < perturb.runs; first += kAtOnce) {
    std::vector<std::vector<double>> seconds;
    for (int run = first; run < std::min(first + kAtOnce, perturb.runs); ++run) {
      seconds.push_back(
          jittered(*simulation.graph, jitter, perturb.seed + static_cast<std::uint64_t>(run)));
    }
    auto timelines = engine.run_all(*simulation.graph, cluster, seconds);
    simulation.seconds.run += watch.lap();
    for (const Timeline& timeline : timelines) {
      reports.push_back(analyze(*simulation.graph, timeline));
    }
    if (first == 0) simulation.timeline = std::move(timelines.front());
    simulation.seconds.metrics += watch.lap();
  }
  return ensemble_of(reports, perturb.seed, jitter);
}

// Model FLOPs count all of attention, as Megatron-LM does, and nothing that is run again.
void add_utilization(const Scenario& scenario, const ScheduleChoice& choice, Throughput& rate) {
  if (!scenario.modelled || !scenario.hardware) return;
  const LayerContext context = context_of(*scenario.modelled, choice);
  const Flops flops = model_flops(scenario.modelled->model, context.seq_length, false);
  const FlopsPerSecond peak = scenario.hardware->gpu.peak[static_cast<size_t>(context.precision)];
  const double used = rate.samples_per_second_per_gpu * flops.value();
  rate.model_tflops_per_gpu = used / 1e12;
  rate.mfu = used / peak.value();
  if (context.recompute != RecomputeGranularity::kNone &&
      context.recompute != RecomputeGranularity::kFull) {
    return;
  }
  const double again =
      static_cast<double>(recompute_chunks_of(choice)) / std::max(1, chunks_of(choice));
  rate.hfu = *rate.mfu * (1 + again / 3);  // a forward of three
}

std::optional<Throughput> throughput_of(const Scenario& scenario, const ScheduleChoice& choice,
                                        const Report& report) {
  if (!scenario.batch.micro_batch_size) return std::nullopt;
  const double samples = static_cast<double>(scenario.batch.microbatches) *
                         *scenario.batch.micro_batch_size * scenario.parallel.data;
  const double gpus = static_cast<double>(scenario.parallel.pipeline) * scenario.parallel.tensor *
                      scenario.parallel.context * scenario.parallel.data;
  const double rate = samples / report.iteration.value();
  Throughput throughput{rate, rate / gpus};
  add_utilization(scenario, choice, throughput);
  return throughput;
}

// What devices hold beside activations; replicas hold the same.
void add_memory(const Scenario& scenario, const ScheduleChoice& choice, Report& report) {
  if (!scenario.modelled) return;
  const MemoryEstimate memory = memory_of(scenario, choice);
  for (DeviceReport& device : report.devices) {
    device.memory = memory.devices[device.device % scenario.parallel.pipeline];
    report.peak_memory = std::max(report.peak_memory.value_or(Bytes(0)), *device.peak_memory());
  }
}

}  // namespace

std::unique_ptr<Engine> make_engine(const Scenario& scenario, int processes) {
  if (scenario.engine == EngineKind::kReplay) return make_replay_engine();
  SimGridOptions options;
  options.gpu = scenario.gpu;
  if (scenario.gpu == GpuModel::kHost) options.speed_profile = scenario.perturb.stragglers;
  options.processes = processes;
  return make_simgrid_engine(options);
}

std::optional<CallGroups> blocking_calls(const Scenario& scenario, const ScheduleChoice& choice) {
  if (scenario.transfers == Transfers::kOverlapped) return std::nullopt;
  return choice.program ? CallGroups::kEveryPass : find_schedule(choice.name)->calls;
}

namespace {

Simulation simulate_once(const Scenario& scenario, const ScheduleChoice& choice,
                         const SimulateOptions& options) {
  Stopwatch watch;
  Simulation simulation;
  simulation.problem = make_problem(scenario, choice);
  simulation.program = make_program(choice, simulation.problem);
  simulation.seconds.plan = watch.lap();
  std::unique_ptr<Engine> own;
  if (options.engine == nullptr) {
    own =
        make_engine(scenario, static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  }
  const Engine& engine = own ? *own : *options.engine;
  Cluster cluster =
      scenario.roofline ? cluster_of_positions(scenario) : scenario.cluster.value_or(Cluster{});
  cluster.host = host_way(scenario, choice);
  const auto ranks = ranks_of(scenario);
  const bool overlap = scenario.sync == OptimizerSync::kPostValidation;
  for (int iterations = overlap ? 4 : 1;; iterations *= 2) {
    simulation.graph = std::make_unique<TaskGraph>(
        build_task_graph(simulation.program, simulation.problem, ranks,
                         build_options(scenario, choice, simulation.problem, iterations)));
    simulation.seconds.build += watch.lap();
    simulation.timeline = engine.run(*simulation.graph, cluster, {});
    simulation.seconds.run += watch.lap();
    if (iterations == kMaxIterations ||
        is_steady(*simulation.graph, simulation.timeline, kSteadyTolerance)) {
      break;
    }
  }
  const double jitter =
      scenario.perturb.jitter.value_or(simulation.timeline.shared_links ? kContentionJitter : 0);
  simulation.report = jitter > 0
                          ? run_ensemble(scenario, engine, cluster, jitter, simulation, watch)
                          : analyze(*simulation.graph, simulation.timeline);
  add_memory(scenario, choice, simulation.report);
  simulation.throughput = throughput_of(scenario, choice, simulation.report);
  simulation.host = host_memory_of(scenario, *simulation.graph, simulation.timeline);
  if (scenario.modelled && scenario.modelled->capacity) {
    simulation.fit = Fit{*simulation.report.peak_memory <= *scenario.modelled->capacity};
    if (!simulation.fit->fits && options.look_for_change) {
      simulation.fit->change = change_that_fits(scenario, choice);
    }
  }
  simulation.seconds.metrics += watch.lap();
  return simulation;
}

// Of the device that offloads most.
int chunks_that_leave(const Program& program) {
  std::set<std::pair<std::uint32_t, std::uint16_t>> leave;
  for (const LinkCopies& link : program.copies()->links) {
    for (const Copy& copy : link.out) leave.emplace(copy.device, copy.chunk);
  }
  std::vector<int> counts(program.placement().devices(), 0);
  for (const auto& [device, chunk] : leave) ++counts[device];
  return std::ranges::max(counts);
}

// The same plan as a schedule and what of it may leave: one that offloads by itself names no
// microbatches.
ScheduleChoice with_scope(ScheduleChoice choice, const Program& program) {
  if (offload_chunks_of(choice) > 0) return choice;
  choice.name = find_schedule(choice.name)->without_offload;
  choice.options.erase("offload_chunks");
  if (!choice.offload) choice.offload.emplace().where = choice.where;
  choice.offload->chunks = chunks_that_leave(program);
  return choice;
}

// What fits a full host: for so many chunks and for fewer, the most microbatches are sought by
// halving; of the plans that are tried the one whose devices keep least, of equal ones the first.
// Nothing where none keeps less than without offload.
void find_nearest(const Scenario& scenario, const ScheduleChoice& asked, SimulateOptions options,
                  Simulation& simulation) {
  constexpr int kMostInTurn = 8;
  options.look_for_change = false;
  HostMemory& memory = *simulation.host;
  ScheduleChoice choice = with_scope(asked, *simulation.program);
  OffloadedMicrobatches& some = choice.offload->microbatches;
  const OffloadedMicrobatches named = some;
  const int all = static_cast<int>(numbers_of(named, scenario.batch.microbatches).size());
  ScheduleChoice kept = choice;
  kept.offload.reset();
  Bytes least = simulate_once(scenario, kept, options).report.peak_activation;
  const auto fits = [&](int count) {
    some = named;
    if (count < all) some.count = count;
    if (!some.listed.empty()) {
      some.listed = numbers_of(some, scenario.batch.microbatches);
      some.count.reset();
    }
    const Simulation tried = simulate_once(scenario, choice, options);
    if (!tried.host->fits()) return false;
    const Bytes peak = tried.report.peak_activation;
    if (peak >= least) return true;
    least = peak;
    memory.nearest = choice;
    memory.then = *tried.host->node;
    return true;
  };
  const int most = offload_chunks_of(choice);
  for (int chunks = most; chunks > 0; chunks = chunks > kMostInTurn ? chunks / 2 : chunks - 1) {
    if (chunks < most) {
      choice.offload->which.clear();
      choice.offload->chunks = chunks;
      if (fits(all)) return;  // fewer keep no less
    }
    for (int fit = 0, no_fit = all; no_fit - fit > 1;) {
      const int count = fit + (no_fit - fit) / 2;
      (fits(count) ? fit : no_fit) = count;
    }
  }
}

}  // namespace

Simulation simulate(const Scenario& scenario, const ScheduleChoice& choice,
                    const SimulateOptions& options) {
  Simulation simulation = simulate_once(scenario, choice, options);
  if (options.look_for_change && simulation.host && !simulation.host->fits()) {
    find_nearest(scenario, choice, options, simulation);
  }
  return simulation;
}

}  // namespace pipesim
