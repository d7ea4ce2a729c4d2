#include "sim/case/simulate.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "sim/case/graph_options.h"
#include "sim/case/make_case.h"
#include "sim/case/program.h"
#include "sim/case/ranks.h"
#include "sim/engine/jitter.h"
#include "sim/engine/simgrid.h"
#include "sim/metrics/analyze.h"
#include "sim/scenario/draw_batch.h"

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
      : made_(made),
        engine_(engine),
        // What is kept knows one cost for all microbatches of a stage.
        reuse_(made.problem.kinds.empty() ? reuse : nullptr),
        causes_(causes),
        cluster_(cluster_of(made)) {
    result_.program = make_program(made, reuse_);
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

// The same case with the microbatches of another seed.
Case redrawn(const Case& made, std::uint64_t seed) {
  Scenario scenario = *made.scenario;
  draw_batch(scenario, seed);
  const auto shared = std::make_shared<const Scenario>(std::move(scenario));
  return make_case(outline_of(shared, made.choice), made.layout ? &*made.layout : nullptr);
}

// Of every device that of the draw in which it holds most.
void take_largest_peaks(Report& report, std::span<const Report> draws) {
  for (const Report& draw : draws) {
    for (size_t d = 0; d < report.devices.size(); ++d) {
      DeviceReport& device = report.devices[d];
      if (draw.devices[d].peak_activation <= device.peak_activation) continue;
      device.peak_activation = draw.devices[d].peak_activation;
      device.peak_pass = draw.devices[d].peak_pass;
      device.memory = draw.devices[d].memory;
    }
    report.peak_activation = std::max(report.peak_activation, draw.peak_activation);
    if (report.peak_memory) {
      report.peak_memory = std::max(*report.peak_memory, *draw.peak_memory);
    }
  }
}

// Over several draws of its microbatches the means and the largest peaks, all else that of the
// first.
Result result_of(const Case& made, const Engine& engine, Reuse* reuse, IdleCauses causes) {
  Result first = Run(made, engine, reuse, causes).result();
  const auto& unequal = made.scenario->batch.unequal;
  if (!unequal || unequal->draw.runs == 1) return first;
  std::vector<Report> reports{first.report};
  std::vector<Throughput> rates{first.throughput.value_or(Throughput{})};
  for (int run = 1; run < unequal->draw.runs; ++run) {
    const auto seed = unequal->draw.seed + static_cast<std::uint64_t>(run);
    const Result other = Run(redrawn(made, seed), engine, reuse, causes).result();
    reports.push_back(other.report);
    rates.push_back(other.throughput.value_or(Throughput{}));
    if (first.fits) *first.fits = *first.fits && *other.fits;
  }
  const double jitter = first.report.ensemble ? first.report.ensemble->jitter : 0;
  first.report = ensemble_of(reports, unequal->draw.seed, jitter);
  take_largest_peaks(first.report, reports);
  if (first.throughput) first.throughput = mean_of(rates);
  return first;
}

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
  if (engine != nullptr) return result_of(made, *engine, reuse, causes);
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return result_of(made, *make_engine(*made.scenario, cores), reuse, causes);
}

}  // namespace pipesim
