#include "sim/sensitivity/what_ifs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <vector>

#include "sim/case/ranks.h"
#include "sim/core/text.h"
#include "sim/planning/schedule.h"
#include "sim/scenario/draw_batch.h"

namespace pipesim {
namespace {

std::string words(Seconds seconds) { return human(seconds); }
std::string words(Bytes bytes) { return human(bytes); }
std::string words(BytesPerSecond rate) { return fmt::format("{:.4g} GB/s", rate.value() / 1e9); }
std::string words(int count) { return fmt::format("{}", count); }
std::string words(double number) { return fmt::format("{:.4g}", number); }

// Where rounding or a cap made another factor of it.
std::optional<double> applied(double before, double after, double asked) {
  if (std::abs(after - asked * before) <= 1e-9 * after) return std::nullopt;
  return after / before;
}

// Reports the first value of a list for all.
template <class T>
ValueChange multiply_all(std::vector<T>& values, double factor) {
  const T before = values.front();
  for (T& value : values) value = factor * value;
  return {words(before), words(values.front())};
}

ValueChange multiply_one(auto& value, double factor) {
  const auto before = value;
  value = factor * value;
  return {words(before), words(value)};
}

ValueChange multiply_count(int& count, double factor) {
  const int before = count;
  const double wanted = std::max(1.0, std::round(factor * before));
  if (wanted > 1 << 30)
    throw InfeasibleError(fmt::format("{} x {:g} is too large", before, factor));
  count = static_cast<int>(wanted);
  return {words(before), words(count), applied(before, count, factor)};
}

// Clusters ---------------------------------------------------------------------------------------

std::string lacks_network(const Scenario& scenario) {
  if (!scenario.cluster) return "the scenario has no cluster";
  if (!scenario.roofline && !scenario.cost.message) return "messages take cost.transfer";
  const ParallelSizes& sizes = scenario.parallel;
  const int gpus = scenario.roofline ? sizes.pipeline * sizes.tensor * sizes.context * sizes.data
                                     : sizes.pipeline * sizes.pipelines;
  return gpus <= scenario.cluster->gpus_per_node ? "all GPUs stand in one node" : "";
}

std::string lacks_node_link(const Scenario& scenario) {
  if (!scenario.cluster) return "the scenario has no cluster";
  if (!scenario.roofline && !scenario.cost.message) return "messages take cost.transfer";
  return scenario.cluster->gpus_per_node == 1 ? "nodes have one GPU" : "";
}

// A number of the NICs, for messages and for the collectives between nodes.
template <class Number>
ValueChange network(Scenario& scenario, Number Cluster::*of_cluster,
                    Number Interconnect::*of_collectives, double factor) {
  ValueChange change = multiply_one((*scenario.cluster).*of_cluster, factor);
  if (auto& hardware = scenario.hardware) {
    hardware->cluster.*of_cluster = (*scenario.cluster).*of_cluster;
    hardware->interconnect.*of_collectives = (*scenario.cluster).*of_cluster;
  }
  return change;
}

// A curve of messages, where it was measured.
void change_curve(std::optional<MessageCurve>& curve, double bandwidth, double latency) {
  if (!curve) return;
  curve->bandwidth = bandwidth * curve->bandwidth;
  curve->latency = latency * curve->latency;
}

void change_between_nodes(Scenario& scenario, double bandwidth, double latency) {
  if (!scenario.hardware) return;
  for (auto& curve : scenario.hardware->interconnect.between_nodes) {
    change_curve(curve, bandwidth, latency);
  }
}

ValueChange network_bandwidth(Scenario& scenario, const Answer&, double factor) {
  change_between_nodes(scenario, factor, 1);
  return network(scenario, &Cluster::nic_bandwidth, &Interconnect::nic_bandwidth, factor);
}

ValueChange network_latency(Scenario& scenario, const Answer&, double factor) {
  change_between_nodes(scenario, 1, factor);
  return network(scenario, &Cluster::nic_latency, &Interconnect::nic_latency, factor);
}

// Changes the collectives within a node too.
template <class Change>
void change_curves(Interconnect& interconnect, const Change& change) {
  for (CollectiveCurve& curve : interconnect.curves) change(curve);
  if (interconnect.nvls) change(*interconnect.nvls);
}

ValueChange node_bandwidth(Scenario& scenario, const Answer&, double factor) {
  ValueChange change = multiply_one(scenario.cluster->link_bandwidth, factor);
  if (auto& hardware = scenario.hardware) {
    change_curve(hardware->interconnect.messages, factor, 1);
    hardware->cluster.link_bandwidth = scenario.cluster->link_bandwidth;
    change_curves(hardware->interconnect,
                  [factor](CollectiveCurve& curve) { curve.bandwidth = factor * curve.bandwidth; });
  }
  return change;
}

ValueChange node_latency(Scenario& scenario, const Answer&, double factor) {
  ValueChange change = multiply_one(scenario.cluster->link_latency, factor);
  if (auto& hardware = scenario.hardware) {
    change_curve(hardware->interconnect.messages, 1, factor);
    hardware->cluster.link_latency = scenario.cluster->link_latency;
    change_curves(hardware->interconnect, [factor](CollectiveCurve& curve) {
      curve.base = factor * curve.base;
      curve.per_rank = factor * curve.per_rank;
    });
  }
  return change;
}

std::string lacks_copies(const Scenario& scenario) {
  const ScheduleChoice& choice = scenario.schedules.front();
  const bool copies = scenario.offload || (!choice.program && copies_by_itself(choice));
  return copies ? "" : "nothing is copied to the host";
}

ValueChange host_link(Scenario& scenario, const Answer&, double factor) {
  if (GivenCost& cost = scenario.cost; !cost.copy_out.empty()) {
    (void)multiply_all(cost.copy_in, 1 / factor);
    return multiply_all(cost.copy_out, 1 / factor);
  }
  HostLink& host = scenario.hardware->host;
  host.alone = factor * host.alone;
  return multiply_one(host.duplex, factor);
}

// Devices ----------------------------------------------------------------------------------------

std::string lacks_nothing(const Scenario&) { return ""; }

// Ties: the lowest.
ValueChange busiest_device(Scenario& scenario, const Answer& base, double factor) {
  const auto& devices = base.result.report.devices;
  const auto busiest = std::ranges::max_element(devices, {}, &DeviceReport::busy);
  const int positions = scenario.parallel.pipeline;
  const int rank = rank_of(scenario, busiest->device / positions, busiest->device % positions);
  bool known = false;
  for (SpeedChange& change : scenario.perturb.stragglers) {
    if (change.rank != rank) continue;
    change.factor *= factor;
    known = known || change.at_seconds == 0;
  }
  if (!known) {
    SpeedChange change;
    change.rank = rank;
    change.factor = factor;
    scenario.perturb.stragglers.insert(scenario.perturb.stragglers.begin(), change);
  }
  return {fmt::format("device {}", busiest->device), fmt::format("x {:g}", factor)};
}

std::string lacks_messages(const Scenario& scenario) {
  if (scenario.parallel.pipeline == 1) return "one device sends no messages";
  if (scenario.roofline || scenario.cost.message) return "";
  return scenario.cost.transfer > Seconds(0) ? "" : "messages take no time";
}

// The slowest link of the first pipeline, in both directions. Ties: the lowest stage.
ValueChange slowest_link(Scenario& scenario, const Answer& base, double factor) {
  const Placement& place = base.made.problem.placement;
  int slowest = 0;
  for (int vs = 1; vs < place.virtual_stages(); ++vs) {
    if (base.made.problem.stage(vs).transfer > base.made.problem.stage(slowest).transfer)
      slowest = vs;
  }
  const int from = place.device(slowest);
  const int to = place.device(place.downstream(slowest));
  const int rank_from = rank_of(scenario, 0, from);
  const int rank_to = rank_of(scenario, 0, to);
  scenario.perturb.links.push_back({rank_from, rank_to, 1 / factor});
  scenario.perturb.links.push_back({rank_to, rank_from, 1 / factor});
  return {fmt::format("devices {}, {}", from, to), fmt::format("x {:g}", factor)};
}

std::string lacks_jitter(const Scenario& scenario) {
  return scenario.perturb.jitter.value_or(0) > 0 ? "" : "no jitter is asked for";
}

ValueChange jitter(Scenario& scenario, const Answer&, double factor) {
  return multiply_one(*scenario.perturb.jitter, factor);
}

// Memory -----------------------------------------------------------------------------------------

std::string lacks_capacity(const Scenario& scenario) {
  if (!scenario.modelled) return "without a model only activations are known";
  return scenario.modelled->capacity ? "" : "neither memory.capacity nor a cluster by name says it";
}

ValueChange capacity(Scenario& scenario, const Answer&, double factor) {
  return multiply_one(*scenario.modelled->capacity, factor);
}

std::string lacks_limit(const Scenario& scenario) {
  const bool limited =
      !std::holds_alternative<std::monostate>(scenario.schedules.front().memory_limit);
  return limited ? "" : "the schedule is given no memory_limit";
}

ValueChange memory_limit(Scenario& scenario, const Answer&, double factor) {
  auto& limit = scenario.schedules.front().memory_limit;
  if (auto* bytes = std::get_if<Bytes>(&limit)) return multiply_one(*bytes, factor);
  if (auto* total = std::get_if<TotalLimit>(&limit)) return multiply_one(total->bytes, factor);
  return multiply_one(std::get<double>(limit), factor);
}

// Work -------------------------------------------------------------------------------------------

std::string lacks_free_batch(const Scenario& scenario) {
  if (scenario.batch.listed()) {
    return "microbatches that are listed have their own count";
  }
  if (scenario.batch.order() == MicrobatchOrder::kListed) {
    return "an order that is listed has its own count of microbatches";
  }
  return scenario.schedules.front().program ? "a program from a CSV file has its own count" : "";
}

ValueChange microbatches(Scenario& scenario, const Answer&, double factor) {
  ValueChange change = multiply_count(scenario.batch.microbatches, factor);
  draw_batch(scenario, scenario.batch.seed());
  return change;
}

bool shares_given(const Scenario& scenario) { return !scenario.cost.output_forward.empty(); }

std::string lacks_vocabulary(const Scenario& scenario) {
  return scenario.modelled || shares_given(scenario) ? "" : "costs and memory are given";
}

// Given costs of a device's share of the vocabulary are in proportion to it.
ValueChange vocabulary(Scenario& scenario, const Answer&, double factor) {
  ValueChange change;
  if (shares_given(scenario)) {
    GivenCost& cost = scenario.cost;
    change = multiply_all(cost.output_forward, factor);
    for (auto* seconds : {&cost.output_backward, &cost.input_forward, &cost.input_backward}) {
      (void)multiply_all(*seconds, factor);
    }
  }
  if (!scenario.modelled) {
    if (auto& memory = scenario.memory; memory && !memory->output_activation.empty()) {
      (void)multiply_all(memory->output_activation, factor);
    }
    return change;
  }
  Modelled& modelled = *scenario.modelled;
  change = multiply_count(modelled.model.vocab_size, factor);
  const std::string fault = fault_of(modelled.model, modelled.context);
  if (!fault.empty()) throw InfeasibleError(fault);
  return change;
}

// GPUs -------------------------------------------------------------------------------------------

std::string lacks_gpu(const Scenario& scenario) {
  return scenario.roofline ? "" : "costs are given";
}

// No matmul is faster than the peak.
ValueChange matmul_efficiency(Scenario& scenario, const Answer&, double factor) {
  auto& efficiency = scenario.hardware->gpu.matmul.efficiency;
  const double& own = efficiency[static_cast<size_t>(scenario.modelled->context.precision)];
  const double before = own;
  for (double& each : efficiency) each = std::min(1.0, factor * each);
  return {words(before), words(own), applied(before, own, factor)};
}

ValueChange memory_bandwidth(Scenario& scenario, const Answer&, double factor) {
  return multiply_one(scenario.hardware->gpu.memory_bandwidth, factor);
}

// Given costs ------------------------------------------------------------------------------------

template <std::vector<Seconds> GivenCost::*kTimes>
std::string lacks_times(const Scenario& scenario) {
  if (scenario.roofline) return "costs follow from the model";
  return (scenario.cost.*kTimes).empty() ? "it is not given" : "";
}

void multiply_fixed(std::vector<Seconds>& fixed, double factor) {
  for (Seconds& seconds : fixed) seconds = factor * seconds;
}

// Multiplies what else is of a pass: the parts of its layers, and what every slice takes.
template <std::vector<Seconds> GivenCost::*kTimes>
void multiply_beside(GivenCost& cost, double factor) {
  const auto multiply = [factor](auto... parts) { ((*parts = factor * *parts), ...); };
  ForwardParts* f = cost.layers ? &cost.layers->forward : nullptr;
  BackwardParts* b = cost.layers ? &cost.layers->backward : nullptr;
  if constexpr (kTimes == &GivenCost::forward) {
    if (f != nullptr) multiply(&f->attention, &f->dispatch, &f->experts, &f->combine);
    multiply_fixed(cost.fixed.forward, factor);
  } else if constexpr (kTimes == &GivenCost::backward_input) {
    if (b != nullptr) multiply(&b->attention, &b->dispatch, &b->experts, &b->combine);
    multiply_fixed(cost.fixed.backward_input, factor);
  } else if constexpr (kTimes == &GivenCost::backward_weight) {
    if (b != nullptr) multiply(&b->attention_weight, &b->experts_weight);
    multiply_fixed(cost.fixed.backward_weight, factor);
  }
}

template <std::vector<Seconds> GivenCost::*kTimes>
ValueChange times(Scenario& scenario, const Answer&, double factor) {
  multiply_beside<kTimes>(scenario.cost, factor);
  return multiply_all(scenario.cost.*kTimes, factor);
}

std::string lacks_exchange(const Scenario& scenario) {
  if (scenario.roofline) return "costs follow from the model";
  if (!scenario.cost.layers) return "parts of layers are not given";
  const ForwardParts& f = scenario.cost.layers->forward;
  const BackwardParts& b = scenario.cost.layers->backward;
  return f.dispatch + f.combine + b.dispatch + b.combine > Seconds(0) ? "" : "it takes no time";
}

ValueChange exchange(Scenario& scenario, const Answer&, double factor) {
  ForwardParts& f = scenario.cost.layers->forward;
  BackwardParts& b = scenario.cost.layers->backward;
  Seconds all = f.dispatch + f.combine + b.dispatch + b.combine;
  for (Seconds* part : {&f.dispatch, &f.combine, &b.dispatch, &b.combine}) *part = factor * *part;
  sum_layers(scenario.cost);
  return multiply_one(all, factor);
}

template <Seconds GivenCost::*kTime>
std::string lacks_time(const Scenario& scenario) {
  if (scenario.roofline) return "costs follow from the model";
  return scenario.cost.*kTime > Seconds(0) ? "" : "it is 0";
}

template <Seconds GivenCost::*kTime>
ValueChange time(Scenario& scenario, const Answer&, double factor) {
  return multiply_one(scenario.cost.*kTime, factor);
}

std::string lacks_message_size(const Scenario& scenario) {
  if (scenario.roofline) return "it follows from the model";
  return scenario.cost.message ? "" : "it is not given";
}

ValueChange message_size(Scenario& scenario, const Answer&, double factor) {
  return multiply_one(*scenario.cost.message, factor);
}

constexpr std::array kWhatIfs{
    WhatIf{"network bandwidth", "cluster.network.bandwidth", lacks_network, network_bandwidth},
    WhatIf{"network latency", "cluster.network.latency", lacks_network, network_latency},
    WhatIf{"node link bandwidth", "cluster.node.link_bandwidth", lacks_node_link, node_bandwidth},
    WhatIf{"node link latency", "cluster.node.link_latency", lacks_node_link, node_latency},
    WhatIf{"host link bandwidth", "cluster.host.duplex", lacks_copies, host_link},
    WhatIf{"speed of the busiest device", "perturb.stragglers", lacks_nothing, busiest_device},
    WhatIf{"speed of the slowest link", "perturb.links", lacks_messages, slowest_link},
    WhatIf{"jitter", "perturb.jitter", lacks_jitter, jitter},
    WhatIf{"GPU memory", "memory.capacity", lacks_capacity, capacity},
    WhatIf{"memory limit", "schedule.memory_limit", lacks_limit, memory_limit},
    WhatIf{"microbatches", "batch.num_microbatches", lacks_free_batch, microbatches},
    WhatIf{"vocabulary size", "model.vocab_size", lacks_vocabulary, vocabulary},
    WhatIf{"matmul efficiency", "matmul.efficiency", lacks_gpu, matmul_efficiency},
    WhatIf{"GPU memory bandwidth", "chip.memory_bandwidth", lacks_gpu, memory_bandwidth},
    WhatIf{"forward", "cost.forward", lacks_times<&GivenCost::forward>, times<&GivenCost::forward>},
    WhatIf{"backward input", "cost.backward_input", lacks_times<&GivenCost::backward_input>,
           times<&GivenCost::backward_input>},
    WhatIf{"backward weight", "cost.backward_weight", lacks_times<&GivenCost::backward_weight>,
           times<&GivenCost::backward_weight>},
    WhatIf{"overlapped block", "cost.overlapped", lacks_times<&GivenCost::overlapped>,
           times<&GivenCost::overlapped>},
    WhatIf{"exchange of tokens", "cost.layer", lacks_exchange, exchange},
    WhatIf{"recompute", "cost.recompute", lacks_times<&GivenCost::recompute>,
           times<&GivenCost::recompute>},
    WhatIf{"transfer", "cost.transfer", lacks_time<&GivenCost::transfer>,
           time<&GivenCost::transfer>},
    WhatIf{"message size", "cost.message", lacks_message_size, message_size},
    WhatIf{"collective", "cost.collective", lacks_time<&GivenCost::collective>,
           time<&GivenCost::collective>},
    WhatIf{"optimizer step", "cost.optimizer", lacks_time<&GivenCost::optimizer>,
           time<&GivenCost::optimizer>},
};

}  // namespace

std::span<const WhatIf> what_ifs() { return kWhatIfs; }

}  // namespace pipesim
