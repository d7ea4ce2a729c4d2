#include "sim/scenario/read_offload.h"

#include <fmt/format.h>
#include <utility>
#include <vector>

namespace pipesim {
namespace {

// One value for all devices or stages, or a list of one for each.
std::vector<Seconds> read_copies(const YamlValue& value, CostBasis per, const Scenario& scenario) {
  if (!value.is_list()) return {value.seconds()};
  std::vector<Seconds> seconds;
  for (const YamlValue& each : value.list()) seconds.push_back(each.seconds());
  const bool matches = per == CostBasis::kStage || seconds.size() == 1 ||
                       std::cmp_equal(seconds.size(), scenario.parallel.pipeline);
  if (!matches) {
    value.fail(fmt::format("expected one value or one per device ({}), not {}",
                           scenario.parallel.pipeline, seconds.size()));
  }
  return seconds;
}

}  // namespace

std::optional<Offload> read_offload(const YamlValue& value) {
  Offload offload;
  offload.where = value.where();
  if (!value.is_map()) {
    if (!value.flag()) return std::nullopt;
    return offload;
  }
  YamlMap map(value);
  if (const auto chunks = map.find("chunks")) {
    offload.chunks = static_cast<int>(chunks->integer(1, 1024));
  }
  if (const auto prefetch = map.find("prefetch")) offload.prefetch = prefetch->number(0, 1e6);
  if (const auto devices = map.find("devices_per_link")) {
    offload.devices_per_link = static_cast<int>(devices->integer(1, 1024));
  }
  map.finish();
  return offload;
}

void read_copy_cost(YamlMap& map, const Scenario& scenario, GivenCost& cost) {
  const auto out = map.find("copy_out");
  const auto in = map.find("copy_in");
  if (out.has_value() != in.has_value()) {
    (out ? *out : *in).fail("needs both 'copy_out' and 'copy_in'");
  }
  if (out) {
    cost.copy_out = read_copies(*out, cost.per, scenario);
    cost.copy_in = read_copies(*in, cost.per, scenario);
  }
  if (const auto factor = map.find("copy_solo_factor")) {
    if (!out) factor->fail("is of 'copy_out' and 'copy_in', which are not given");
    cost.copy_solo_factor = factor->number(1e-6, 1);
  }
}

}  // namespace pipesim
