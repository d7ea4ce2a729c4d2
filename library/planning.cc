#include "library/planning.h"

#include <algorithm>
#include <sstream>
#include <string_view>

#include "app/plan_days.h"
#include "sim/core/text.h"
#include "sim/layouts/answer.h"
#include "sim/layouts/rows.h"

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

// Says where the mistake is and what was probably meant, as the command does.
[[noreturn]] void refuse(const CommandLine& line, const Parser& parser, const OptionError& error) {
  const auto names = parser.option_names();
  for (size_t i = 0; i < line.arguments().size(); ++i) {
    const std::string& argument = line.arguments()[i];
    if (!argument.starts_with("--")) continue;
    if (std::ranges::find(names, argument) == names.end()) {
      throw InputError(line.where(i),
                       "unknown option '" + argument + "'" + suggestion(argument, names));
    }
    if (std::string_view(error.what()).find(argument) != std::string_view::npos) {
      throw InputError(line.where(i), error.what());
    }
  }
  throw InputError(line.where(line.arguments().size()), error.what());
}

PlanCommand parse(const std::vector<std::string>& arguments, const CommandLine& line) {
  PlanCommand command;
  Parser parser("pipesim plan", "");
  add_plan_options(parser, command);
  // It would be printed.
  if (std::ranges::find(arguments, "--help") != arguments.end()) {
    throw InputError(line.where("--help"),
                     "help(pipesim.plan) and docs/how-to/plan.md say what a plan is asked");
  }
  const auto argv = argv_of(arguments);
  try {
    (void)parser.parse(static_cast<int>(argv.size()) - 1, argv.data() + 1);
  } catch (const OptionError& error) {
    refuse(line, parser, error);
  }
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

void Planning::search(size_t i, const std::function<bool()>& stop,
                      const std::function<void(const PlanProgress&)>& progress) {
  ClusterPlan& plan = asked_.plans[i];
  PlanOptions options = asked_options(command_, plan);
  options.stop = stop;
  options.progress = progress;
  search_rows(plan, options);
  auto& best = plan.result.best;
  const size_t again = std::min(best.size(), static_cast<size_t>(command_.contention));
  for (size_t row = 0; row < again && !stop(); ++row) {
    best[row].contended = with_contention(question_of(plan, best[row]), best[row]);
  }
  order_rows(best);
  if (!best.empty() && !stop()) add_comparisons(command_, asked_, options, plan);
  if (asked_.tokens) plan.days_with_failures = days_with_failures(plan, *asked_.tokens);
}

void Planning::check_found() const {
  const auto is_empty = [](const ClusterPlan& plan) { return plan.result.best.empty(); };
  if (!std::ranges::all_of(asked_.plans, is_empty)) return;
  std::string text;
  const HardwareCatalog catalog = read_all_hardware(line_.where("--cluster"));
  for (const ClusterPlan& plan : asked_.plans) {
    text += (text.empty() ? "" : "\n") + no_fit_text(plan, catalog.clusters);
  }
  throw InfeasibleError(text);
}

std::string Planning::json() const {
  std::ostringstream json;
  write_plan_json(json, asked_.plans, asked_.tokens, PIPESIM_VERSION);
  return std::move(json).str();
}

std::string Planning::text() const { return plan_answer(asked_.plans, asked_.tokens); }

}  // namespace pipesim
