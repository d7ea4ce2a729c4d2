#include "validate/papers/runs/bands.h"

#include <cmath>
#include <fmt/format.h>
#include <map>
#include <optional>

#include "sim/band/band.h"
#include "sim/report/text/aligned.h"

namespace pipesim {
namespace {

bool counts(const TrainingRun& run) {
  return run.quantity == "seconds" && run.relative_error() && !run.anchor;
}

Residual residual_of(const TrainingRun& run) {
  return {run.id,
          run.gpu,
          run.precision,
          run.kind,
          run.framework,
          run.year,
          std::log(run.published / *run.simulated),
          run.shape,
          run.gpus,
          run.network};
}

std::string held_text(const BandCoverage& group) {
  if (group.near == 0) return "no run near";
  return fmt::format("{} of {} ({:.0f}%)", group.held, group.near,
                     100.0 * static_cast<double>(group.held) / static_cast<double>(group.near));
}

std::string width_text(const BandCoverage& group) {
  return group.near == 0 ? "" : fmt::format("{:.1f}%", 100 * group.half_width);
}

}  // namespace

std::vector<Residual> residuals_of(const TrainingRuns& all) {
  std::vector<Residual> residuals;
  for (const TrainingRun& run : all.runs) {
    if (counts(run)) residuals.push_back(residual_of(run));
  }
  return residuals;
}

void add_bands(TrainingRuns& all, const std::vector<Residual>& of_catalogue) {
  const auto rows = of_catalogue.empty() ? residuals_of(all) : of_catalogue;
  const auto bands = bands_without_their_groups(rows);
  std::map<std::string, std::optional<Band>> known;
  for (size_t i = 0; i < rows.size(); ++i) known[rows[i].id] = bands[i];
  const BandModel model(rows);
  for (TrainingRun& run : all.runs) {
    if (!counts(run)) continue;
    const auto found = known.find(run.id);
    const auto band =
        found != known.end() ? found->second : model.interval(query_of(residual_of(run)));
    if (!band) continue;
    run.low = band->low * *run.simulated;
    run.high = band->high * *run.simulated;
  }
}

std::string coverage_text(const TrainingRuns& all) {
  const auto residuals = residuals_of(all);
  const auto without_group = coverage_of(residuals);
  const auto without_row = coverage_within_groups(residuals);
  std::vector<Row> rows{{fmt::format("{:.0f}% bands", 100 * kBandLevel), "rows", "group left out",
                         "half-width", "row left out", "half-width"}};
  for (size_t i = 0; i < without_group.size(); ++i) {
    const BandCoverage& group = without_group[i];
    rows.push_back({group.group, fmt::format("{}", group.rows), held_text(group), width_text(group),
                    held_text(without_row[i]), width_text(without_row[i])});
  }
  return aligned(rows);
}

}  // namespace pipesim
