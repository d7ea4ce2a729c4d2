#include "sim/read/band.h"

#include <filesystem>
#include <set>
#include <string>

#include "sim/core/data_folder.h"
#include "sim/read/anchor.h"

namespace pipesim {

std::vector<Residual> catalogue_residuals(bool anchored) {
  const std::string path =
      data_folder("catalog") + "/" + (anchored ? "anchored_residuals.csv" : "residuals.csv");
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  return read_residuals(path, {path, 1, 1, ""});
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

std::optional<Band> read_band(const Scenario& scenario) {
  if (!scenario.roofline) return std::nullopt;
  // Read once: a sweep reads thousands of scenarios.
  static const BandModel kPlain = BandModel(catalogue_residuals(false));
  static const BandModel kAnchored = BandModel(catalogue_residuals(true));
  const auto& anchor = scenario.roofline->anchor;
  BandQuery query{.gpu = scenario.hardware->gpu.name,
                  .precision = precision_name(*scenario.modelled),
                  .kind = scenario.modelled->model.experts ? "moe" : "dense",
                  .framework = scenario.framework.name,
                  .year = scenario.framework.year};
  if (!anchor || !anchor->same_model) return kPlain.band(query);
  if (query.framework.empty()) name_newest(kAnchored, query);
  return kAnchored.band(query);
}

}  // namespace pipesim
