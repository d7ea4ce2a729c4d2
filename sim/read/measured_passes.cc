#include "sim/read/measured_passes.h"

#include <fmt/format.h>
#include <memory>

#include "sim/core/input_text.h"

namespace pipesim {
namespace {

// W's share of a backward that was measured as a whole: B and W are as many matmuls of as many
// FLOPs. An assumption, which attention (in B alone) lowers.
constexpr double kWeightShare = 0.5;

// The numbers under forward, backward and so on. Counts and spreads are for people.
struct Kind {
  Seconds mean;
  Seconds launch;
};

Kind read_kind(const YamlValue& value) {
  YamlMap map(value);
  Kind kind{map.require("mean", "mean seconds of the pass").seconds(), {}};
  if (const auto launch = map.find("launch")) kind.launch = launch->seconds();
  if (const auto spread = map.find("spread")) (void)spread->seconds();
  if (const auto count = map.find("count")) (void)count->integer(0, 1L << 40);
  map.finish();
  if (kind.mean <= Seconds(0)) value.fail("the mean must be greater than 0");
  return kind;
}

StageOfRun read_stage(const YamlValue& value, double weight_share) {
  YamlMap map(value);
  StageOfRun stage;
  for (const char* place : {"device", "chunk"}) {
    if (const auto number = map.find(place)) (void)number->integer(0, 1 << 20);
  }
  const Kind forward = read_kind(map.require("forward", "the stage's forward"));
  stage.forward = forward.mean;
  stage.launch_forward = forward.launch;
  if (const auto whole = map.find("backward")) {
    const Kind backward = read_kind(*whole);
    stage.backward_weight = weight_share * backward.mean;
    stage.backward_input = backward.mean - stage.backward_weight;
    stage.launch_backward = backward.launch;
  } else {
    const Kind input =
        read_kind(map.require("backward_input", "its backward (or 'backward': B and W together)"));
    const Kind weight = read_kind(map.require("backward_weight", "its gradient of the weights"));
    stage.backward_input = input.mean;
    stage.launch_backward = input.launch;
    stage.backward_weight = weight.mean;
    stage.launch_weight = weight.launch;
  }
  map.finish();
  return stage;
}

}  // namespace

MeasuredPasses read_measured_passes(const YamlSource& source, double weight_share) {
  constexpr const char* kSchema = "pipesim-passes/1";
  YamlMap root(source.root());
  const YamlValue schema = root.require("schema", kSchema);
  if (schema.text() != kSchema) schema.fail(fmt::format("expected {}", kSchema));
  MeasuredPasses measured;
  measured.file = source.name();
  (void)root.find("run");  // what was run, for people
  for (const YamlValue& stage : root.require("stages", "a list, in forward order").list()) {
    measured.stages.push_back(read_stage(stage, weight_share));
  }
  if (measured.stages.empty()) root.value().fail("expected at least one stage");
  const auto seconds = [&root](const char* key) {
    const auto value = root.find(key);
    return value ? value->seconds() : Seconds(0);
  };
  measured.message = seconds("message");
  measured.opening = seconds("opening");
  measured.closing = seconds("closing");
  root.finish();
  return measured;
}

GivenCost read_measured_cost(YamlMap& map, const std::string& scenario_file,
                             VocabularyPlacement vocabulary) {
  if (is_sharded(vocabulary)) {
    map.value().fail("a run's passes say nothing of a vocabulary that all devices share");
  }
  GivenCost cost;
  cost.where = map.value().where();
  const auto share = map.find("weight_share");
  const YamlValue file = map.require("passes", "a file that 'pipesim import' wrote");
  const YamlSource source =
      YamlSource::from_file(file_beside(scenario_file, file.text()), file.where());
  cost.passes = std::make_shared<const MeasuredPasses>(
      read_measured_passes(source, share ? share->number(0.01, 0.99) : kWeightShare));
  const auto seconds = [&map](const char* key) {
    const auto given = map.find(key);
    return given ? given->seconds() : Seconds(0);
  };
  cost.collective = seconds("collective");
  cost.optimizer = seconds("optimizer") + cost.passes->opening + cost.passes->closing;
  map.finish();
  return cost;
}

}  // namespace pipesim
