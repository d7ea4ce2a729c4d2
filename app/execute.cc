// pipesim execute: runs the schedules of a scenario with a process for every device.
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iostream>
#include <memory>

#include "app/commands.h"
#include "app/common_options.h"
#include "app/comparison.h"
#include "app/refusals.h"
#include "sim/core/input_text.h"
#include "sim/mpi/mpi.h"
#include "sim/read/scenario.h"
#include "sim/runtime/json.h"
#include "sim/runtime/processes.h"
#include "sim/sweep/build.h"

namespace pipesim {
namespace {

using runtime::Execution;
using runtime::ExecutionOptions;

struct ExecuteOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string json;
  std::string messages = "scenario";
  double pass_ms = 20;
  double deadline = 0;
  bool compute = false;
};

std::string row(const Execution& each) {
  std::string notes;
  if (!each.disorder.empty()) notes += "  " + each.disorder;
  if (!each.same_results) notes += "  computes other results than one process does";
  return fmt::format("{:24}{:>8}  {:14}{:>10.4f} s{:>10.4f} s{:>9.4f}  {}{}\n", each.label,
                     each.devices, to_text(each.semantics), each.measured(), each.simulated,
                     each.measured() / each.simulated,
                     notes.empty() ? "as simulated" : "differs:", notes);
}

std::string memory_lines(const Execution& each) {
  std::string text =
      fmt::format("\n{}: gradients differ from one process' by {:.1e} of the largest\n", each.label,
                  *each.gradient_error);
  for (std::size_t device = 0; device < each.peak_bytes.size(); ++device) {
    text += fmt::format("  device {}: activations {:.3f} MiB, simulated {:.3f} MiB, ratio {:.4f}\n",
                        device, each.peak_bytes[device] / (1 << 20),
                        each.simulated_peak_bytes[device] / (1 << 20),
                        each.peak_bytes[device] / each.simulated_peak_bytes[device]);
  }
  return text;
}

std::string table(std::span<const Execution> executions) {
  std::string text = fmt::format("{:24}{:>8}  {:14}{:>12}{:>12}{:>9}  {}\n", "schedule", "devices",
                                 "messages", "measured", "simulated", "ratio", "order, results");
  for (const Execution& each : executions) text += row(each);
  const Execution& first = executions.front();
  if (first.gradient_error) {
    for (const Execution& each : executions) text += memory_lines(each);
    return text + "\nTimes of processes that compute on this machine's cores, not of a GPU.\n";
  }
  return text + fmt::format(
                    "\nTimes of a pipeline of processes on this machine, {:.4g} times those of the "
                    "scenario, without what\na timed wait comes late ({:.0f} us each): they show "
                    "whether orders, calls and copies end as simulated, not a GPU.\n",
                    first.scale, 1e6 * first.overhead);
}

int report(const ExecuteOptions& options, const CommandLine& line,
           std::span<const Execution> executions, const std::vector<RefusedSchedule>& refused) {
  write_outputs({{options.json, line.of_option(options.json),
                  [&](std::ostream& out) { write_json(out, executions); }}});
  if (options.json != "-") std::cout << table(executions);
  (options.json == "-" ? std::cerr : std::cout) << refusals(refused);
  const bool good = std::ranges::all_of(
      executions, [](const Execution& each) { return each.disorder.empty() && each.same_results; });
  return good && refused.empty() ? kDone : kFailed;
}

int run_all(const ExecuteOptions& options, const CommandLine& line, ExecutionOptions how) {
  Scenario scenario =
      read_scenario_file(options.file, line.where(options.file), line.overrides(options.overrides));
  check_writable({options.json}, line);
  how.mean_pass = 1e-3 * options.pass_ms;
  how.torch = options.messages == "torch";
  how.deadline = options.deadline;
  std::vector<Execution> executions;
  try {
    const auto refused = each_feasible(std::move(scenario), [&](const Case& made) {
      if (options.compute) {
        executions.push_back(execute_computed(made, how));
      } else if (auto execution = execute_timed(made, how)) {
        executions.push_back(*std::move(execution));
      }
    });
    if (how.peers != nullptr && how.peers->rank() != 0) return kDone;
    return report(options, line, executions, refused);
  } catch (const runtime::Interrupted&) {
    std::cerr << "pipesim: interrupted; all processes have ended\n";
    return kInterrupted;
  }
}

// The parts that all ranks must agree on: build, options and the scenario's text, or why that text
// cannot be read.
std::string text_of(const ExecuteOptions& options, const CommandLine& line) {
  std::string text =
      fmt::format("{}\n{} {} {}\n{}\n", build_of_program(PIPESIM_VERSION), options.messages,
                  options.pass_ms, options.compute, fmt::join(options.overrides, "\n"));
  try {
    (void)read_scenario_file(options.file, line.where(options.file),
                             line.overrides(options.overrides));
    return text + read_input(options.file, line.where(options.file));
  } catch (const InputError& error) {
    return text + error.what();
  }
}

int run(const ExecuteOptions& options, const CommandLine& line) {
  const auto launched = launch();
  if (!launched) return run_all(options, line, {});
  const Mpi mpi(*launched);
  try {
    runtime::MpiPeers peers(mpi, launched->rank);
    peers.check_same(text_of(options, line));
    return run_all(options, line, {.peers = &peers});
  } catch (const InputError& error) {
    if (launched->rank == 0) std::cerr << "pipesim: " << error.what() << '\n';
    return kBadInput;  // on every rank alike
  } catch (const std::exception& error) {
    std::cerr << "pipesim: rank " << launched->rank << ": " << error.what() << '\n';
    mpi.abort(kFailed);
  }
}

}  // namespace

Subcommand add_execute(Parser& program) {
  auto options = std::make_shared<ExecuteOptions>();
  Parser& parser = program.add_command(
      "execute", "Run the schedules of a scenario with a process for every device",
      "  pipesim execute scenarios/quickstart.yaml zb-h1 --json execution.json\n"
      "  pipesim execute scenarios/quickstart.yaml framework.transfers=blocking --pass-ms 2");
  add_scenario(parser, options->file, options->overrides);
  add_json(parser, options->json, "the comparison");
  parser
      .add_option("--pass-ms", options->pass_ms,
                  "Milliseconds that a pass takes at the mean; all times are scaled alike")
      .positive()
      .with_default();
  parser
      .add_option("--messages", options->messages,
                  "How they are sent: as the scenario says, or as PyTorch's pipeline runtime does")
      .one_of({"scenario", "torch"});
  parser.add_flag("--compute", options->compute,
                  "Compute the passes of a small model in float32 instead of waiting; memory and "
                  "gradients are compared too");
  parser.add_option("--deadline", options->deadline, "Seconds after which all processes are ended")
      .positive();
  return {&parser, [options](const CommandLine& line) { return run(*options, line); }};
}

}  // namespace pipesim
