#include "sim/case/host_links.h"

#include <algorithm>
#include <vector>

#include "sim/case/ranks.h"
#include "sim/execution/published_offload.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

int gpus_per_switch(const Scenario& scenario) {
  return std::min(scenario.hardware->host.gpus_per_switch, scenario.cluster->gpus_per_node);
}

// Share of its bandwidth that each direction of a link keeps while both are busy.
double duplex_share(const Scenario& scenario) {
  if (!scenario.hardware || !scenario.cost.copy_out.empty()) return scenario.cost.copy_solo_factor;
  return std::min(1.0, scenario.hardware->host.duplex / scenario.hardware->host.alone);
}

}  // namespace

void add_host_links(Case& made) {
  const Scenario& scenario = *made.scenario;
  Problem& problem = made.problem;
  problem.copy_alone_factor = duplex_share(scenario);
  if (scenario.hardware && scenario.cost.copy_out.empty()) {
    for (int vs = 0; vs < problem.placement.virtual_stages(); ++vs) {
      StageCost& stage = problem.stages[vs];
      const Bytes kept = made.recomputes[vs] ? stage.checkpoint : stage.activation;
      stage.copy_out = stage.copy_in =
          ranks_on_a_switch(scenario) * (kept / scenario.hardware->host.duplex);
    }
    problem.devices_per_host_link =
        std::max(1, gpus_per_switch(scenario) / ranks_of_device(scenario));
  }
  if (const auto& offload = made.choice.offload) {
    problem.prefetch = offload->prefetch;
    problem.offload_ratio = offload->ratio;
    for (StageCost& stage : problem.stages) {
      stage.copy_out = offload->ratio * stage.copy_out;
      stage.copy_in = offload->ratio * stage.copy_in;
    }
    problem.devices_per_host_link =
        offload->devices_per_link.value_or(problem.devices_per_host_link);
    if (offload->bandwidth == CopyBandwidth::kAlone) {
      for (StageCost& stage : problem.stages) {
        stage.copy_out = problem.copy_alone_factor * stage.copy_out;
        stage.copy_in = problem.copy_alone_factor * stage.copy_in;
      }
      problem.copy_alone_factor = 1;
    }
  }
  // Where iterations overlap, a link still carries copies of a device when another has ended its
  // own.
  const bool overlaps = made.sync == OptimizerSync::kPostValidation;
  if (overlaps && problem.devices_per_host_link > 1) problem.copy_alone_factor = 1;
}

std::optional<Problem> beside_copies(const Case& made, const Program& program) {
  const Scenario& scenario = *made.scenario;
  const double share = scenario.cluster ? scenario.cluster->copy_share.value_or(0) : 0;
  const bool loses = scenario.engine == EngineKind::kSimGrid && scenario.gpu == GpuModel::kHost;
  if (program.memory_follows_order() || share == 0 || loses) return std::nullopt;
  const Placement& place = program.placement();
  const int units = program.shape().units();
  std::vector<double> leaving(place.virtual_stages(), 0);  // of a stage's activations, the share
  const std::vector<int> copied = program.copied_units();
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    const double each = 1.0 / (place.end_unit(vs, units) - place.first_unit(vs, units));
    for (int unit = 0; unit < copied[vs]; ++unit) leaving[vs] += each;
  }
  Problem problem = made.problem;
  const auto lengthen = [&](std::vector<StageCost>& stages) {
    for (size_t vs = 0; vs < stages.size(); ++vs) {
      stages[vs].forward += share * leaving[vs] * stages[vs].copy_out;
      stages[vs].backward_input += share * leaving[vs] * stages[vs].copy_in;
    }
  };
  lengthen(problem.stages);
  for (UnitKind& kind : problem.kinds) lengthen(kind.stages);
  return problem;
}

std::vector<Bytes> ordered_peaks(const Case& made, const Program& program) {
  const ScheduleChoice& choice = made.choice;
  if (program.memory_follows_order() || choice.program || !schedule_of(choice).offloads()) {
    return {};
  }
  if (made.problem.option<std::string>("offload_plan") == "best") return {};
  return peaks_by_order(program, made.problem);
}

HostWay host_way(const Case& made) {
  const Scenario& scenario = *made.scenario;
  const auto& offload = made.choice.offload;
  HostWay way;
  const bool alone = offload && offload->bandwidth == CopyBandwidth::kAlone;
  way.duplex = alone ? 1 : duplex_share(scenario);
  if (!scenario.hardware) return way;
  way.port = scenario.hardware->host.alone;
  way.alone = scenario.hardware->host.alone / ranks_on_a_switch(scenario);
  const Cluster& cluster = *scenario.cluster;
  const int behind_switch = cluster.nics_per_node * gpus_per_switch(scenario);
  way.cards = behind_switch >= cluster.gpus_per_node ? CardWay::kPort : CardWay::kHostLink;
  return way;
}

}  // namespace pipesim
