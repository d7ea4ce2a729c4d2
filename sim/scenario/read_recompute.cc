#include "sim/scenario/read_recompute.h"

#include <fmt/format.h>
#include <string>
#include <vector>

namespace pipesim {
namespace {

void read_granularity(const YamlValue& value, Recompute& recompute) {
  static const std::vector<std::string> kGranularities{"none", "selective", "full"};
  const std::string granularity = value.choice(kGranularities);
  recompute.full = granularity == "full";
  recompute.selective = granularity == "selective";
}

}  // namespace

Recompute read_recompute(const YamlValue& value) {
  Recompute recompute;
  recompute.where = value.where();
  if (!value.is_map()) {
    read_granularity(value, recompute);
    return recompute;
  }
  YamlMap map(value);
  read_granularity(map.require("granularity", "none, selective or full"), recompute);
  if (const auto chunks = map.find("chunks")) {
    if (!recompute.full) chunks->fail("is of granularity 'full'");
    recompute.chunks = static_cast<int>(chunks->integer(1, 1024));
  }
  map.finish();
  return recompute;
}

void settle_recompute(YamlMap& root, Scenario& scenario) {
  const auto given = root.find("recompute");
  const Recompute common = given ? read_recompute(*given) : Recompute{};
  for (ScheduleChoice& choice : scenario.schedules) {
    if (!choice.recompute) choice.recompute = common;
    const Recompute& recompute = *choice.recompute;
    if (recompute.selective && !scenario.modelled) {
      throw InputError(recompute.where,
                       "selective recomputation needs a model, which says what attention keeps; "
                       "'full' recomputes whole chunks ('chunks' says how many)");
    }
    if (recompute.chunks.value_or(0) <= chunks_of(choice)) continue;
    throw InputError(recompute.where,
                     fmt::format("{} chunks are to recompute, but {} has {} per device",
                                 *recompute.chunks, choice.name, chunks_of(choice)));
  }
}

}  // namespace pipesim
