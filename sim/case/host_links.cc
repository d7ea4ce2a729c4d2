#include "sim/case/host_links.h"

#include <algorithm>

#include "sim/case/ranks.h"

namespace pipesim {
namespace {

int gpus_per_switch(const Scenario& scenario) {
  return std::min(scenario.hardware->host.gpus_per_switch, scenario.cluster->gpus_per_node);
}

// What each direction of a link gets while both are busy, of what one gets alone.
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
