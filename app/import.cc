// pipesim import: schedules, measured passes and configurations of other programs.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <memory>
#include <sstream>

#include "app/commands.h"
#include "app/common_options.h"
#include "app/imported.h"
#include "sim/core/input_text.h"
#include "sim/core/text.h"
#include "sim/interop/passes/write.h"
#include "sim/interop/torch/csv_reader.h"
#include "sim/interop/torch/csv_writer.h"
#include "sim/report/text/picture.h"

namespace pipesim {
namespace {

// "BW=my_backward {microbatch}", before those that are known anyway.
std::vector<RangePattern> patterns_of(const ImportOptions& options, const CommandLine& line) {
  std::vector<RangePattern> patterns;
  for (const std::string& text : options.ranges) {
    const size_t equals = text.find('=');
    const std::string kind = text.substr(0, equals);
    std::optional<PassKind> found;
    for (const PassKind each : {PassKind::kF, PassKind::kB, PassKind::kW, PassKind::kBW}) {
      if (kind == to_text(each)) found = each;
    }
    if (!found || equals == std::string::npos || equals + 1 == text.size()) {
      throw InputError(line.where(text),
                       "expected KIND=NAME, KIND one of F, B, W and BW, NAME "
                       "with {stage}, {chunk}, {microbatch} where they stand");
    }
    patterns.push_back({*found, text.substr(equals + 1)});
  }
  const auto& known = default_patterns();
  patterns.insert(patterns.end(), known.begin(), known.end());
  return patterns;
}

// "run.yaml" and "passes": "run.passes.yaml".
std::string beside(const std::string& output, const std::string& what) {
  return std::filesystem::path(output).replace_extension(what).string();
}

int import_passes(const ImportOptions& options, const CommandLine& line) {
  const Location asked = line.where(options.file);
  Recording recording = options.format == "kineto"
                            ? read_kineto(options.file, asked, patterns_of(options, line))
                            : read_passes(options.file, asked);
  const RecordedRun run =
      recorded_run(std::move(recording), options.schedule,
                   options.schedule.empty() ? asked : line.where("--schedule", options.schedule));
  const RunMeasures measured = measure(run);
  if (options.output == "-") {
    throw InputError(line.of_option(options.output),
                     "a run becomes two files, a scenario and its passes: name the scenario");
  }
  if (!options.output.empty()) {
    const Location where = line.of_option(options.output);
    const std::string passes = beside(options.output, ".passes.yaml");
    const std::string order = beside(options.output, ".csv");
    std::vector<Output> outputs{
        {options.output, where,
         [&](std::ostream& out) {
           out << scenario_of_run(run, measured, path_from(options.output, passes),
                                  path_from(options.output, order));
         }},
        {passes, where, [&](std::ostream& out) { out << passes_text(run, measured); }}};
    if (run.schedule.empty()) {
      outputs.push_back(
          {order, where, [&](std::ostream& out) { write_torch_csv(out, run.program); }});
    }
    write_outputs(outputs);
  }
  std::cout << printable(summary_of(run, measured)) << std::flush;
  return kDone;
}

int print_schedule(const ImportOptions& options, const CommandLine& line) {
  const Program program =
      read_torch_csv(options.file, read_input(options.file, line.where(options.file)));
  const Shape& shape = program.shape();
  std::cout << fmt::format("# {} devices, {} chunks {}, {} microbatches, {} passes\n",
                           shape.devices, shape.chunks,
                           program.placement().even() ? "each" : "at most", shape.microbatches,
                           program.size())
            << pass_lists(program) << std::flush;
  return kDone;
}

// Nothing is written before it has been simulated.
int import_scenario(const ImportOptions& options, const CommandLine& line) {
  Imported made = imported(options, line);
  const bool alone = options.output.empty() || options.output == "-";
  if (alone) made.text = printable(made.text);  // on a terminal
  if (options.output.empty()) {
    std::cout << made.text << std::flush;
  } else {
    write_outputs({{options.output, line.of_option(options.output),
                    [&made](std::ostream& out) { out << made.text; }}});
  }
  (alone ? std::cerr : std::cout) << printable(made.summary) << std::flush;
  return made.complete ? kDone : kFailed;
}

int import_file(const ImportOptions& options, const CommandLine& line) {
  const std::string format = format_of(options);
  if (format == "torch" && options.output.empty()) return print_schedule(options, line);
  if (format != "passes" && format != "kineto") return import_scenario(options, line);
  ImportOptions run = options;
  run.format = format;
  return import_passes(run, line);
}

}  // namespace

Subcommand add_import(Parser& program) {
  auto options = std::make_shared<ImportOptions>();
  Parser& parser = program.add_command(
      "import", "Read a schedule, a measured run or a configuration of another program",
      "  pipesim import zb-h1.csv -o imported.yaml\n"
      "  pipesim import run.sh --cluster dgx-h100 -o run.yaml");
  parser.add_option("file", options->file, "File, or folder of files for each rank").required();
  parser
      .add_option("--format", options->format,
                  "torch: PyTorch's pipeline schedule CSV; passes: passes of a run, by Primus, "
                  "Megatron-LM's pull request 3138 or as our CSV; kineto: PyTorch-profiler traces; "
                  "megatron: arguments, a launch script or YAML, also of NeMo and Bridge; "
                  "torchtitan: TOML; deepspeed: JSON (default: as the file looks)")
      .one_of({kImportFormats.begin(), kImportFormats.end()});
  parser.add_option("settings", options->settings,
                    "For a configuration: NAME=value, a setting that replaces the file's, or a "
                    "variable of the script");
  parser
      .add_option("--accept", options->accepted,
                  "For a configuration: goes on without a setting that is not understood, by name")
      .one_each();
  parser.add_option("--cluster", options->cluster,
                    "For a configuration: the cluster it ran on (pipesim list clusters)");
  parser.add_option("--log", options->log,
                    "For a configuration: a log of Megatron-LM, torchtitan, DeepSpeed, NeMo or "
                    "nanotron, to compare with");
  parser.add_option("--schedule", options->schedule,
                    "The schedule that ran, where the passes do not say their chunks");
  parser
      .add_option("--range", options->ranges,
                  "With kineto: KIND=NAME, how ranges of F, B, W or BW are named")
      .one_each();
  add_output(parser, options->output,
             "Write a scenario ('-': standard output); of a run also its passes beside it");
  return {&parser, [options](const CommandLine& line) { return import_file(*options, line); }};
}

}  // namespace pipesim
