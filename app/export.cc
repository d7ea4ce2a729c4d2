// pipesim export: schedules for other programs.
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <memory>
#include <sstream>
#include <vector>

#include "app/commands.h"
#include "sim/case/microbatch_order.h"
#include "sim/case/program.h"
#include "sim/interop/configurations/configuration.h"
#include "sim/interop/megatron/flags.h"
#include "sim/interop/torch/csv_writer.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim {
namespace {

struct ExportOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string format = "torch";
  std::string output;
};

// What rows do not say, as comments.
std::string comments_on(const Case& made) {
  std::string text;
  const auto beside = [&text](const std::string& key) {
    text += fmt::format("# beside `csv` in a scenario: `{}`\n", key);
  };
  const std::vector<long>& slices = made.choice.slices;
  if (std::ranges::adjacent_find(slices, std::ranges::not_equal_to()) != slices.end()) {
    beside(fmt::format("splits: [{}]", fmt::join(slices, ", ")));
  }
  if (made.choice.recompute &&
      made.choice.recompute->granularity == RecomputeGranularity::kSelective) {
    beside("recompute: selective");
  }
  if (!made.microbatch_order.empty()) {
    text += fmt::format("# of {}\n", order_text(made.microbatch_order));
  }
  if (const auto& offload = made.choice.offload) {
    if (offload->ratio < 1) beside(fmt::format("offload: {{ratio: {}}}", offload->ratio));
    if (offload->bandwidth == CopyBandwidth::kAlone) beside("offload: {bandwidth: alone}");
  }
  if (made.sync == OptimizerSync::kAsynchronous) {
    text += "# of optimizer.sync: asynchronous, the microbatches of one iteration\n";
  }
  return text;
}

std::string exported(const ExportOptions& options, const Scenario& scenario) {
  const Case made = prepare_first(scenario);
  const auto program = make_program(made);
  if (options.format == "megatron") return megatron_text(megatron_flags(made, *program));
  if (options.format == "megatron-bridge") {
    return configuration_of(Framework::kMegatronBridge, made, *program).text;
  }
  if (options.format == "torchtitan") {
    return configuration_of(Framework::kTorchtitan, made, *program).text;
  }
  std::ostringstream text;
  if (options.format == "csv") {
    text << comments_on(made);
    write_csv(text, *program, made.choice.name);
  } else {
    write_torch_csv(text, *program, made.choice.name);
  }
  return text.str();
}

int export_schedule(const ExportOptions& options, const CommandLine& line) {
  // Flags are for reading and pasting, a CSV is for a program to load.
  const bool named = !options.output.empty();
  if (!named && (options.format == "torch" || options.format == "csv")) {
    throw InputError(line.where(line.arguments().size()), "--output is required");
  }
  const Scenario scenario =
      read_scenario_file(options.file, line.where(options.file), line.overrides(options.overrides));
  if (scenario.schedules.size() != 1) {
    throw InputError(
        line.where(options.file),
        fmt::format("export writes one schedule, and this scenario has {}: choose with "
                    "schedule=NAME",
                    scenario.schedules.size()));
  }
  const std::string text = exported(options, scenario);
  write_outputs({{named ? options.output : "-", line.of_option(options.output),
                  [&text](std::ostream& out) { out << text; }}});
  return kDone;
}

}  // namespace

Subcommand add_export(Parser& program) {
  auto options = std::make_shared<ExportOptions>();
  Parser& parser = program.add_command(
      "export", "Write a schedule for another program",
      "  pipesim export scenarios/quickstart.yaml schedule=zb-h1 -o zb-h1.csv\n"
      "  pipesim export scenarios/llama3-70b-h100.yaml schedule=1f1b --format megatron -o run.sh");
  parser.add_option("file", options->file, "Scenario (YAML)").required();
  parser.add_option("overrides", options->overrides, "path.to.key=value, over what the file says");
  parser
      .add_option(
          "--format", options->format,
          "torch: PyTorch's pipeline schedule CSV; csv: the same with what only pipesim reads; "
          "megatron: flags of Megatron-LM or of "
          "the zero-bubble fork; megatron-bridge: its fields as YAML; torchtitan: a job file")
      .one_of({"torch", "csv", "megatron", "megatron-bridge", "torchtitan"});
  parser.add_option("-o,--output", options->output,
                    "File to write ('-': standard output, where flags go by default)");
  return {&parser, [options](const CommandLine& line) { return export_schedule(*options, line); }};
}

}  // namespace pipesim
