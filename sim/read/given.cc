#include "sim/read/given.h"

#include <algorithm>
#include <fmt/format.h>

#include "sim/core/text.h"
#include "sim/read/curves.h"
#include "sim/read/measured_passes.h"
#include "sim/read/offload.h"
#include "sim/read/vocabulary.h"

namespace pipesim {
namespace {

// One value, or a list whose length is checked once the number of stages is known.
template <class Read>
auto one_or_list(const YamlValue& value, Read read) {
  std::vector<decltype(read(value))> values;
  if (value.is_list()) {
    for (const YamlValue& each : value.list()) values.push_back(read(each));
    if (values.empty()) value.fail("expected at least one value");
  } else {
    values.push_back(read(value));
  }
  return values;
}

CostBasis read_basis(YamlMap& map) {
  static const std::vector<std::string> kNames{"device", "stage"};
  const auto per = map.find("per");
  return per && per->choice(kNames) == "stage" ? CostBasis::kStage : CostBasis::kDevice;
}

// True if passes are those of a file.
bool are_measured(YamlMap& map) {
  static const std::vector<std::string> kKinds{"given", "measured"};
  return map.require("kind", "'given', or 'measured' with a file of passes").choice(kKinds) ==
         "measured";
}

// The list lengths that every schedule of the scenario gives sense to.
void check_length(const YamlValue& value, size_t length, CostBasis per, const Scenario& scenario) {
  if (length == 1) return;
  const auto devices = static_cast<size_t>(scenario.parallel.pipeline);
  if (per == CostBasis::kDevice) {
    if (length == devices) return;
    value.fail(fmt::format("expected one value or one per device ({}), not {}", devices, length));
  }
  for (const ScheduleChoice& choice : scenario.schedules) {
    const auto stages =
        static_cast<size_t>(placement_of(choice, scenario.parallel.pipeline).model_stages());
    if (length == stages) continue;
    value.fail(fmt::format("expected one value or one per stage ({} for {}), not {}", stages,
                           choice.name, length));
  }
}

std::vector<Seconds> read_times(const YamlValue& value, CostBasis per, const Scenario& scenario,
                                Seconds (*read)(const YamlValue& value) = positive_seconds) {
  auto times = one_or_list(value, read);
  check_length(value, times.size(), per, scenario);
  return times;
}

Seconds one_of(const std::vector<Seconds>& times, size_t i) {
  return times[times.size() == 1 ? 0 : i];
}

// An overlapped block is over when both its passes are.
void check_overlapped(const YamlValue& given, const GivenCost& cost) {
  const std::vector<Seconds>* parts[] = {&cost.forward, &cost.backward_input,
                                         &cost.backward_weight};
  size_t count = cost.overlapped.size();
  for (const auto* part : parts) count = std::max(count, part->size());
  for (size_t i = 0; i < count; ++i) {
    const Seconds backward = one_of(cost.backward_input, i) + one_of(cost.backward_weight, i);
    const Seconds least = std::max(one_of(cost.forward, i), backward);
    if (one_of(cost.overlapped, i) >= least * (1 - 1e-9)) continue;
    given.fail(fmt::format("{} is shorter than its longer part, which takes {}",
                           human(one_of(cost.overlapped, i)), human(least)));
  }
}

Seconds any_seconds(const YamlValue& value) { return value.seconds(); }  // also none

// Seconds of one part of a layer in one pass.
Seconds read_part(YamlMap& pass, const char* part) {
  return pass.require(part, "its seconds in one layer, such as '1.2 ms', or 0").seconds();
}

ForwardParts read_forward_parts(const YamlValue& value) {
  YamlMap map(value);
  const ForwardParts parts{read_part(map, "attention"), read_part(map, "dispatch"),
                           read_part(map, "experts"), read_part(map, "combine")};
  map.finish();
  if (total(parts) == Seconds(0)) value.fail("takes no time: give a part that does");
  return parts;
}

// The input gradients.
BackwardParts read_backward_parts(const YamlValue& value) {
  YamlMap map(value);
  BackwardParts parts;
  parts.attention = read_part(map, "attention");
  parts.dispatch = read_part(map, "dispatch");
  parts.experts = read_part(map, "experts");
  parts.combine = read_part(map, "combine");
  map.finish();
  if (total(parts) == Seconds(0)) value.fail("takes no time: give a part that does");
  return parts;
}

void read_weight_parts(const YamlValue& value, BackwardParts& parts) {
  YamlMap map(value);
  parts.attention_weight = read_part(map, "attention");
  parts.experts_weight = read_part(map, "experts");
  map.finish();
}

// How many layers, and the seconds of each one's parts.
GivenLayers read_layers(const YamlValue& value, CostBasis per, const Scenario& scenario) {
  constexpr long kMostLayers = 1000;
  YamlMap map(value);
  GivenLayers layers;
  const YamlValue count = map.require("count", per == CostBasis::kStage
                                                   ? "layers of a stage, or a list of each one's"
                                                   : "layers of a device, or a list of each one's");
  layers.count = one_or_list(
      count, [](const YamlValue& each) { return static_cast<int>(each.integer(1, kMostLayers)); });
  check_length(count, layers.count.size(), per, scenario);
  constexpr const char* kAllParts = "a map of attention, dispatch, experts and combine";
  layers.forward = read_forward_parts(map.require("forward", kAllParts));
  layers.backward = read_backward_parts(map.require("backward_input", kAllParts));
  read_weight_parts(map.require("backward_weight", "a map of attention and experts"),
                    layers.backward);
  if (const auto share = map.find("exchange_share")) layers.exchange_share = share->number(0, 0.99);
  map.finish();
  return layers;
}

// F, B and W of the parts of their layers, one after the other.
void read_layer_costs(YamlMap& map, const YamlValue& given, const Scenario& scenario,
                      GivenCost& cost) {
  for (const char* key : {"forward", "backward_input", "backward_weight", "overlapped"}) {
    if (const auto beside = map.find(key)) {
      beside->fail_key("stands beside 'layer', from whose parts it follows: give one of the two");
    }
  }
  cost.layers = read_layers(given, cost.per, scenario);
  sum_layers(cost);
}

void read_passes(YamlMap& map, const Scenario& scenario, GivenCost& cost) {
  if (const auto layer = map.find("layer")) return read_layer_costs(map, *layer, scenario, cost);
  const auto times = [&](const char* key, const char* what) {
    return read_times(map.require(key, what), cost.per, scenario);
  };
  cost.forward =
      times("forward", "seconds of F, such as '18.5 ms'; or 'layer', those of its parts");
  cost.backward_input = times("backward_input", "seconds of B, such as '18.1 ms'");
  // W of frozen layers takes none.
  cost.backward_weight =
      read_times(map.require("backward_weight", "seconds of W, such as '9.3 ms'"), cost.per,
                 scenario, any_seconds);
  if (const auto given = map.find("overlapped")) {
    cost.overlapped = read_times(*given, cost.per, scenario);
    check_overlapped(*given, cost);
  }
}

// One share of F and B, or each its own.
SliceShare read_attention_share(const YamlValue& value) {
  if (!value.is_map()) {
    const double share = value.number(0, 1);
    return {share, share};
  }
  YamlMap map(value);
  const SliceShare share{map.require("forward", "the share of F").number(0, 1),
                         map.require("backward_input", "the share of B").number(0, 1)};
  map.finish();
  return share;
}

// Seconds of slices that do not go by their length.
void read_slice_cost(YamlMap& map, const Scenario& scenario, GivenCost& cost) {
  if (const auto share = map.find("attention_share")) {
    cost.attention = read_attention_share(*share);
  }
  const auto given = map.find("fixed");
  if (!given) return;
  YamlMap fixed(*given);
  const auto read = [&](const char* key, const std::vector<Seconds>& pass, double attention) {
    const auto value = fixed.find(key);
    if (!value) return std::vector<Seconds>();
    std::vector<Seconds> seconds = read_times(*value, cost.per, scenario, any_seconds);
    for (size_t i = 0; i < std::max(seconds.size(), pass.size()); ++i) {
      const Seconds most = (1 - attention) * one_of(pass, i);
      if (one_of(seconds, i) <= most * (1 + 1e-9)) continue;
      value->fail(fmt::format("{} is more than the {} of its pass that are not attention",
                              human(one_of(seconds, i)), human(most)));
    }
    return seconds;
  };
  cost.fixed.forward = read("forward", cost.forward, cost.attention.forward);
  cost.fixed.backward_input =
      read("backward_input", cost.backward_input, cost.attention.backward_input);
  cost.fixed.backward_weight = read("backward_weight", cost.backward_weight, 0);
  fixed.finish();
}

}  // namespace

GivenCost read_cost(const YamlValue& value, const Scenario& scenario) {
  YamlMap map(value);
  if (are_measured(map)) return read_measured_cost(map, scenario.file, scenario.vocabulary);
  GivenCost cost;
  cost.where = value.where();
  cost.per = read_basis(map);
  read_passes(map, scenario, cost);
  if (const auto given = map.find("recompute")) {
    cost.recompute = read_times(*given, cost.per, scenario);
  }
  read_slice_cost(map, scenario, cost);
  read_vocabulary_cost(map, scenario, cost);
  const auto copies = [&](const YamlValue& given) {
    return read_times(given, cost.per, scenario, any_seconds);
  };
  read_copy_cost(map, copies, cost);
  const auto optional_seconds = [&map](const char* key) {
    const auto given = map.find(key);
    return given ? given->seconds() : Seconds(0);
  };
  cost.transfer = optional_seconds("transfer");
  if (const auto given = map.find("collective")) read_collectives(*given, scenario, cost);
  cost.optimizer = optional_seconds("optimizer");
  if (const auto message = map.find("message")) {
    cost.message = message->bytes();
    if (map.find("transfer")) message->fail("stands beside 'transfer': give one of the two");
    if (!scenario.cluster) message->fail("needs a cluster, which says how long a message takes");
  }
  map.finish();
  return cost;
}

GivenMemory read_memory(const YamlValue& value, const Scenario& scenario) {
  YamlMap map(value);
  (void)map.find("kind");  // read by memory_is_modelled
  GivenMemory memory;
  memory.per = read_basis(map);
  const auto sizes = [&](const YamlValue& given) {
    auto read = one_or_list(given, [](const YamlValue& each) { return each.bytes(); });
    check_length(given, read.size(), memory.per, scenario);
    return read;
  };
  // A part of the activation that is larger than it would be released without being acquired.
  const auto part = [&](const YamlValue& given) {
    auto read = sizes(given);
    const auto& whole = memory.activation;
    for (size_t i = 0; i < std::max(read.size(), whole.size()); ++i) {
      if (read[read.size() == 1 ? 0 : i] <= whole[whole.size() == 1 ? 0 : i]) continue;
      given.fail("must not be larger than activation, of which it is a part");
    }
    return read;
  };
  memory.activation = sizes(map.require("activation", "bytes that F acquires, such as '3.7 GiB'"));
  memory.weight_stash =
      part(map.require("weight_stash", "bytes that W needs after B, such as '1.6 GiB'"));
  if (const auto given = map.find("checkpoint")) memory.checkpoint = part(*given);
  read_vocabulary_memory(map, scenario, memory);
  map.finish();
  return memory;
}

}  // namespace pipesim
