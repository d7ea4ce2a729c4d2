// The planner, asked as `pipesim plan` is.
#include "sim/layouts/plan.h"

#include <algorithm>
#include <mutex>
#include <sstream>

#include "app/plan_days.h"
#include "app/plan_options.h"
#include "python/bindings.h"
#include "sim/core/text.h"
#include "sim/layouts/answer.h"
#include "sim/layouts/rows.h"

namespace pipesim {
namespace {

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

PlanCommand parse(const std::vector<std::string>& arguments, const CommandLine& line,
                  const std::vector<const char*>& argv) {
  PlanCommand command;
  Parser parser("pipesim plan", "");
  add_plan_options(parser, command);
  // It would be printed.
  if (std::ranges::find(arguments, "--help") != arguments.end()) {
    throw InputError(line.where("--help"), "help(pipesim.plan) says what a plan is asked");
  }
  try {
    (void)parser.parse(static_cast<int>(argv.size()), argv.data());
  } catch (const OptionError& error) {
    refuse(line, parser, error);
  }
  return command;
}

// The search's progress, written by one thread and read by another.
class Progress {
 public:
  void set(const PlanProgress& progress) {
    const std::lock_guard lock(mutex_);
    progress_ = progress;
  }
  void tell(const py::object& listener, const std::string& cluster) {
    if (listener.is_none()) return;
    const PlanProgress now = [this] {
      const std::lock_guard lock(mutex_);
      return progress_;
    }();
    const auto best = now.best ? std::optional(now.best->value()) : std::nullopt;
    listener(cluster, now.decided, now.points, best);
  }

 private:
  std::mutex mutex_;
  PlanProgress progress_;
};

void search(const PlanCommand& command, const PlanAsked& asked, ClusterPlan& plan,
            const py::object& listener) {
  std::atomic<bool> stop = false;
  Progress progress;
  PlanOptions options = asked_options(command, plan);
  options.stop = [&stop] { return stop.load(); };
  options.progress = [&progress](const PlanProgress& now) { progress.set(now); };
  const auto work = [&] {
    search_rows(plan, options);
    auto& best = plan.result.best;
    const size_t again = std::min(best.size(), static_cast<size_t>(command.contention));
    for (size_t i = 0; i < again && !stop; ++i) {
      best[i].contended = with_contention(question_of(plan, best[i]), best[i]);
    }
    order_rows(best);
    if (!best.empty() && !stop) add_comparisons(command, asked, options, plan);
  };
  const std::string& cluster = plan.question.base.hardware->name;
  heard_by_python(stop, work, [&] { progress.tell(listener, cluster); });
}

// Arguments as on the command line, behind `pipesim plan`: the document of --json, and the table.
py::tuple run_plan(const std::vector<std::string>& arguments, const py::object& listener) {
  std::vector<const char*> argv{"pipesim", "plan"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  const CommandLine line(static_cast<int>(argv.size()), argv.data());
  const PlanCommand command = parse(arguments, line, {argv.begin() + 1, argv.end()});
  PlanAsked asked = read_plan_command(command, line);
  if (command.contention > 0) (void)make_simgrid_engine();  // refuses before seconds of search
  for (ClusterPlan& plan : asked.plans) {
    search(command, asked, plan, listener);
    if (asked.tokens) plan.days_with_failures = days_with_failures(plan, *asked.tokens);
  }
  if (std::ranges::all_of(asked.plans, [](const auto& plan) { return plan.result.best.empty(); })) {
    std::string text;
    const HardwareCatalog catalog = read_all_hardware(line.where("--cluster"));
    for (const ClusterPlan& plan : asked.plans) {
      text += (text.empty() ? "" : "\n") + no_fit_text(plan, catalog.clusters);
    }
    throw InfeasibleError(text);
  }
  std::ostringstream json;
  write_plan_json(json, asked.plans, asked.tokens, PIPESIM_VERSION);
  return py::make_tuple(json.str(), plan_answer(asked.plans, asked.tokens));
}

}  // namespace

void bind_plan(py::module_& module) {
  module.def("plan", run_plan, py::arg("arguments"), py::arg("progress"));
}

}  // namespace pipesim
