#include "validate/papers/schedule_runs.h"

#include <algorithm>
#include <fmt/format.h>

#include "sim/band/band.h"
#include "sim/core/csv.h"
#include "sim/report/text/aligned.h"

namespace pipesim {
namespace {

bool same_run(const ScheduleRun& a, const ScheduleRun& b) {
  return a.paper == b.paper && a.model == b.model && a.setting == b.setting &&
         a.schedule == b.schedule;
}

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

}  // namespace

std::vector<ScheduleRun> schedule_runs_of(const std::vector<Compared>& all) {
  std::vector<ScheduleRun> runs;
  for (const Compared& each : all) {
    for (const Cell& cell : each.cells) {
      if (!cell.run || !cell.simulated) continue;
      ScheduleRun run{each.validation->name, cell.run->model, cell.run->setting,
                      cell.run->schedule,    cell.published,  *cell.simulated};
      const bool known = std::ranges::any_of(
          runs, [&run](const ScheduleRun& other) { return same_run(run, other); });
      if (!known) runs.push_back(std::move(run));
    }
  }
  return runs;
}

std::string schedule_runs_csv(const std::vector<ScheduleRun>& runs) {
  std::string text = "paper,model,setting,schedule,published_speed,simulated_speed\n";
  for (const ScheduleRun& run : runs) {
    text += fmt::format("{},{},{},{},{:.6g},{:.6g}\n", csv_field(run.paper), csv_field(run.model),
                        csv_field(run.setting), csv_field(run.schedule), run.published_speed,
                        run.simulated_speed);
  }
  return text;
}

std::string schedule_coverage_text(const std::vector<ScheduleRun>& runs,
                                   const std::vector<ScheduleRun>& known) {
  const auto coverage = coverage_of(runs, known);
  if (coverage.empty()) return "";
  std::vector<Row> rows{{fmt::format("{:.0f}% bands of differences", 100 * kBandLevel), "runs",
                         "pairs", "model left out", "half-width at 0%", "at 10%"}};
  for (const DifferenceCoverage& group : coverage) {
    rows.push_back(
        {group.group, fmt::format("{}", group.runs), fmt::format("{}", group.pairs),
         fmt::format("{} of {} ({:.0f}%)", group.held, group.pairs,
                     100.0 * static_cast<double>(group.held) / static_cast<double>(group.pairs)),
         percent(group.band.high(1) - 1), percent(group.band.high(1.1) - 1)});
  }
  return aligned(rows);
}

}  // namespace pipesim
