// pipesim workbench: a page on which a scenario's schedules are changed by hand.
#include "sim/report/workbench/workbench.h"

#include <fmt/format.h>
#include <iostream>
#include <memory>

#include "app/commands.h"
#include "app/common_options.h"
#include "app/comparison.h"
#include "app/refusals.h"
#include "sim/core/data_folder.h"
#include "sim/read/scenario.h"

namespace pipesim {
namespace {

struct WorkbenchOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string output;
};

int workbench(const WorkbenchOptions& options, const CommandLine& line) {
  Scenario scenario =
      read_scenario_file(options.file, line.where(options.file), line.overrides(options.overrides));
  check_writable({options.output}, line);
  Workbench bench(PIPESIM_VERSION, options.file, options.overrides);
  const auto refused =
      each_feasible(std::move(scenario), [&bench](const Case& made) { bench.add(made); });
  const std::string page = bench.page(data_folder("report"), line.where(0));
  write_outputs({{options.output, line.of_option(options.output),
                  [&page](std::ostream& out) { out << page; }}});
  std::cerr << refusals(refused);
  return refused.empty() ? kDone : kFailed;
}

}  // namespace

Subcommand add_workbench(Parser& program) {
  auto options = std::make_shared<WorkbenchOptions>();
  Parser& parser = program.add_command(
      "workbench", "Write a page on which schedules are changed by hand",
      "  pipesim workbench scenarios/quickstart.yaml -o bench.html\n"
      "  pipesim workbench scenarios/quickstart.yaml schedule=zb-h1 batch.num_microbatches=8 "
      "-o bench.html");
  add_scenario(parser, options->file, options->overrides);
  add_output(parser, options->output).required();
  return {&parser, [options](const CommandLine& line) { return workbench(*options, line); }};
}

}  // namespace pipesim
