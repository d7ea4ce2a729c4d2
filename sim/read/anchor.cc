#include "sim/read/anchor.h"

#include <fmt/format.h>

#include "sim/core/input_text.h"

namespace pipesim {
namespace {

constexpr double kMostFactor = 1e3;
constexpr double kMostSeconds = 1e6;

CostFactors read_factors(YamlMap& root) {
  YamlMap map(root.require("factors", "a map with compute and reduction"));
  CostFactors factors;
  const YamlValue compute = map.require("compute", "the factor on the seconds of kernels");
  factors.compute = compute.number(0, kMostFactor);
  if (factors.compute == 0) compute.fail("kernels take time: expected more than 0");
  if (const auto reduction = map.find("reduction")) {
    factors.reduction = reduction->number(0, kMostFactor);
  }
  map.finish();
  if (const auto fixed = root.find("fixed_seconds")) {
    factors.fixed = Seconds(fixed->number(0, kMostSeconds));
  }
  return factors;
}

// True if the run was of the scenario's model and precision.
bool read_run(const YamlValue& value, const Scenario& scenario) {
  YamlMap run(value);
  const std::string& gpu = scenario.hardware->gpu.name;
  const YamlValue measured_on = run.require("gpu", "the GPU's name in the catalogue");
  if (measured_on.text() != gpu) {
    measured_on.fail(fmt::format("was measured on '{}', but cluster {} has {}", measured_on.text(),
                                 scenario.hardware->name, gpu));
  }
  const std::string model = run.require("model", "the model's name").text();
  const std::string precision = run.require("precision", "bf16, fp16 or fp8").text();
  (void)run.require("scenario", "the file of the run's scenario").text();
  for (const char* key : {"gpus", "num_microbatches", "data_parallel_size"}) {
    if (const auto number = run.find(key)) (void)number->integer(1, 1L << 40);
  }
  for (const char* key : {"measured_seconds", "simulated_seconds", "anchored_seconds"}) {
    (void)run.require(key, "seconds of a step").number(0, kMostSeconds);
  }
  run.finish();
  return model == scenario.modelled->model.name && precision == precision_name(*scenario.modelled);
}

}  // namespace

std::string precision_name(const Modelled& modelled) {
  if (modelled.context.precision == Precision::kFp32) return "fp32";
  return modelled.context.precision == Precision::kFp8 ? "fp8" : "bf16";
}

Anchor read_anchor(const YamlSource& source, const Scenario& scenario) {
  YamlMap root(source.root());
  Anchor anchor;
  anchor.file = source.name();
  anchor.factors = read_factors(root);
  const YamlValue from = root.require("from", "the runs that the factors were found from");
  const auto runs = from.list();
  if (runs.empty()) from.fail("expected at least one run");
  for (const YamlValue& run : runs) {
    anchor.same_model = read_run(run, scenario) || anchor.same_model;
  }
  if (const auto unidentified = root.find("unidentified")) {
    for (const YamlValue& each : unidentified->list()) (void)each.text();
  }
  root.finish();
  return anchor;
}

Anchor read_anchor_file(const YamlValue& file, const Scenario& scenario) {
  const std::string path = file_beside(scenario.file, file.text());
  Anchor anchor = read_anchor(YamlSource::from_file(path, file.where()), scenario);
  anchor.where = file.where();
  return anchor;
}

}  // namespace pipesim
