#include "library/planning.h"

#include <algorithm>
#include <fmt/format.h>
#include <sstream>
#include <utility>

#include "app/plan_days.h"
#include "app/plan_search.h"
#include "app/refused_options.h"
#include "sim/core/error.h"
#include "sim/layouts/answer.h"
#include "sim/layouts/report.h"

namespace pipesim {
namespace {

std::vector<const char*> argv_of(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv{"pipesim", "plan"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  return argv;
}

CommandLine line_of(const std::vector<std::string>& arguments) {
  const auto argv = argv_of(arguments);
  return {static_cast<int>(argv.size()), argv.data()};
}

// Options that only files and the terminal answer: a program has the plan's values.
void refuse_outputs(const PlanCommand& command, const CommandLine& line) {
  const auto refuse = [](const char* option, const Location& where) {
    throw InputError(where, fmt::format("'{}' is of the command alone: a program is given layouts, "
                                        "document and text, and writes what it wants of them",
                                        option));
  };
  const std::pair<const char*, const std::string&> files[] = {{"--json", command.json},
                                                              {"--csv", command.csv},
                                                              {"--html", command.html},
                                                              {"--output", command.output},
                                                              {"--export", command.configurations}};
  for (const auto& [option, path] : files) {
    if (!path.empty()) refuse(option, line.where(option, path));
  }
  if (command.wide) refuse("--wide", line.where("--wide"));
  if (!command.why.empty()) refuse("--why", line.where("--why"));
}

PlanCommand parse(const std::vector<std::string>& arguments, const CommandLine& line) {
  PlanCommand command;
  Parser parser("pipesim plan", "");
  add_plan_options(parser, command);
  for (const char* help : {"-h", "--help"}) {
    if (std::ranges::find(arguments, help) == arguments.end()) continue;
    throw InputError(line.where(help), "a program has no help page: docs/how-to/plan.md");
  }
  const auto argv = argv_of(arguments);
  try {
    (void)parser.parse(static_cast<int>(argv.size()) - 1, argv.data() + 1);
  } catch (const OptionError& error) {
    refuse_options(line, parser, error);
  }
  refuse_outputs(command, line);
  return command;
}

}  // namespace

Planning::Planning(const std::vector<std::string>& arguments)
    : line_(line_of(arguments)),
      command_(parse(arguments, line_)),
      asked_(read_plan_command(command_, line_)) {
  if (command_.contention > 0) (void)make_simgrid_engine();  // refuses before seconds of search
}

const std::string& Planning::cluster(size_t i) const {
  return asked_.plans[i].question.base.hardware->name;
}

void Planning::search(size_t i, const std::atomic<bool>& stop,
                      const std::function<void(const PlanProgress&)>& progress) {
  ClusterPlan& plan = asked_.plans[i];
  search_plan(command_, asked_, {[&stop] { return stop.load(); }, progress, [](size_t) {}, stop},
              plan);
  if (asked_.tokens) plan.days_with_failures = days_with_failures(plan, *asked_.tokens);
}

void Planning::check_found() const {
  const auto is_empty = [](const ClusterPlan& plan) { return plan.result.best.empty(); };
  if (std::ranges::all_of(asked_.plans, is_empty)) {
    nothing_fits(asked_.plans, line_.where("--cluster"));
  }
}

std::string Planning::json() const {
  std::ostringstream json;
  write_plan_json(json, asked_.plans, asked_.tokens, PIPESIM_VERSION);
  return std::move(json).str();
}

std::string Planning::text() const { return plan_answer(asked_.plans, asked_.tokens); }

}  // namespace pipesim
