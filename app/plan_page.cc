#include "app/plan_page.h"

#include <algorithm>
#include <fmt/format.h>

#include "sim/core/data_folder.h"
#include "sim/interop/configurations/configuration.h"
#include "sim/prepare/advice.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim {
namespace {

void add_run_of(HtmlReport& report, size_t number) {
  const PlanRow& row = report.plan_rows()[number];
  const std::string name = fmt::format("row {} of the plan", number + 1);
  const Answer made = answer(prepare_first(read_scenario(YamlSource(name, row.scenario))));
  report.add_run(number, made);
  for (const Framework each : kFrameworks) {
    const std::string framework(to_text(each));
    if (std::ranges::count(row.runs_on, framework) == 0) continue;
    report.add_configuration(number, framework,
                             configuration_of(each, made.made, *made.result.program).text);
  }
}

}  // namespace

void add_planned_row(HtmlReport& report, size_t row) {
  try {
    add_run_of(report, row);
  } catch (const InputError& error) {
    report.add_reason(row, error.what());
  } catch (const InfeasibleError& error) {
    report.add_reason(row, error.what());
  }
}

void add_planned_rows(HtmlReport& report) {
  for (size_t row = 0; row < report.plan_rows().size(); ++row) {
    if (report.plan_rows()[row].drawn) add_planned_row(report, row);
  }
}

std::string plan_page(const std::string& document, const CommandLine& line) {
  HtmlReport report(PIPESIM_VERSION);
  report.add_document({"plan", document});
  report.set_plan_command(line.arguments());
  add_planned_rows(report);
  return report.page(data_folder("report"), line.where(0));
}

}  // namespace pipesim
