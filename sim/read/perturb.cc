#include "sim/read/perturb.h"

#include <fmt/format.h>

namespace pipesim {

Perturbation read_perturb(const YamlValue& value, const Scenario& scenario) {
  YamlMap map(value);
  Perturbation perturb;
  const long ranks = static_cast<long>(scenario.parallel.pipeline) * scenario.parallel.pipelines;
  if (const auto seed = map.find("seed")) {
    perturb.seed = static_cast<std::uint64_t>(seed->integer(0, 1L << 53));
  }
  if (const auto jitter = map.find("jitter")) perturb.jitter = jitter->number(0, 1);
  if (const auto runs = map.find("runs")) perturb.runs = static_cast<int>(runs->integer(1, 10000));
  if (const auto list = map.find("stragglers")) {
    for (const YamlValue& each : list->list()) {
      YamlMap of(each);
      SpeedChange change;
      change.rank = static_cast<int>(of.require("rank", "the slow rank").integer(0, ranks - 1));
      // A factor on seconds, as for links; the engine wants speed.
      change.factor = 1 / of.require("factor", "how many times slower").number(0.001, 1000);
      if (const auto from = of.find("from")) {
        change.at_seconds = from->seconds().value();
        if (change.at_seconds > 0 && scenario.gpu != GpuModel::kHost) {
          from->fail("a rank that slows down later needs engine: {name: simgrid, gpu: host}");
        }
      }
      of.finish();
      for (const SpeedChange& other : perturb.stragglers) {
        const bool again = other.rank == change.rank && scenario.gpu == GpuModel::kTimer;
        if (again || (other.rank == change.rank && other.at_seconds >= change.at_seconds)) {
          each.fail(fmt::format("rank {} slows down already (later entries need a later 'from')",
                                change.rank));
        }
      }
      perturb.stragglers.push_back(change);
    }
  }
  if (const auto list = map.find("links")) {
    for (const YamlValue& each : list->list()) {
      YamlMap of(each);
      DegradedLink link;
      link.from = static_cast<int>(of.require("from", "the sending rank").integer(0, ranks - 1));
      link.to = static_cast<int>(of.require("to", "the receiving rank").integer(0, ranks - 1));
      link.factor = of.require("factor", "how many times slower").number(0.001, 1000);
      if (link.from == link.to) each.fail("a rank sends no message to itself");
      of.finish();
      perturb.links.push_back(link);
    }
  }
  map.finish();
  return perturb;
}

}  // namespace pipesim
