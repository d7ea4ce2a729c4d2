#include "sim/read/reliability.h"

#include "sim/core/data_folder.h"
#include "sim/read/curves.h"

namespace pipesim {
namespace {

constexpr double kMostEvents = 1e6;  // per 1000 node-days

double rate_of(const YamlValue& value) { return value.number(0, kMostEvents) / kThousandNodeDays; }

Reliability read_catalogue() {
  const std::string path = data_folder("catalog") + "/reliability.yaml";
  const YamlSource source = YamlSource::from_file(path, {path, 0, 0, ""});
  YamlMap map(source.root());
  std::vector<Sourced> numbers;
  Reliability usual;
  NumberGroup interruptions(map, "interruptions", numbers);
  usual.failure_rate = rate_of(interruptions.number("failures_per_1000_node_days"));
  interruptions.finish();
  NumberGroup recovery(map, "recovery", numbers);
  usual.restart = recovery.number("restart").seconds();
  usual.repair = recovery.number("repair").seconds();
  recovery.finish();
  NumberGroup checkpoints(map, "checkpoints", numbers);
  usual.checkpoint_bandwidth = checkpoints.bandwidth("bandwidth");
  checkpoints.finish();
  NumberGroup slow(map, "slow_nodes", numbers);
  usual.slow_rate = rate_of(slow.number("slow_per_1000_node_days"));
  usual.slow_factor = slow.number("factor").number(1, 1e3);
  usual.slow_found = slow.number("found_after").seconds();
  slow.finish();
  map.finish();
  return usual;
}

void read_checkpoint(const YamlValue& value, Reliability& reliability) {
  YamlMap map(value);
  if (const auto size = map.find("size")) reliability.checkpoint_size = size->bytes();
  if (const auto bandwidth = map.find("bandwidth")) {
    reliability.checkpoint_bandwidth = positive_bandwidth(*bandwidth);
  }
  if (const auto interval = map.find("interval")) {
    reliability.checkpoint_interval = positive_seconds(*interval);
  }
  map.finish();
}

void read_slow(const YamlValue& value, Reliability& reliability) {
  YamlMap map(value);
  reliability.slow_rate = rate_of(map.require("per_1000_node_days", "how often a node turns slow"));
  reliability.slow_factor =
      map.require("factor", "how many times longer an iteration takes").number(1, 1e3);
  if (const auto found = map.find("found_after")) {
    reliability.slow_found = positive_seconds(*found);
  }
  map.finish();
}

}  // namespace

Reliability usual_reliability() {
  static const Reliability kUsual = read_catalogue();
  return kUsual;
}

Reliability read_reliability(const YamlValue& value) {
  YamlMap map(value);
  Reliability reliability = usual_reliability();
  if (const auto rate = map.find("failures_per_1000_node_days")) {
    reliability.failure_rate = rate_of(*rate);
  }
  if (const auto restart = map.find("restart")) reliability.restart = restart->seconds();
  if (const auto repair = map.find("repair")) reliability.repair = positive_seconds(*repair);
  if (const auto spare = map.find("spare_nodes")) {
    reliability.spare_nodes = static_cast<int>(spare->integer(0, 1 << 20));
  }
  if (const auto checkpoint = map.find("checkpoint")) read_checkpoint(*checkpoint, reliability);
  if (const auto slow = map.find("slow_nodes")) read_slow(*slow, reliability);
  map.finish();
  return reliability;
}

}  // namespace pipesim
