#include "sim/case/node_memory.h"

#include <algorithm>

#include "sim/case/ranks.h"
#include "sim/execution/evaluate.h"
#include "sim/metrics/host_memory.h"

namespace pipesim {
namespace {

// The nodes that hold a device's GPUs, ranks in the order of Megatron-LM. One node stands for all
// that hold nothing else.
std::vector<std::vector<NodeShare>> node_shares(const Scenario& scenario) {
  if (!scenario.cluster) return {};
  const int devices = scenario.parallel.pipeline;
  const int ranks = ranks_of_device(scenario);
  const int per_node = scenario.cluster->gpus_per_node;
  std::vector<std::vector<NodeShare>> shares(static_cast<size_t>(devices) *
                                             static_cast<size_t>(scenario.parallel.pipelines));
  std::uint32_t next = 0;
  int last = -1;
  for (int device = 0; device < devices; ++device) {
    const int begin = device * ranks;
    bool whole = false;
    for (int node = begin / per_node; node * per_node < begin + ranks; ++node) {
      const int gpus =
          std::min(begin + ranks, (node + 1) * per_node) - std::max(begin, node * per_node);
      if (gpus == per_node && whole) continue;
      whole = whole || gpus == per_node;
      if (node != last) ++next;
      last = node;
      for (int i = 0; i < scenario.parallel.pipelines; ++i) {
        shares[i * devices + device].push_back(
            {next - 1, static_cast<double>(gpus) / scenario.parallel.pipelines});
      }
    }
  }
  return shares;
}

// By device the most that modules have on the host at a time.
std::vector<Bytes> module_peaks(const Case& made, const Program& program) {
  // The host's side of the passes: F puts there what B takes away.
  Problem host;
  const Placement& place = made.placement;
  host.stages.resize(place.virtual_stages());
  host.vocabulary_costs.resize(place.devices());
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    const Bytes all = made.memory->stages[place.model_stage(vs)].offloaded;
    host.stages[vs].activation = made.problem.shape.per_unit(all);
  }
  std::vector<Bytes> peaks(place.devices());
  for (int device = 0; device < place.devices(); ++device) {
    Bytes held;
    for (const Pass& pass : program.passes(device)) {
      const PassBytes bytes = pass_bytes(host, program, device, pass);
      held += bytes.acquired;
      peaks[device] = std::max(peaks[device], held);
      held -= bytes.released;
    }
  }
  return peaks;
}

// Adds what each device has on the host to the nodes that its GPUs stand in.
void add_to_nodes(const std::vector<Bytes>& devices,
                  const std::vector<std::vector<NodeShare>>& shares, std::vector<Bytes>& nodes) {
  for (size_t device = 0; device < shares.size(); ++device) {
    for (const NodeShare& share : shares[device]) {
      if (share.node >= nodes.size()) nodes.resize(share.node + 1);
      nodes[share.node] += share.share * devices[device];
    }
  }
}

}  // namespace

Bytes optimizer_on_node(const Case& made) {
  const auto shares = node_shares(*made.scenario);
  std::vector<Bytes> devices;
  for (size_t i = 0; i < shares.size(); ++i) {
    devices.push_back(made.memory->devices[i % made.memory->devices.size()].on_host);
  }
  std::vector<Bytes> nodes;
  add_to_nodes(devices, shares, nodes);
  return nodes.empty() ? Bytes(0) : std::ranges::max(nodes);
}

std::optional<HostMemory> host_memory_of(const Case& made, const Program& program,
                                         const TaskGraph* graph, const Timeline& timeline) {
  const Scenario& scenario = *made.scenario;
  const bool copies = !program.memory_follows_order();
  const bool modules = made.context && made.context->offloaded.any();
  const bool states = scenario.modelled && scenario.modelled->state.optimizer.host_fraction > 0;
  if (!copies && !modules && !states) return std::nullopt;
  const auto shares = node_shares(scenario);
  const auto devices =
      static_cast<size_t>(scenario.parallel.pipeline * scenario.parallel.pipelines);
  HostMemory memory{.devices = std::vector<Bytes>(devices),
                    .optimizer = std::vector<Bytes>(devices)};
  std::vector<Bytes> nodes;
  if (copies) {
    HostPeaks peaks = host_peaks(*graph, timeline, shares);
    memory.devices = std::move(peaks.devices);
    nodes = std::move(peaks.nodes);
  }
  std::vector<Bytes> besides(devices);
  const std::vector<Bytes> kept =
      modules ? module_peaks(made, program) : std::vector<Bytes>(made.placement.devices());
  for (size_t i = 0; i < devices; ++i) {
    const size_t device = i % kept.size();
    if (states) memory.optimizer[i] = made.memory->devices[device].on_host;
    besides[i] = kept[device] + memory.optimizer[i];
    memory.devices[i] += besides[i];
  }
  std::vector<Bytes> of_states;
  add_to_nodes(besides, shares, nodes);
  add_to_nodes(memory.optimizer, shares, of_states);
  if (!nodes.empty()) {
    const auto fullest = std::ranges::max_element(nodes);
    memory.node = *fullest;
    memory.node_optimizer = of_states[static_cast<size_t>(fullest - nodes.begin())];
  }
  if (scenario.cluster) memory.capacity = scenario.cluster->host_memory;
  return memory;
}

}  // namespace pipesim
