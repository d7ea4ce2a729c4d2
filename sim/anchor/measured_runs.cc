#include "sim/anchor/measured_runs.h"

#include <fmt/format.h>

#include "sim/core/input_text.h"
#include "sim/interop/megatron/log.h"
#include "sim/read/scenario.h"

namespace pipesim {
namespace {

Seconds measured_seconds(const MeasuredText& measured, const Scenario& scenario) {
  if (measured.log) {
    return steps_of_log(read_input(*measured.log, measured.where), scenario, measured.where).median;
  }
  const YamlSource source(
      "measured", "measured:", {{"measured", *measured.seconds, measured.where, measured.where}});
  YamlMap map(source.root());
  const YamlValue value = map.require("measured", "seconds of a step, such as '19.78 s'");
  const Seconds seconds = value.seconds();
  if (seconds <= Seconds(0)) value.fail("a step takes time: expected more than 0");
  return seconds;
}

MeasuredStep read_entry(const YamlValue& value, const std::string& file,
                        std::vector<Override> overrides) {
  YamlMap map(value);
  const YamlValue scenario = map.require("scenario", "the file of a scenario");
  std::string name = scenario.text();
  if (const auto set = map.find("set")) {
    for (const auto& [key, each] : set->entries()) {
      overrides.push_back({key, each.one_line(), each.key_where(), each.where()});
      name += fmt::format(" {}={}", key, each.one_line());
    }
  }
  const auto measured = map.find("measured");
  const auto log = map.find("log");
  if (measured.has_value() == log.has_value()) value.fail("expected one of 'measured' and 'log'");
  MeasuredText text;
  if (measured) text = {measured->text(), {}, measured->where()};
  if (log) text = {{}, file_beside(file, log->text()), log->where()};
  map.finish();
  MeasuredStep run = read_measured_run(file_beside(file, scenario.text()), scenario.where(),
                                       std::move(overrides), text);
  run.name = name;
  return run;
}

}  // namespace

void check_measurable(const Scenario& scenario, const Location& where) {
  if (scenario.schedules.size() > 1) {
    throw InputError(scenario.schedules[1].where,
                     "a run was measured with one schedule: name it, as in schedule=1f1b");
  }
  if (!scenario.roofline) {
    throw InputError(where, "its costs are given: an anchor is for costs that follow from a model");
  }
  if (const auto& anchor = scenario.roofline->anchor) {
    throw InputError(anchor->where, "has an anchor already: leave cost.anchor out");
  }
}

MeasuredStep read_measured_run(const std::string& scenario, const Location& where,
                               std::vector<Override> overrides, const MeasuredText& measured) {
  MeasuredStep run{read_scenario_file(scenario, where, std::move(overrides)), {}, scenario};
  check_measurable(run.scenario, where);
  run.measured = measured_seconds(measured, run.scenario);
  return run;
}

std::vector<MeasuredStep> read_measured_runs(const std::string& file, const Location& where,
                                             const std::vector<Override>& overrides) {
  const YamlSource source = YamlSource::from_file(file, where);
  YamlMap root(source.root());
  const YamlValue list = root.require("runs", "a list of {scenario, measured}");
  std::vector<MeasuredStep> runs;
  for (const YamlValue& each : list.list()) runs.push_back(read_entry(each, file, overrides));
  if (runs.empty()) list.fail("expected at least one run");
  root.finish();
  return runs;
}

}  // namespace pipesim
