#include "sim/case/simulate.h"

#include <algorithm>
#include <chrono>

#include "sim/case/graph_options.h"
#include "sim/case/host_links.h"
#include "sim/case/program.h"
#include "sim/case/ranks.h"
#include "sim/core/error.h"
#include "sim/core/thread_team.h"
#include "sim/engine/jitter.h"
#include "sim/engine/lanes.h"
#include "sim/engine/replay_program.h"
#include "sim/engine/simgrid.h"
#include "sim/graph/build.h"
#include "sim/graph/renumber.h"
#include "sim/metrics/analyze.h"
#include "sim/metrics/steady_cycle.h"

namespace pipesim {
namespace {

// The jitter that turns a run with shared links into an ensemble where neither the scenario nor a
// calibration file names one.
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

// The GPUs' own changes of speed, unless their passes are slowed down already (graph_options.cc).
std::span<const SpeedChange> speeds_of(const Scenario& scenario) {
  if (scenario.gpu == GpuModel::kTimer) return {};
  return scenario.perturb.stragglers;
}

// One case on its way through an engine.
class Run {
 public:
  Run(const Case& made, const Engine& engine, Reuse* reuse, Detail detail)
      : made_(made),
        engine_(engine),
        // A kept graph has one cost for all microbatches of a stage.
        reuse_(made.problem.kinds.empty() ? reuse : nullptr),
        detail_(detail),
        cluster_(cluster_of(made)) {
    // A stream's program here is of one iteration, by whose shape the schedule refuses.
    result_.program = make_program(made, streams() ? nullptr : reuse_);
    slowed_ = beside_copies(made, *result_.program);
    result_.seconds.plan = watch_.lap();
    numbers_alone_ = detail == Detail::kNumbers && engine.name() == "replay" &&
                     made.sync != OptimizerSync::kPostValidation && !streams() &&
                     result_.program->memory_follows_order();
  }

  Result result() {
    if (numbers_alone_) return numbers();
    run_until_steady();
    const Perturbation& perturb = made_.scenario->perturb;
    const double jitter =
        perturb.jitter.value_or(result_.timeline.shared_links ? contention_jitter() : 0);
    result_.report = jitter > 0 ? run_ensemble(jitter) : analyzed(result_.timeline);
    return finished();
  }

  [[nodiscard]] bool needs_timeline() const { return !numbers_alone_; }
  [[nodiscard]] const Case& made() const { return made_; }
  [[nodiscard]] const std::shared_ptr<const Program>& program() const { return result_.program; }
  Result result_of(Report numbers) {
    result_.report = std::move(numbers);
    return finished();
  }

 private:
  Result finished() {
    add_memory();
    result_.host = host_memory_of(made_, *result_.program, result_.graph.get(), result_.timeline);
    result_.throughput = throughput_of(made_, *result_.program, result_.report.iteration);
    result_.seconds.metrics += watch_.lap();
    return std::move(result_);
  }

  [[nodiscard]] double contention_jitter() const {
    const auto& roofline = made_.scenario->roofline;
    if (!roofline || !roofline->calibration) return kContentionJitter;
    return roofline->calibration->jitter.value_or(kContentionJitter);
  }

  std::shared_ptr<const TaskGraph> graph(int iterations) {
    const auto ranks = ranks_of(*made_.scenario);
    const BuildOptions options = graph_options(made_, iterations);
    if (reuse_ != nullptr) return reuse_->graph(result_.program, problem(), ranks, options);
    return std::make_shared<const TaskGraph>(
        build_task_graph(result_.program, problem(), ranks, options));
  }

  // A program that is run once needs no graph.
  Result numbers() {
    const Perturbation& perturb = made_.scenario->perturb;
    const double jitter = perturb.jitter.value_or(0);
    if (jitter == 0 && (reuse_ == nullptr || !reuse_->keeps(result_.program.get()))) {
      const ProgramRun run = replay_program(result_.program, made_.problem,
                                            ranks_of(*made_.scenario), graph_options(made_, 1));
      result_.seconds.run += watch_.lap();
      return result_of(numbers_of(run.tasks, run.times, run.peaks));
    }
    result_.graph = graph(1);
    result_.seconds.build += watch_.lap();
    const TaskGraph& graph = *result_.graph;
    const auto peaks =
        reuse_ == nullptr ? peaks_in_order(graph, graph.classes()) : reuse_->peaks(graph);
    if (jitter == 0) {
      const std::vector<std::vector<double>> seconds{seconds_of(graph.classes())};
      const RunTimes times = replay_lanes(graph, seconds).front();
      result_.seconds.run += watch_.lap();
      return result_of(numbers_of(graph.size(), times, peaks));
    }
    std::vector<Report> reports;
    add_numbers_of_others(jitter, reports, peaks);
    return result_of(ensemble_of(reports, perturb.seed, jitter));
  }

  [[nodiscard]] const Problem& problem() const { return slowed_ ? *slowed_ : made_.problem; }
  [[nodiscard]] bool streams() const { return made_.stream.has_value(); }

  // The microbatches of so many iterations as one program.
  std::shared_ptr<const TaskGraph> graph_of_stream(int iterations) {
    Problem problem = made_.problem;
    problem.shape.microbatches *= iterations;
    const std::vector<std::uint32_t> once = problem.kind_of_unit;
    for (int i = 1; i < iterations; ++i) {
      problem.kind_of_unit.insert(problem.kind_of_unit.end(), once.begin(), once.end());
    }
    result_.program = make_program(made_.choice, problem);
    result_.seconds.plan += watch_.lap();
    return std::make_shared<const TaskGraph>(build_task_graph(
        result_.program, problem, ranks_of(*made_.scenario), graph_options(made_, iterations)));
  }

  // The fewest iterations that can be steady.
  [[nodiscard]] int first_iterations() const {
    const Shape& shape = made_.problem.shape;
    if (streams()) return fewest_streamed(shape.devices, shape.microbatches);
    return made_.sync == OptimizerSync::kPostValidation ? 4 : 1;
  }

  void run_until_steady() {
    const int first = first_iterations();
    for (int iterations = first;; iterations *= 2) {
      result_.graph.reset();
      result_.graph = streams() ? graph_of_stream(iterations) : graph(iterations);
      result_.seconds.build += watch_.lap();
      result_.timeline = engine_.run(*result_.graph, cluster_, {});
      result_.seconds.run += watch_.lap();
      if (iterations >= std::max(kMaxIterations, 4 * first) ||
          is_steady(*result_.graph, result_.timeline, kSteadyTolerance)) {
        return;
      }
    }
  }

  [[nodiscard]] Report analyzed(const Timeline& timeline) const {
    return analyze(*result_.graph, timeline, speeds_of(*made_.scenario),
                   detail_ == Detail::kCauses ? IdleCauses::kFollowed : IdleCauses::kLeftOut);
  }

  Report run_ensemble(double jitter) {
    const Perturbation& perturb = made_.scenario->perturb;
    // Then only the first run has a timeline.
    const bool sums_do = detail_ != Detail::kCauses && engine_.name() == "replay" &&
                         result_.graph->iterations() == 1;
    const int timelines = sums_do ? 1 : perturb.runs;
    std::vector<Report> reports;
    // A few at a time: durations and timelines of one run are three numbers per task.
    constexpr int kAtOnce = 4;
    for (int first = 0; first < timelines; first += kAtOnce) {
      std::vector<std::vector<double>> seconds;
      for (int run = first; run < std::min(first + kAtOnce, timelines); ++run) {
        seconds.push_back(
            jittered(*result_.graph, jitter, perturb.seed + static_cast<std::uint64_t>(run)));
      }
      auto some = engine_.run_all(*result_.graph, cluster_, seconds);
      result_.seconds.run += watch_.lap();
      for (const Timeline& timeline : some) {
        reports.push_back(analyzed(timeline));
      }
      if (first == 0) result_.timeline = std::move(some.front());
      result_.seconds.metrics += watch_.lap();
    }
    if (sums_do) add_numbers_of_others(jitter, reports);
    return ensemble_of(reports, perturb.seed, jitter);
  }

  // Adds the runs of an ensemble that have no report yet. All of its runs have the first one's
  // peaks.
  void add_numbers_of_others(double jitter, std::vector<Report>& reports,
                             std::span<const Bytes> peaks = {}) {
    const Perturbation& perturb = made_.scenario->perturb;
    const size_t size = result_.graph->size();
    const auto seed = perturb.seed + reports.size();
    const size_t runs = static_cast<size_t>(perturb.runs) - reports.size();
    for (const RunTimes& times : replay_jittered(*result_.graph, jitter, seed, runs)) {
      reports.push_back(numbers_of(size, times, peaks));
    }
    result_.seconds.run += watch_.lap();
  }

  // Adds the devices' memory beside activations; replicas hold the same.
  void add_memory() {
    Report& report = result_.report;
    const std::vector<Bytes> ordered = ordered_peaks(made_, *result_.program);
    if (!ordered.empty()) report.peak_activation = std::ranges::max(ordered);
    for (size_t d = 0; d < report.devices.size() && !ordered.empty(); ++d) {
      report.devices[d].peak_activation = ordered[d % ordered.size()];
    }
    if (!made_.memory) return;
    for (DeviceReport& device : report.devices) {
      device.memory = made_.memory->devices[device.device % made_.scenario->parallel.pipeline];
      report.peak_memory = std::max(report.peak_memory.value_or(Bytes(0)), *device.peak_memory());
    }
    const Modelled& modelled = *made_.scenario->modelled;
    if (!modelled.capacity) return;
    result_.fits = fit_of(*report.peak_memory, modelled.band, *modelled.capacity);
  }

  const Case& made_;
  std::optional<Problem> slowed_;  // by copies beside passes
  const Engine& engine_;
  Reuse* reuse_;
  Detail detail_;
  bool numbers_alone_ = false;
  Cluster cluster_;
  Stopwatch watch_;
  Result result_;
};

// Takes each device's memory from the draw in which it holds most.
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

// Over several draws of its microbatches the means, rates over all their seconds, and the largest
// peaks, all else that of the first.
Result result_of(const Case& made, const Engine& engine, Reuse* reuse, Detail detail) {
  Result first = Run(made, engine, reuse, detail).result();
  if (made.redrawn == nullptr) return first;
  const Batch& batch = made.scenario->batch;
  std::vector<Report> reports{first.report};
  std::vector<Throughput> rates{first.throughput.value_or(Throughput{})};
  for (int run = 1; run < batch.draws(); ++run) {
    const Case next = made.redrawn(made, batch.seed() + static_cast<std::uint64_t>(run));
    const Result other = Run(next, engine, reuse, detail).result();
    reports.push_back(other.report);
    rates.push_back(other.throughput.value_or(Throughput{}));
    if (first.fits) first.fits = std::min(*first.fits, *other.fits);
    if (first.host && first.host->node < other.host->node) first.host = other.host;
  }
  const double jitter = first.report.ensemble ? first.report.ensemble->jitter : 0;
  first.report = ensemble_of(reports, batch.seed(), jitter);
  take_largest_peaks(first.report, reports);
  if (first.throughput) {
    std::vector<double> seconds;
    for (const Report& each : reports) seconds.push_back(each.iteration.value());
    first.throughput = mean_of(rates, seconds);
  }
  return first;
}

// True if only its program can keep it from being a lane beside others.
bool may_be_lane(const Case& made) {
  const Scenario& scenario = *made.scenario;
  return scenario.engine == EngineKind::kReplay && scenario.perturb.jitter.value_or(0) == 0 &&
         made.problem.kinds.empty() && made.redrawn == nullptr;
}

// Cases that are lanes of one graph.
class LaneGroup {
 public:
  LaneGroup(const Run& first, Reuse& reuse)
      : reuse_(reuse),
        program_(first.program()),
        ranks_(ranks_of(*first.made().scenario)),
        structure_(structure_of(graph_options(first.made(), 1))) {}

  [[nodiscard]] bool takes(const Run& run) const {
    return run.program() == program_ && ranks_of(*run.made().scenario) == ranks_ &&
           structure_of(graph_options(run.made(), 1)) == structure_;
  }
  void add(Run& run, Simulated& into) {
    runs_.push_back(&run);
    into_.push_back(&into);
  }

  void evaluate() {
    const Case& first = runs_.front()->made();
    const auto graph = reuse_.graph(program_, first.problem, ranks_, graph_options(first, 1));
    std::vector<std::vector<double>> seconds;
    std::vector<std::vector<Bytes>> peaks;
    KeptPeaks kept;
    for (const Run* run : runs_) {
      const auto classes = renumbered(*graph, run->made().problem, graph_options(run->made(), 1));
      seconds.push_back(seconds_of(classes));
      peaks.push_back(kept.of(*graph, classes));
    }
    const std::vector<RunTimes> times = replay_lanes(*graph, seconds);
    for (size_t lane = 0; lane < runs_.size(); ++lane) {
      into_[lane]->result =
          runs_[lane]->result_of(numbers_of(graph->size(), times[lane], peaks[lane]));
    }
  }

  void fail(const std::exception_ptr& error) {
    for (Simulated* each : into_) each->error = error;
  }

 private:
  Reuse& reuse_;
  std::shared_ptr<const Program> program_;
  std::vector<std::vector<int>> ranks_;
  GraphStructure structure_;
  std::vector<Run*> runs_;
  std::vector<Simulated*> into_;
};

// The error of a case that cannot be run, or nothing.
template <class Step>
std::exception_ptr error_of(Step step) {
  try {
    step();
  } catch (const InputError&) {
    return std::current_exception();
  } catch (const InfeasibleError&) {
    return std::current_exception();
  }
  return nullptr;
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

std::vector<Simulated> simulate_all(std::span<const Case> cases, Reuse& reuse) {
  const auto replay = make_replay_engine();
  std::vector<Simulated> all(cases.size());
  std::vector<std::optional<Run>> runs(cases.size());
  std::vector<LaneGroup> groups;
  for (size_t i = 0; i < cases.size(); ++i) {
    all[i].error = error_of([&] {
      if (!may_be_lane(cases[i])) {
        all[i].result = simulate(cases[i], nullptr, &reuse, Detail::kNumbers);
        return;
      }
      runs[i].emplace(cases[i], *replay, &reuse, Detail::kNumbers);
      if (!runs[i]->needs_timeline()) return;
      all[i].result = runs[i]->result();
      runs[i].reset();
    });
    if (all[i].error || !runs[i]) continue;
    auto group =
        std::ranges::find_if(groups, [&](const LaneGroup& g) { return g.takes(*runs[i]); });
    if (group == groups.end()) {
      groups.emplace_back(*runs[i], reuse);
      group = groups.end() - 1;
    }
    group->add(*runs[i], all[i]);
  }
  for (LaneGroup& group : groups) {
    if (const auto error = error_of([&group] { group.evaluate(); })) group.fail(error);
  }
  return all;
}

Result simulate(const Case& made, const Engine* engine, Reuse* reuse, Detail detail) {
  if (engine != nullptr) return result_of(made, *engine, reuse, detail);
  return result_of(made, *make_engine(*made.scenario, available_threads()), reuse, detail);
}

}  // namespace pipesim
