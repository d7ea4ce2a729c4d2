#include "sim/read/band.h"

#include <filesystem>
#include <set>
#include <string>

#include "sim/core/data_folder.h"
#include "sim/read/anchor.h"

namespace pipesim {

namespace {

// A file of the catalogue, or nothing where there is no such file.
std::optional<std::string> catalogue_file(const std::string& name) {
  const std::string path = data_folder("catalog") + "/" + name;
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? std::optional(path) : std::nullopt;
}

}  // namespace

std::vector<Residual> catalogue_residuals(bool anchored) {
  const auto path = catalogue_file(anchored ? "anchored_residuals.csv" : "residuals.csv");
  if (!path) return {};
  return read_residuals(*path, {*path, 1, 1, ""});
}

std::vector<ScheduleRun> catalogue_schedule_runs() {
  const auto path = catalogue_file("schedule_runs.csv");
  if (!path) return {};
  return read_schedule_runs(*path, {*path, 1, 1, ""});
}

std::optional<DifferenceBand> read_difference_band(const Scenario& scenario) {
  if (!scenario.roofline) return std::nullopt;
  static const auto kBand = difference_band(catalogue_schedule_runs());
  return kBand;
}

namespace {

// What software does alike in all runs is in the anchor: the newest of the same set-up stands for
// it.
void name_newest(const BandModel& model, BandQuery& query) {
  for (const Residual& row : model.rows()) {
    const bool alike =
        row.gpu == query.gpu && row.precision == query.precision && row.kind == query.kind;
    if (!alike || row.year <= query.year) continue;
    query.framework = row.framework;
    query.year = row.year;
  }
}

}  // namespace

std::vector<std::string> measured_frameworks() {
  std::set<std::string> names;
  for (const Residual& row : catalogue_residuals(false)) names.insert(row.framework);
  return {names.begin(), names.end()};
}

namespace {

// Of a GPU known from its data sheet alone.
std::optional<Band> widened(std::optional<Band> band, double spread) {
  if (!band || spread == 0) return band;
  band->low /= 1 + spread;
  band->high *= 1 + spread;
  return band;
}

}  // namespace

std::optional<Band> read_band(const Scenario& scenario) {
  if (!scenario.roofline) return std::nullopt;
  // Read once: a sweep reads thousands of scenarios.
  static const BandModel kPlain = BandModel(catalogue_residuals(false));
  static const BandModel kAnchored = BandModel(catalogue_residuals(true));
  const auto& anchor = scenario.roofline->anchor;
  const Gpu& gpu = scenario.hardware->gpu;
  BandQuery query{.gpu = gpu.like.empty() ? gpu.name : gpu.like,
                  .precision = precision_name(*scenario.modelled),
                  .kind = scenario.modelled->model.experts ? "moe" : "dense",
                  .framework = scenario.framework.name,
                  .year = scenario.framework.year};
  if (!anchor || !anchor->same_model) {
    return widened(kPlain.band(query), gpu.spread);
  }
  if (query.framework.empty()) name_newest(kAnchored, query);
  return widened(kAnchored.band(query), gpu.spread);
}

}  // namespace pipesim
