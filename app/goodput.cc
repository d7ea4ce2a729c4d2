// pipesim goodput: a whole training run, with what interrupts it.
#include "sim/goodput/goodput.h"

#include <fmt/format.h>
#include <iostream>
#include <memory>

#include "app/commands.h"
#include "app/common_options.h"
#include "app/comparison.h"
#include "app/progress.h"
#include "app/ranges.h"
#include "app/refusals.h"
#include "app/tokens.h"
#include "sim/goodput/report.h"
#include "sim/read/reliability.h"
#include "sim/read/scenario.h"
#include "sim/report/text/band.h"

namespace pipesim {
namespace {

struct GoodputCommand {
  std::string file;
  std::vector<std::string> overrides;
  std::string tokens;
  int runs = 200;
  std::uint64_t seed = 1;
  std::optional<double> price;
  double max_steps = GoodputQuestion().max_steps;
  std::string json;
};

void check_rate(const Scenario& scenario, const GoodputCommand& command, const CommandLine& line) {
  if (scenario.batch.micro_batch_size && scenario.batch.seq_length) return;
  throw InputError(line.where(command.file),
                   "goodput counts tokens: the scenario needs batch.micro_batch_size and "
                   "batch.seq_length");
}

int run_goodput(const GoodputCommand& command, const CommandLine& line) {
  GoodputQuestion question{.tokens = read_tokens(command.tokens, line.of_option(command.tokens)),
                           .runs = command.runs,
                           .seed = command.seed,
                           .price_per_gpu_hour = command.price,
                           .max_steps = command.max_steps};
  Scenario scenario =
      read_scenario_file(command.file, line.where(command.file), line.overrides(command.overrides));
  check_writable({command.json}, line);
  check_rate(scenario, command, line);
  const Reliability reliability = scenario.reliability.value_or(usual_reliability());
  ProgressLine progress;
  question.progress = [&progress](double share) {
    progress.tick([share] { return fmt::format("training runs: {:.0f}%", 100 * share); });
  };
  std::vector<Goodput> all;
  std::string bands;
  const auto refused = each_feasible(std::move(scenario), [&](const Case& made) {
    const Result result = simulate(made);
    all.push_back(goodput_of(made, result, reliability, question));
    bands += band_line(*made.scenario, made.choice.name,
                       {.iteration = result.report.iteration,
                        .days = all.back().mean.total().value() / kDaySeconds});
  });
  progress.clear();
  write_outputs({{command.json, line.of_option(command.json), [&](std::ostream& out) {
                    write_goodput_json(out, all, question, PIPESIM_VERSION);
                  }}});
  std::ostream& to = command.json == "-" ? std::cerr : std::cout;
  if (command.json != "-") {
    for (const Goodput& each : all) {
      to << (&each == &all.front() ? "" : "\n") << goodput_text(each, question);
    }
    to << bands;
  }
  to << refusals(refused);
  return refused.empty() ? kDone : kFailed;
}

}  // namespace

Subcommand add_goodput(Parser& program) {
  auto command = std::make_shared<GoodputCommand>();
  Parser& parser = program.add_command(
      "goodput", "How long training takes with failures, checkpoints and slow nodes",
      "  pipesim goodput scenarios/llama3-70b-h100.yaml 1f1b --tokens 15T\n"
      "  pipesim goodput scenarios/llama3-70b-h100.yaml 1f1b --tokens 15T "
      "reliability.spare_nodes=2 --price-per-gpu-hour 2.5");
  add_scenario(parser, command->file, command->overrides);
  parser.add_option("--tokens", command->tokens, "Tokens of the whole training, such as 15T")
      .required();
  parser.add_option("--runs", command->runs, "Training runs to simulate (default 200)")
      .range(kTrainingRuns);
  parser.add_option("--seed", command->seed, "Seed of the first run (default 1)");
  parser
      .add_option("--max-steps", command->max_steps,
                  "Checkpoints and failures of all runs to simulate at most (default 4e9)")
      .range(kTrainingSteps);
  parser.add_option("--price-per-gpu-hour", command->price, "Adds the price")
      .range(kPricePerGpuHour);
  add_json(parser, command->json, "all");
  parser.add_threads();
  return {&parser, [command](const CommandLine& line) { return run_goodput(*command, line); }};
}

}  // namespace pipesim
