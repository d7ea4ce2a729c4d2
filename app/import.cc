// pipesim import: schedules, measured passes and configurations of other programs.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <memory>
#include <sstream>

#include "app/commands.h"
#include "sim/execution/walk.h"
#include "sim/interop/passes/write.h"
#include "sim/interop/torch/csv_reader.h"
#include "sim/interop/torch/csv_writer.h"
#include "sim/report/text/picture.h"

namespace pipesim {
namespace {

struct ImportOptions {
  std::string file;
  std::string format = "torch";
  std::string schedule;
  std::vector<std::string> ranges;
  std::string output;
};

// A file's path as the scenario at `output` has to name it, quoted for YAML.
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
      throw InputError(line.where(text), "expected KIND=NAME, KIND one of F, B, W and BW, NAME "
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
    throw InputError(line.where(options.output),
                     "a run becomes two files, a scenario and its passes: name the scenario");
  }
  if (!options.output.empty()) {
    const Location where = line.where(options.output);
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
  std::cout << summary_of(run, measured) << std::flush;
  return kDone;
}

int import_file(const ImportOptions& options, const CommandLine& line) {
  if (options.format == "torch") return import_schedule(options, line);
  return import_passes(options, line);
}

}  // namespace

Subcommand add_import(Parser& program) {
  auto options = std::make_shared<ImportOptions>();
  Parser& parser = program.add_command(
      "import", "Read a schedule, a measured run or a configuration of another program",
      "  pipesim import zb-h1.csv -o imported.yaml\n"
      "  pipesim import pp_data --format passes -o run.yaml\n"
      "  pipesim import traces --format kineto --range 'F=fwd {microbatch}'");
  parser.add_option("file", options->file, "File, or folder of files for each rank").required();
  parser
      .add_option("--format", options->format,
                  "torch: PyTorch's pipeline schedule CSV; passes: passes of a run, by Primus, "
                  "Megatron-LM's pull request 3138 or as our CSV; kineto: PyTorch-profiler traces")
      .one_of({"torch", "passes", "kineto"});
  parser.add_option("--schedule", options->schedule,
                    "The schedule that ran, where the passes do not say their chunks");
  parser
      .add_option("--range", options->ranges,
                  "With kineto: KIND=NAME, how ranges of F, B, W or BW are named")
      .one_each();
  parser.add_option("-o,--output", options->output,
                    "Write a scenario ('-': standard output); of a run also its passes beside it");
  return {&parser, [options](const CommandLine& line) { return import_file(*options, line); }};
}

}  // namespace pipesim
