#include "sim/case/graph_options.h"

#include <algorithm>

#include "models/stage_cost.h"
#include "sim/case/host_links.h"
#include "sim/case/ranks.h"

namespace pipesim {
namespace {

double link_factor(const Scenario& scenario, int from, int to) {
  double factor = 1;
  for (const DegradedLink& link : scenario.perturb.links) {
    if (link.from == from && link.to == to) factor *= link.factor;
  }
  return factor;
}

// Only the bytes' time is spent on a way that others share, or that is degraded.
MessageCost modelled_message(const Case& made, int from, int to, std::uint32_t unit,
                             double factor) {
  const Seconds whole = made.problem.stage(std::min(from, to), unit).transfer;
  const Placement& place = made.placement;
  const Seconds latency =
      message_latency(made.scenario->modelled->model, *made.setting, *made.scenario->hardware,
                      made.layout->stages[place.model_stage(std::min(from, to))],
                      place.device(from), place.device(to));
  return {latency + factor * (whole - latency), latency};
}

// Between two virtual stages on two ranks.
MessageCost message(const Case& made, int from, int to, int rank_from, int rank_to,
                    std::uint32_t unit) {
  const Scenario& scenario = *made.scenario;
  const double factor = link_factor(scenario, rank_from, rank_to);
  if (made.setting) return modelled_message(made, from, to, unit, factor);
  if (!scenario.cost.message) {
    // On a cluster a message of a given time fills its way for that long; without one it has no
    // way to share, only time that passes.
    const Seconds seconds = factor * made.problem.stage(std::min(from, to), unit).transfer;
    return {seconds, scenario.cluster ? Seconds(0) : seconds};
  }
  const Route way = route(*scenario.cluster, rank_from, rank_to);
  const Bytes bytes = made.problem.shape.per_unit(made.problem.size(unit) * *scenario.cost.message);
  return {way.latency + factor * (bytes / way.bandwidth), way.latency};
}

// Under all-reduce, gradients come before the norm that joins all devices.
void add_closing(const Case& made, BuildOptions& options) {
  for (const StepCost& step : made.closing) {
    options.gradients_of_device.push_back(step.gradients());
    options.optimizer_of_device.push_back(step.after_norm());
    options.collective = std::max(options.collective, step[ClosingTerm::kNorm]);
  }
}

// The GPUs of the SimGrid engine slow down by themselves.
void add_stragglers(const Scenario& scenario, BuildOptions& options) {
  if (scenario.gpu == GpuModel::kHost) return;
  const ParallelSizes& sizes = scenario.parallel;
  for (const SpeedChange& change : scenario.perturb.stragglers) {
    options.slowdown_of_rank.resize(static_cast<size_t>(sizes.pipeline) * sizes.pipelines, 1.0);
    options.slowdown_of_rank[change.rank] /= change.factor;
  }
}

}  // namespace

BuildOptions graph_options(const Case& made, int iterations) {
  const Scenario& scenario = *made.scenario;
  BuildOptions options;
  static_cast<Coupling&>(options) = made;
  options.iterations = iterations;
  const auto units = static_cast<std::uint32_t>(made.problem.shape.units());
  if (scenario.engine == EngineKind::kSimGrid) options.contending_copies = host_way(made).duplex;
  options.collective = scenario.cost.collective;
  options.optimizer = scenario.cost.optimizer;
  add_closing(made, options);
  options.message = [&made, units](int from, int to, int rank_from, int rank_to,
                                   std::uint32_t unit) {
    return message(made, from, to, rank_from, rank_to, unit % units);
  };
  add_stragglers(scenario, options);
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

}  // namespace pipesim
