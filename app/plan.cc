// pipesim plan: the fastest layouts of a model on so many GPUs.
#include "sim/layouts/plan.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iostream>
#include <memory>
#include <sstream>

#include "app/commands.h"
#include "app/plan_days.h"
#include "app/plan_options.h"
#include "app/plan_page.h"
#include "app/plan_search.h"
#include "app/progress.h"
#include "sim/core/text.h"
#include "sim/layouts/answer.h"
#include "sim/read/hardware.h"

namespace pipesim {
namespace {

// When the first Ctrl-C came; the second ends the program. `timeout` signals the program and then
// its group: what comes so soon is one request.
std::atomic<std::int64_t> interrupted_at = 0;  // in milliseconds of the clock, and one; 0: not yet
constexpr std::int64_t kOneRequest = 200;      // milliseconds

void interrupt(int signal) {
  timespec clock{};
  clock_gettime(CLOCK_MONOTONIC, &clock);
  const std::int64_t now = 1000 * std::int64_t{clock.tv_sec} + clock.tv_nsec / 1'000'000 + 1;
  std::int64_t first = 0;
  if (interrupted_at.compare_exchange_strong(first, now) || now - first < kOneRequest) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

bool interrupted() { return interrupted_at != 0; }

class Interruptible {
 public:
  Interruptible() {
    struct sigaction action {};
    action.sa_handler = interrupt;
    sigaction(SIGINT, &action, &before_);
  }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible() { sigaction(SIGINT, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

std::string progress_text(const std::string& cluster, const PlanProgress& progress) {
  return fmt::format("{}: {} of {} points decided, {} run{}", cluster, progress.decided,
                     progress.points, progress.evaluated,
                     progress.best ? ", best " + human(*progress.best) : "");
}

void search(const PlanCommand& command, const PlanAsked& asked, ClusterPlan& plan) {
  ProgressLine line;
  const std::string cluster = name_of(plan);
  const PlanWatch watch{
      interrupted,
      [&](const PlanProgress& progress) {
        line.tick([&] { return progress_text(cluster, progress); });
      },
      [&](size_t rows) { line.show(fmt::format("{}: {} again with contention", cluster, rows)); }};
  search_plan(command, asked, watch, plan);
}

// The plan with the fastest layout; the first where none has one.
const ClusterPlan& best_of(const std::vector<ClusterPlan>& plans) {
  const ClusterPlan* fastest = fastest_plan(plans);
  return fastest != nullptr ? *fastest : plans.front();
}

// For each framework, the fastest layout that it runs, from the plan with the fastest of all.
std::vector<Output> configurations_of(const ClusterPlan& plan, const std::string& folder,
                                      const Location& where) {
  std::vector<Output> files;
  for (const Framework framework : kFrameworks) {
    const auto runs = std::ranges::find_if(plan.result.best, [&](const Planned& each) {
      return std::ranges::count(each.runs_on, framework) > 0;
    });
    if (runs == plan.result.best.end()) continue;
    for (Configuration& each : files_of(framework, question_of(plan, *runs), *runs)) {
      files.push_back({(std::filesystem::path(folder) / each.file).string(), where,
                       [text = std::move(each.text)](std::ostream& out) { out << text; }});
    }
  }
  if (!files.empty()) make_folder(folder, where);
  return files;
}

void print_why(const PlanCommand& command, const std::vector<ClusterPlan>& plans,
               const CommandLine& line) {
  const auto than = static_cast<size_t>(command.why[0]);
  const auto other = static_cast<size_t>(command.why[1]);
  for (const ClusterPlan& plan : plans) {
    if (plan.result.best.empty()) continue;
    for (const size_t row : {than, other}) {
      if (row > plan.result.best.size() || (row == 0 && !plan.baseline)) {
        throw InputError(line.where("--why", fmt::format("{}", row)),
                         row == 0 ? "there is no baseline"
                                  : fmt::format("there are {} rows", plan.result.best.size()));
      }
    }
    std::cout << why_text(plan, than, other);
  }
}

std::vector<Output> outputs_of(const PlanCommand& command, const PlanAsked& asked,
                               const ClusterPlan& best, const CommandLine& line) {
  const std::vector<ClusterPlan>& plans = asked.plans;
  std::vector<Output> files{
      {command.json, line.of_option(command.json),
       [&](std::ostream& out) { write_plan_json(out, plans, asked.tokens, PIPESIM_VERSION); }},
      {command.csv, line.of_option(command.csv),
       [&](std::ostream& out) { out << plan_csv(plans, asked.tokens); }},
      {command.html, line.of_option(command.html), [&](std::ostream& out) {
         std::ostringstream document;
         write_plan_json(document, plans, asked.tokens, PIPESIM_VERSION);
         out << plan_page(document.str(), line);
       }}};
  if (!best.result.best.empty()) {
    files.push_back({command.output, line.of_option(command.output), [&](std::ostream& out) {
                       out << plan_scenario(best, best.result.best.front());
                     }});
  }
  return files;
}

void show(const PlanCommand& command, const PlanAsked& asked) {
  const size_t width = std::min(kAnswerWidth, terminal_width(1).value_or(kAnswerWidth));
  std::cout << (command.wide ? plan_table(asked.plans, asked.tokens)
                             : plan_answer(asked.plans, asked.tokens, width))
            << std::flush;
}

void search_all(const PlanCommand& command, PlanAsked& asked) {
  {
    const Interruptible from_here;
    for (ClusterPlan& plan : asked.plans) search(command, asked, plan);
  }
  if (!asked.tokens) return;
  for (ClusterPlan& plan : asked.plans) {
    plan.days_with_failures = days_with_failures(plan, *asked.tokens);
  }
}

// Refuses before seconds of search.
void require_engine(const PlanCommand& command) {
  if (command.contention > 0) {
    (void)make_simgrid_engine();
  } else if (!has_simgrid()) {
    std::cerr << "pipesim: built without SimGrid: layouts stand by replay, none is run again with "
                 "contention\n";
  }
}

int run(const PlanCommand& command, const CommandLine& line) {
  PlanAsked asked = read_plan_command(command, line);
  require_engine(command);
  for (const std::string& note : asked.notes) std::cerr << "pipesim: " << note << '\n';
  search_all(command, asked);
  const ClusterPlan& best = best_of(asked.plans);
  const bool found = !best.result.best.empty();
  if (!found && !interrupted()) nothing_fits(asked.plans, line.where("--cluster"));
  std::vector<Output> files = outputs_of(command, asked, best, line);
  // A search takes seconds: what it found is shown even where a file cannot be written.
  const bool shown = std::ranges::find(files, "-", &Output::path) == files.end();
  if (shown) show(command, asked);
  const bool exports = found && !command.configurations.empty();
  std::vector<Output> configurations;
  if (exports) {
    configurations = configurations_of(best, command.configurations,
                                       line.where("--export", command.configurations));
  }
  std::ranges::copy(configurations, std::back_inserter(files));
  write_outputs(files);
  if (shown && !command.why.empty()) print_why(command, asked.plans, line);
  if (exports && configurations.empty()) {
    throw InfeasibleError(
        fmt::format("no framework runs one of these layouts as it stands: ask with --runs-on ({})",
                    fmt::join(kFrameworkNames, ", ")));
  }
  if (interrupted() && !found && !command.output.empty()) {
    std::cerr << "pipesim: ended before a layout that fits was found: no scenario is written\n";
  }
  return interrupted() ? kInterrupted : kDone;
}

}  // namespace

ClusterPlan find_layouts(const PlanCommand& command, const CommandLine& line) {
  PlanAsked asked = read_plan_command(command, line);
  const Interruptible from_here;
  search(command, asked, asked.plans.front());
  return std::move(asked.plans.front());
}

Subcommand add_plan(Parser& program) {
  auto command = std::make_shared<PlanCommand>();
  Parser& parser =
      program.add_command("plan", "Find the fastest layouts of a model on a number of GPUs",
                          "  pipesim plan --model llama3-8b --cluster dgx-h100 --gpus 32 "
                          "--global-batch-size 128 --seq-length 8192\n"
                          "  pipesim plan --model llama3-70b --cluster dgx-h100,hgx-b200 --gpus 64 "
                          "--global-batch-size 128 --seq-length 8192 --tensor 8 -o best.yaml");
  add_plan_options(parser, *command);
  return {&parser, [command](const CommandLine& line) { return run(*command, line); }};
}

}  // namespace pipesim
