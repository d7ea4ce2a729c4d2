#include "sim/goodput/goodput.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numeric>
#include <vector>

#include "models/layer_parameters.h"
#include "sim/core/error.h"
#include "sim/metrics/percentile.h"
#include "sim/scenario/gpus.h"

namespace pipesim {
namespace {

// Weights in bf16, and of the optimizer fp32 weights and two moments: what Megatron-LM writes.
constexpr double kCheckpointBytes = 2 + 3 * 4;
constexpr int kRunsPerInterval = 32;
constexpr int kHalvings = 6;  // on each side of Daly's interval, by the square root of two

Bytes size_of_checkpoint(const Case& made, const Reliability& reliability) {
  if (reliability.checkpoint_size) return *reliability.checkpoint_size;
  const auto& modelled = made.scenario->modelled;
  if (!modelled) {
    throw InfeasibleError(
        "a checkpoint's size follows from a model; give reliability.checkpoint.size");
  }
  const Transformer& model = modelled->model;
  return Bytes(kCheckpointBytes * (total_parameters(model) + mtp_parameters(model)));
}

InterruptedRun run_of(const Reliability& reliability, int nodes, Seconds work, Bytes checkpoint) {
  return {.work = work,
          .failure_rate = nodes * reliability.failure_rate,
          .slow_rate = nodes * reliability.slow_rate,
          .slow_factor = reliability.slow_factor,
          .slow_found = reliability.slow_found,
          .checkpoint = checkpoint / (nodes * reliability.checkpoint_bandwidth),
          .interval = work,
          .restart = reliability.restart,
          .repair = reliability.repair,
          .spare_nodes = reliability.spare_nodes};
}

// The runs of one question, counted as they are done.
class Runs {
 public:
  // InfeasibleError where these runs, `each` of every interval, are more than the question allows.
  Runs(const GoodputQuestion& question, const std::vector<InterruptedRun>& intervals, int each)
      : question_(question) {
    for (const InterruptedRun& run : intervals) steps_ += each * expected_steps(run);
    if (steps_ <= question.max_steps) return;
    throw InfeasibleError(fmt::format(
        "some {:.2g} checkpoints and failures in {} training runs; at most {:.2g} are simulated: "
        "fewer tokens, a longer reliability.checkpoint.interval, fewer --runs, or more --max-steps",
        steps_, each * intervals.size(), question.max_steps));
  }

  RunTime simulate(const InterruptedRun& run, int number) {
    const RunTime time = simulate_run(run, question_.seed + static_cast<std::uint64_t>(number));
    done_ += expected_steps(run);
    question_.progress(done_ / steps_);
    return time;
  }

 private:
  const GoodputQuestion& question_;
  double steps_ = 0;
  double done_ = 0;
};

// Around Daly's, with the same failures for each; ties go to the shorter one.
Seconds best_interval(InterruptedRun run, const GoodputQuestion& question) {
  const Seconds daly = daly_interval(run.checkpoint, run.failure_rate);
  std::vector<InterruptedRun> intervals;
  for (int i = -kHalvings; i <= kHalvings; ++i) {
    run.interval = std::min(run.work, std::exp2(i / 2.0) * daly);
    intervals.push_back(run);
  }
  Runs runs(question, intervals, kRunsPerInterval);
  Seconds best = run.work;
  Seconds shortest(std::numeric_limits<double>::infinity());
  for (const InterruptedRun& each : intervals) {
    Seconds sum;
    for (int i = 0; i < kRunsPerInterval; ++i) sum += runs.simulate(each, i).total();
    if (sum < shortest) {
      shortest = sum;
      best = each.interval;
    }
  }
  return best;
}

void settle_interval(const Reliability& reliability, const GoodputQuestion& question,
                     Goodput& goodput) {
  InterruptedRun& run = goodput.run;
  if (run.failure_rate > 0 && run.checkpoint > Seconds(0)) {
    goodput.young = young_interval(run.checkpoint, run.failure_rate);
    goodput.daly = daly_interval(run.checkpoint, run.failure_rate);
  }
  if (reliability.checkpoint_interval) {
    run.interval = *reliability.checkpoint_interval;
  } else if (goodput.daly) {
    run.interval = best_interval(run, question);
    goodput.interval_searched = true;
  }
}

void take_mean(const std::vector<RunTime>& runs, Goodput& goodput) {
  RunTime& mean = goodput.mean;
  const auto count = static_cast<double>(runs.size());
  for (const RunTime& each : runs) {
    mean.training += each.training / count;
    mean.checkpoints += each.checkpoints / count;
    mean.lost += each.lost / count;
    mean.restarts += each.restarts / count;
    mean.waiting += each.waiting / count;
    mean.slow += each.slow / count;
    goodput.failures += each.failures / count;
  }
  goodput.goodput = mean.training / mean.total();
}

void take_quantiles(const std::vector<RunTime>& runs, Goodput& goodput) {
  std::vector<double> totals;
  for (const RunTime& each : runs) totals.push_back(each.total().value());
  std::ranges::sort(totals);
  goodput.p05 = Seconds(percentile(totals, 0.05));
  goodput.p50 = Seconds(percentile(totals, 0.50));
  goodput.p95 = Seconds(percentile(totals, 0.95));
}

// GPUs that do the same as a device of the report hold it alike.
std::optional<GoodputEnergy> energy_of(const Case& made, const Report& report,
                                       const Goodput& goodput) {
  if (!made.scenario->hardware) return std::nullopt;
  const Gpu& gpu = made.scenario->hardware->gpu;
  const double busy = gpu.busy_power.value();
  const double idle = gpu.idle_power.value();
  if (busy <= 0) return std::nullopt;
  const double per_device = goodput.gpus / static_cast<double>(report.devices.size());
  const double iterations = goodput.mean.training / report.iteration;
  GoodputEnergy energy;
  double of_an_iteration = 0;
  for (const DeviceReport& device : report.devices) {
    energy.busy += per_device * iterations * busy * device.busy.value();
    of_an_iteration += per_device * busy * device.busy.value();
    for (size_t cause = 0; cause < energy.idle.size(); ++cause) {
      const double joules =
          per_device * idle * device.idle_by_cause[static_cast<IdleCause>(cause)].value();
      energy.idle[cause] += iterations * joules;
      of_an_iteration += joules;
    }
  }
  const RunTime& mean = goodput.mean;
  energy.repeated =
      of_an_iteration * (mean.lost / report.iteration) + goodput.gpus * idle * mean.slow.value();
  energy.stopped = goodput.gpus * idle * (mean.checkpoints + mean.restarts + mean.waiting).value();
  return energy;
}

}  // namespace

double GoodputEnergy::total() const {
  return std::accumulate(idle.begin(), idle.end(), busy + repeated + stopped);
}

Goodput goodput_of(const Case& made, const Result& result, const Reliability& reliability,
                   const GoodputQuestion& question) {
  const Scenario& scenario = *made.scenario;
  Goodput goodput;
  goodput.name = made.choice.name;
  goodput.gpus = static_cast<int>(gpus_of(scenario.parallel));
  const int per_node = scenario.hardware ? scenario.hardware->cluster.gpus_per_node : 1;
  goodput.nodes = (goodput.gpus + per_node - 1) / per_node;
  const double tokens_per_second =
      result.throughput->samples_per_second_per_gpu * goodput.gpus * *scenario.batch.seq_length;
  goodput.checkpoint_size = size_of_checkpoint(made, reliability);
  goodput.run = run_of(reliability, goodput.nodes, Seconds(question.tokens / tokens_per_second),
                       goodput.checkpoint_size);
  goodput.mean_between_failures = Seconds(1 / goodput.run.failure_rate);
  settle_interval(reliability, question, goodput);
  Runs all(question, {goodput.run}, question.runs);
  std::vector<RunTime> runs;
  for (int i = 0; i < question.runs; ++i) runs.push_back(all.simulate(goodput.run, i));
  take_mean(runs, goodput);
  take_quantiles(runs, goodput);
  const int spare = reliability.spare_nodes.value_or(0) * per_node;
  goodput.gpu_hours = (goodput.gpus + spare) * goodput.mean.total().value() / 3600;
  if (question.price_per_gpu_hour) {
    goodput.price = goodput.gpu_hours * *question.price_per_gpu_hour;
  }
  goodput.energy = energy_of(made, result.report, goodput);
  return goodput;
}

}  // namespace pipesim
