#include "sim/read/perturb.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace pipesim {

namespace {

class PerturbReader {
 public:
  explicit PerturbReader(const Scenario& scenario)
      : scenario_(scenario),
        ranks_(static_cast<long>(scenario.parallel.pipeline) * scenario.parallel.pipelines) {}

  Perturbation read(const YamlValue& value) {
    YamlMap map(value);
    if (const auto seed = map.find("seed")) {
      perturb_.seed = static_cast<std::uint64_t>(seed->integer(0, 1L << 53));
    }
    if (const auto jitter = map.find("jitter")) perturb_.jitter = jitter->number(0, 1);
    if (const auto runs = map.find("runs")) {
      perturb_.runs = static_cast<int>(runs->integer(1, 10000));
    }
    if (const auto list = map.find("stragglers")) {
      for (const YamlValue& each : list->list()) add_straggler(each);
    }
    if (const auto list = map.find("links")) {
      for (const YamlValue& each : list->list()) add_link(each);
    }
    map.finish();
    return std::move(perturb_);
  }

 private:
  int rank(YamlMap& of, const char* key, const char* what) const {
    return static_cast<int>(of.require(key, what).integer(0, ranks_ - 1));
  }
  static double factor(YamlMap& of) {
    return of.require("factor", "how many times slower").number(0.001, 1000);
  }

  void add_straggler(const YamlValue& value) {
    YamlMap of(value);
    SpeedChange change;
    change.rank = rank(of, "rank", "the slow rank");
    // A factor on seconds, as for links; the engine wants speed.
    change.factor = 1 / factor(of);
    if (const auto from = of.find("from")) {
      change.at_seconds = from->seconds().value();
      if (change.at_seconds > 0 && scenario_.gpu != GpuModel::kHost) {
        from->fail("a rank that slows down later needs engine: {name: simgrid, gpu: host}");
      }
    }
    of.finish();
    const auto conflicts = [&](const SpeedChange& other) {
      return other.rank == change.rank &&
             (scenario_.gpu == GpuModel::kTimer || other.at_seconds >= change.at_seconds);
    };
    if (std::ranges::any_of(perturb_.stragglers, conflicts)) {
      value.fail(fmt::format("rank {} slows down already (later entries need a later 'from')",
                             change.rank));
    }
    perturb_.stragglers.push_back(change);
  }

  void add_link(const YamlValue& value) {
    YamlMap of(value);
    DegradedLink link;
    link.from = rank(of, "from", "the sending rank");
    link.to = rank(of, "to", "the receiving rank");
    link.factor = factor(of);
    if (link.from == link.to) value.fail("a rank sends no message to itself");
    of.finish();
    perturb_.links.push_back(link);
  }

  const Scenario& scenario_;
  long ranks_;
  Perturbation perturb_;
};

}  // namespace

Perturbation read_perturb(const YamlValue& value, const Scenario& scenario) {
  return PerturbReader(scenario).read(value);
}

}  // namespace pipesim
