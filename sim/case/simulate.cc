#include "sim/case/simulate.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "sim/case/graph_options.h"
#include "sim/case/program.h"
#include "sim/case/ranks.h"
#include "sim/engine/jitter.h"
#include "sim/engine/simgrid.h"
#include "sim/metrics/analyze.h"

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

Cluster cluster_of(const Case& made) {
  const Scenario& scenario = *made.scenario;
  Cluster cluster =
      made.setting ? cluster_of_positions(scenario) : scenario.cluster.value_or(Cluster{});
  cluster.host = host_way(made);
  return cluster;
}

// What GPUs do by themselves, unless their passes are slowed down already (graph_options.cc).
std::span<const SpeedChange> speeds_of(const Scenario& scenario) {
  if (scenario.gpu == GpuModel::kTimer) return {};
  return scenario.perturb.stragglers;
}

// One case on its way through an engine.
class Run {
 public:
  Run(const Case& made, const Engine& engine, Reuse* reuse, IdleCauses causes)
      : made_(made), engine_(engine), reuse_(reuse), causes_(causes), cluster_(cluster_of(made)) {
    result_.program = make_program(made, reuse);
    result_.seconds.plan = watch_.lap();
  }

  Result result() {
    run_until_steady();
    const Perturbation& perturb = made_.scenario->perturb;
    const double jitter =
        perturb.jitter.value_or(result_.timeline.shared_links ? kContentionJitter : 0);
    result_.report = jitter > 0 ? run_ensemble(jitter) : analyzed(result_.timeline);
    add_memory();
    result_.throughput = throughput_of(made_, result_.report.iteration);
    result_.host = host_memory_of(*made_.scenario, *result_.graph, result_.timeline);
    result_.seconds.metrics += watch_.lap();
    return std::move(result_);
  }

 private:
  void run_until_steady() {
    const auto ranks = ranks_of(*made_.scenario);
    const bool overlap = made_.scenario->sync == OptimizerSync::kPostValidation;
    for (int iterations = overlap ? 4 : 1;; iterations *= 2) {
      const BuildOptions options = graph_options(made_, iterations);
      result_.graph.reset();
      result_.graph = reuse_ != nullptr
                          ? reuse_->graph(result_.program, made_.problem, ranks, options)
                          : std::make_shared<const TaskGraph>(
                                build_task_graph(result_.program, made_.problem, ranks, options));
      result_.seconds.build += watch_.lap();
      result_.timeline = engine_.run(*result_.graph, cluster_, {});
      result_.seconds.run += watch_.lap();
      if (iterations == kMaxIterations ||
          is_steady(*result_.graph, result_.timeline, kSteadyTolerance)) {
        return;
      }
    }
  }

  [[nodiscard]] Report analyzed(const Timeline& timeline) const {
    return analyze(*result_.graph, timeline, speeds_of(*made_.scenario), causes_);
  }

  Report run_ensemble(double jitter) {
    const Perturbation& perturb = made_.scenario->perturb;
    std::vector<Report> reports;
    // A few at a time: durations and timelines of one run are three numbers per task.
    constexpr int kAtOnce = 4;
    for (int first = 0; first < perturb.runs; first += kAtOnce) {
      std::vector<std::vector<double>> seconds;
      for (int run = first; run < std::min(first + kAtOnce, perturb.runs); ++run) {
        seconds.push_back(
            jittered(*result_.graph, jitter, perturb.seed + static_cast<std::uint64_t>(run)));
      }
      auto timelines = engine_.run_all(*result_.graph, cluster_, seconds);
      result_.seconds.run += watch_.lap();
      for (const Timeline& timeline : timelines) {
        reports.push_back(analyzed(timeline));
      }
      if (first == 0) result_.timeline = std::move(timelines.front());
      result_.seconds.metrics += watch_.lap();
    }
    return ensemble_of(reports, perturb.seed, jitter);
  }

  // What devices hold beside activations; replicas hold the same.
  void add_memory() {
    if (!made_.memory) return;
    Report& report = result_.report;
    for (DeviceReport& device : report.devices) {
      device.memory = made_.memory->devices[device.device % made_.scenario->parallel.pipeline];
      report.peak_memory = std::max(report.peak_memory.value_or(Bytes(0)), *device.peak_memory());
    }
    const auto& capacity = made_.scenario->modelled->capacity;
    if (capacity) result_.fits = *report.peak_memory <= *capacity;
  }

  const Case& made_;
  const Engine& engine_;
  Reuse* reuse_;
  IdleCauses causes_;
  Cluster cluster_;
  Stopwatch watch_;
  Result result_;
};

}  // namespace

std::unique_ptr<Engine> make_engine(const Scenario& scenario, int processes) {
  if (scenario.engine == EngineKind::kReplay) return make_replay_engine();
  SimGridOptions options;
  options.gpu = scenario.gpu;
  const auto speeds = speeds_of(scenario);
  options.speed_profile.assign(speeds.begin(), speeds.end());
  options.processes = processes;
  return make_simgrid_engine(options);
}

Result simulate(const Case& made, const Engine* engine, Reuse* reuse, IdleCauses causes) {
  if (engine != nullptr) return Run(made, *engine, reuse, causes).result();
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return Run(made, *make_engine(*made.scenario, cores), reuse, causes).result();
}

}  // namespace pipesim
