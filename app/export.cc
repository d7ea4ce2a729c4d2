// pipesim export: schedules for other programs.
#include <fmt/format.h>
#include <memory>
#include <vector>

#include "app/commands.h"
#include "app/common_options.h"
#include "app/exported.h"
#include "sim/read/scenario.h"

namespace pipesim {
namespace {

struct ExportOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string format = "torch";
  std::string output;
};

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
        fmt::format("export writes one schedule, and this scenario has {}: name one of "
                    "them",
                    scenario.schedules.size()));
  }
  const std::string text = exported(options.format, scenario);
  write_outputs({{named ? options.output : "-", line.of_option(options.output),
                  [&text](std::ostream& out) { out << text; }}});
  return kDone;
}

}  // namespace

Subcommand add_export(Parser& program) {
  auto options = std::make_shared<ExportOptions>();
  Parser& parser = program.add_command(
      "export", "Write a schedule for another program",
      "  pipesim export scenarios/quickstart.yaml zb-h1 -o zb-h1.csv\n"
      "  pipesim export scenarios/llama3-70b-h100.yaml 1f1b --format megatron -o run.sh");
  add_scenario(parser, options->file, options->overrides);
  parser
      .add_option(
          "--format", options->format,
          "torch: PyTorch's pipeline schedule CSV; csv: the same with what only pipesim reads; "
          "megatron: flags of Megatron-LM or of "
          "the zero-bubble fork; megatron-bridge: its fields as YAML; torchtitan: a job file")
      .one_of({kExportFormats.begin(), kExportFormats.end()});
  add_output(parser, options->output,
             "File to write ('-': standard output, where flags go by default)");
  return {&parser, [options](const CommandLine& line) { return export_schedule(*options, line); }};
}

}  // namespace pipesim
