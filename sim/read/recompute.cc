#include "sim/read/recompute.h"

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <vector>

namespace pipesim {
namespace {

RecomputeGranularity read_granularity(const YamlValue& value) {
  static const std::vector<std::string> kNames(kRecomputeGranularities.begin(),
                                               kRecomputeGranularities.end());
  const auto found = std::ranges::find(kNames, value.choice(kNames));
  return static_cast<RecomputeGranularity>(found - kNames.begin());
}

}  // namespace

Recompute read_recompute(const YamlValue& value) {
  Recompute recompute;
  recompute.where = value.where();
  if (!value.is_map()) {
    recompute.granularity = read_granularity(value);
    return recompute;
  }
  YamlMap map(value);
  recompute.granularity =
      read_granularity(map.require("granularity", "none, selective, pointwise or full"));
  if (const auto chunks = map.find("chunks")) {
    if (recompute.granularity != RecomputeGranularity::kFull)
      chunks->fail("is of granularity 'full'");
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
    const bool of_layers = recompute.granularity == RecomputeGranularity::kSelective ||
                           recompute.granularity == RecomputeGranularity::kPointwise;
    if (of_layers && !scenario.modelled) {
      throw InputError(recompute.where,
                       fmt::format("{} recomputation needs a model, which says what layers keep; "
                                   "'full' recomputes whole chunks ('chunks' says how many)",
                                   to_text(recompute.granularity)));
    }
    if (recompute.chunks.value_or(0) <= chunks_of(choice)) continue;
    throw InputError(recompute.where,
                     fmt::format("{} chunks are to recompute, but {} has {} per device",
                                 *recompute.chunks, choice.name, chunks_of(choice)));
  }
}

}  // namespace pipesim
