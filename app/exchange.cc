// pipesim export and import: schedules for and from other programs.
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <memory>
#include <sstream>

#include "app/commands.h"
#include "sim/case/program.h"
#include "sim/execution/walk.h"
#include "sim/interop/megatron/flags.h"
#include "sim/interop/torch/csv_reader.h"
#include "sim/interop/torch/csv_writer.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "sim/report/text/picture.h"

namespace pipesim {
namespace {

struct ExportOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string format = "torch";
  std::string output;
};

std::string exported(const ExportOptions& options, const Scenario& scenario) {
  const Case made = prepare_first(scenario);
  const auto program = make_program(made);
  if (options.format == "megatron") return megatron_text(megatron_flags(made, *program));
  std::ostringstream text;
  write_torch_csv(text, *program, made.choice.name);
  return text.str();
}

int export_schedule(const ExportOptions& options, const CommandLine& line) {
  // Flags are for reading and pasting, a CSV is for a program to load.
  const bool named = !options.output.empty();
  if (!named && options.format == "torch") {
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
  write_outputs({{named ? options.output : "-", line.where(options.output),
                  [&text](std::ostream& out) { out << text; }}});
  return kDone;
}

struct ImportOptions {
  std::string file;
  std::string output;
};

// The schedule's path as the scenario at `output` has to name it, quoted for YAML.
std::string path_from(const std::string& output, const std::string& file) {
  namespace fs = std::filesystem;
  const fs::path folder = output == "-" ? fs::current_path() : fs::absolute(output).parent_path();
  std::string quoted = "'";
  for (const char c : fs::absolute(file).lexically_relative(folder).string()) {
    quoted += c == '\'' ? std::string("''") : std::string(1, c);
  }
  return quoted + "'";
}

// A scenario that runs the schedule, with unit costs for its reader to replace.
std::string scenario_text(const Program& program, const std::string& file) {
  const Shape& shape = program.shape();
  const char* overlapped = program.pairs().empty() ? "" : "  overlapped: 3 ms\n";
  return fmt::format(
      "schedule: {{csv: {}}}\n"
      "parallel: {{pipeline_model_parallel_size: {}}}\n"
      "batch: {{num_microbatches: {}}}\n"
      "cost:\n"
      "  kind: given\n"
      "  per: stage\n"
      "  forward: 1 ms\n"
      "  backward_input: 1 ms\n"
      "  backward_weight: 1 ms\n{}"
      "  transfer: 0 s\n",
      file, shape.devices, shape.microbatches, overlapped);
}

int import_schedule(const ImportOptions& options, const CommandLine& line) {
  const Program program = read_torch_csv_file(options.file, line.where(options.file));
  check_executable(program);
  const Shape& shape = program.shape();
  if (!options.output.empty()) {
    write_outputs({{options.output, line.where(options.output), [&](std::ostream& out) {
                      out << scenario_text(program, path_from(options.output, options.file));
                    }}});
    return kDone;
  }
  std::cout << fmt::format("# {} devices, {} chunks each, {} microbatches, {} passes\n",
                           shape.devices, shape.chunks, shape.microbatches, program.size())
            << pass_lists(program) << std::flush;
  return kDone;
}

}  // namespace

Subcommand add_export(Parser& program) {
  auto options = std::make_shared<ExportOptions>();
  Parser& parser = program.add_command(
      "export", "Write a schedule for another program",
      "  pipesim export scenarios/quickstart.yaml schedule=zb-h1 -o zb-h1.csv\n"
      "  pipesim export scenarios/quickstart.yaml schedule=1f1b --format megatron");
  parser.add_option("file", options->file, "Scenario (YAML)").required();
  parser.add_option("overrides", options->overrides, "path.to.key=value, over what the file says");
  parser
      .add_option("--format", options->format,
                  "torch: PyTorch's pipeline schedule CSV; megatron: flags of Megatron-LM or of "
                  "the zero-bubble fork")
      .one_of({"torch", "megatron"});
  parser.add_option("-o,--output", options->output,
                    "File to write ('-': standard output, where flags go by default)");
  return {&parser, [options](const CommandLine& line) { return export_schedule(*options, line); }};
}

Subcommand add_import(Parser& program) {
  auto options = std::make_shared<ImportOptions>();
  Parser& parser = program.add_command("import", "Read and check a PyTorch schedule CSV",
                                       "  pipesim import zb-h1.csv\n"
                                       "  pipesim import zb-h1.csv -o imported.yaml");
  parser.add_option("file", options->file, "Schedule (CSV)").required();
  parser.add_option("-o,--output", options->output,
                    "Write a scenario that runs it ('-': standard output)");
  return {&parser, [options](const CommandLine& line) { return import_schedule(*options, line); }};
}

}  // namespace pipesim
