// pipesim import: schedules, measured passes and configurations of other programs.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>

#include "app/commands.h"
#include "app/common_options.h"
#include "sim/anchor/standing.h"
#include "sim/case/simulate.h"
#include "sim/core/input_text.h"
#include "sim/core/text.h"
#include "sim/interop/frameworks/draft.h"
#include "sim/interop/megatron/log.h"
#include "sim/interop/megatron/memory_log.h"
#include "sim/interop/passes/write.h"
#include "sim/interop/torch/csv_reader.h"
#include "sim/interop/torch/csv_writer.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "sim/report/text/picture.h"

namespace pipesim {
namespace {

struct ImportOptions {
  std::string file;
  std::string format = "torch";
  std::string schedule;
  std::vector<std::string> ranges;
  std::vector<std::string> settings;
  std::vector<std::string> accepted;
  std::string cluster;
  std::string log;
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

// The comments before the first row.
std::string comments_of(const std::string& csv) {
  std::istringstream lines(csv);
  std::string comments;
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, std::min(line.find_first_not_of(" \t\r"), line.size()));
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (!line.empty() && line.front() != '#') break;
    if (!line.empty()) comments += line + '\n';
  }
  return comments;
}

// A scenario that runs the schedule, with unit costs for its reader to replace.
std::string scenario_text(const Program& program, const std::string& file) {
  const Shape& shape = program.shape();
  const bool shares = is_sharded(program.vocabulary());
  const std::string vocabulary =
      shares ? fmt::format("vocabulary: {}\n", to_text(program.vocabulary())) : "";
  std::string more = program.pairs().empty() ? "" : "  overlapped: 3 ms\n";
  for (const char* pass :
       {"output_forward", "output_backward", "input_forward", "input_backward"}) {
    if (shares) more += fmt::format("  {}: 1 ms\n", pass);
  }
  if (program.copies() != nullptr) more += "  copy_out: 1 ms\n  copy_in: 1 ms\n";
  return fmt::format(
      "schedule: {{csv: {}}}\n"
      "parallel: {{pipeline_model_parallel_size: {}}}\n"
      "batch: {{num_microbatches: {}}}\n{}"
      "cost:\n"
      "  kind: given\n"
      "  per: stage\n"
      "  forward: 1 ms\n"
      "  backward_input: 1 ms\n"
      "  backward_weight: 1 ms\n{}"
      "  transfer: 0 s\n",
      file, shape.devices, shape.microbatches, vocabulary, more);
}

int import_schedule(const ImportOptions& options, const CommandLine& line) {
  const std::string csv = read_input(options.file, line.where(options.file));
  const Program program = read_torch_csv(options.file, csv);
  const Shape& shape = program.shape();
  if (!options.output.empty()) {
    const std::string text =
        comments_of(csv) + scenario_text(program, path_from(options.output, options.file));
    write_outputs({{options.output, line.of_option(options.output), [&](std::ostream& out) {
                      out << (options.output == "-" ? printable(text) : text);
                    }}});
    return kDone;
  }
  std::cout << fmt::format("# {} devices, {} chunks {}, {} microbatches, {} passes\n",
                           shape.devices, shape.chunks,
                           program.placement().even() ? "each" : "at most", shape.microbatches,
                           program.size())
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

// A file that FILE names: beside it, as it is named, or where Primus keeps its own.
std::optional<std::string> sourced(const ImportOptions& options, const CommandLine& line,
                                   const std::string& path) {
  namespace fs = std::filesystem;
  std::vector<std::string> places{file_beside(options.file, path)};
  for (fs::path folder = fs::absolute(options.file).parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    for (const char* kind : {"models/megatron", "modules/megatron", "."}) {
      places.push_back((folder / "primus/configs" / kind / path).string());
    }
  }
  for (const std::string& place : places) {
    if (fs::is_regular_file(place)) return read_input(place, line.where(options.file));
  }
  return std::nullopt;
}

Settings settings_of(const ImportOptions& options, const CommandLine& line, const Given& given) {
  const std::string text = read_input(options.file, line.where(options.file));
  const std::string extension = std::filesystem::path(options.file).extension().string();
  const ScriptReader reader = [&](const std::string& path) { return sourced(options, line, path); };
  const bool yaml = extension == ".yaml" || extension == ".yml";
  if (yaml) {
    if (auto renamed = read_renamed_settings(options.file, text)) return *std::move(renamed);
  }
  if (options.format == "torchtitan") return read_toml_settings("torchtitan", options.file, text);
  if (options.format == "deepspeed") {
    return read_json_settings("deepspeed", options.file, text, given);
  }
  if (yaml) {
    return read_yaml_settings("megatron", options.file, text, given, reader);
  }
  return read_arguments(options.file, text, given, reader);
}

Draft draft_of(const ImportOptions& options, const CommandLine& line) {
  Given given;
  for (const std::string& text : options.settings) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw InputError(
          line.where(text),
          "expected NAME=value, a setting of the framework or a variable of the script");
    }
    given[text.substr(0, equals)] = text.substr(equals + 1);
  }
  Settings settings = settings_of(options, line, given);
  for (const auto& [name, value] : given) {
    settings.give(name, value, line.where(fmt::format("{}={}", name, value)));
  }
  if (options.format == "torchtitan") return torchtitan_draft(settings, options.cluster);
  if (options.format == "deepspeed" && !settings.is_megatron()) {
    return deepspeed_draft(settings, options.cluster);
  }
  return megatron_draft(settings, options.cluster);
}

std::string percent_off(double simulated, double measured) {
  return fmt::format("{:+.1f}%", 100 * (simulated / measured - 1));
}

// A fault of the scenario is one of the file that it was made from: nothing is written then.
Case imported_case(const ImportOptions& options, const std::string& text) {
  try {
    return prepare_first(read_scenario(YamlSource("the scenario", text)));
  } catch (const InputError& error) {
    throw InputError({options.file, 0, 0, ""}, error.message());
  }
}

// PyTorch does not count CUDA's context; what it reserves beside what is allocated is free.
std::string memory_said(const LoggedMemory& memory, const Result& result, const Case& made) {
  const auto line = [&memory](const std::string& who, Bytes measured, Bytes simulated) {
    const Bytes allocated = simulated - kFrameworkOverhead;
    return fmt::format(
        "measured:  {} {} at most{}: the simulation without CUDA's context, {}, is {} off\n",
        human(measured), memory.reserved ? "reserved" : "allocated", who, human(allocated),
        percent_off(allocated.value(), measured.value()));
  };
  const Bytes peak = *result.report.peak_memory;
  std::string said = line("", memory.allocated, peak);
  said += fmt::format("           {}\n", standing_text(memory.allocated, peak - kFrameworkOverhead,
                                                       made.scenario->modelled->band));
  // Ranks fill the pipeline's devices one after the other.
  const ParallelSizes& sizes = made.scenario->parallel;
  const int ranks = sizes.tensor * sizes.context * sizes.data;
  std::map<int, Bytes> of_device;
  for (const auto& [rank, bytes] : memory.of_rank) {
    Bytes& most = of_device[rank / ranks];
    most = std::max(most, bytes);
  }
  if (of_device.size() < 2) return said;
  for (const auto& [device, bytes] : of_device) {
    if (std::cmp_greater_equal(device, result.report.devices.size())) break;
    const auto simulated = result.report.devices[device].peak_memory();
    if (simulated) said += line(fmt::format(" on device {}", device), bytes, *simulated);
  }
  return said;
}

// The scenario simulated, with what a log says beside it.
std::string prediction(const ImportOptions& options, const CommandLine& line,
                       const std::string& text) {
  const Case made = imported_case(options, text);
  const Result result = simulate(made);
  const Seconds step = result.report.iteration;
  const Bytes peak = result.report.peak_memory.value_or(Bytes(0));
  std::string said =
      fmt::format("simulated: {} an iteration, {} on the fullest GPU\n", human(step), human(peak));
  if (options.log.empty()) return said;
  const std::string log = read_input(options.log, line.where(options.log));
  const LoggedSteps steps = steps_of_log(log, step_size(*made.scenario));
  const LoggedMemory memory = memory_of_log(log);
  if (steps.lines == 0) {
    throw InputError(line.where(options.log),
                     "no line of the log says how long a step takes: " + step_forms());
  }
  said += fmt::format(
      "measured:  {} an iteration, the median of {} lines after the first {}: the "
      "simulation is {} off\n",
      human(steps.median), steps.lines, steps.dropped,
      percent_off(step.value(), steps.median.value()));
  const auto& band = made.scenario->band;
  said += fmt::format("           {}\n", standing_text(steps.median, step, band));
  if (memory.lines > 0 && peak > Bytes(0)) {
    said += memory_said(memory, result, made);
  }
  const bool written = !options.output.empty() && options.output != "-";
  said += fmt::format("anchor:    pipesim anchor {} --log {} -o anchor.yaml{}\n",
                      written ? options.output : "SCENARIO.yaml", options.log,
                      outside_band(steps.median, step, band) != 0 ? " --accept" : "");
  return said;
}

int import_settings(const ImportOptions& options, const CommandLine& line) {
  Draft draft = draft_of(options, line);
  for (const std::string& name : accept(options.accepted, draft)) {
    throw InputError(line.of_option(name), "no setting of this name stops the import");
  }
  const bool complete = draft.missing.empty() && draft.stops.empty();
  // Without a file the text itself says what became of the settings, on a terminal.
  const bool alone = options.output.empty() || options.output == "-";
  const std::string text = alone ? printable(scenario_of(draft)) : scenario_of(draft);
  std::string said = alone ? "" : summary_of(draft);
  // Nothing is written before it has been simulated.
  if (complete) said += prediction(options, line, text);
  if (options.output.empty()) {
    std::cout << text << std::flush;
  } else {
    write_outputs({{options.output, line.of_option(options.output),
                    [&text](std::ostream& out) { out << text; }}});
  }
  (alone ? std::cerr : std::cout) << printable(said) << std::flush;
  return complete ? kDone : kFailed;
}

int import_file(const ImportOptions& options, const CommandLine& line) {
  if (options.format == "torch") return import_schedule(options, line);
  if (options.format != "passes" && options.format != "kineto") {
    return import_settings(options, line);
  }
  return import_passes(options, line);
}

}  // namespace

Subcommand add_import(Parser& program) {
  auto options = std::make_shared<ImportOptions>();
  Parser& parser = program.add_command(
      "import", "Read a schedule, a measured run or a configuration of another program",
      "  pipesim import zb-h1.csv -o imported.yaml\n"
      "  pipesim import run.sh --format megatron --cluster dgx-h100 -o run.yaml");
  parser.add_option("file", options->file, "File, or folder of files for each rank").required();
  parser
      .add_option("--format", options->format,
                  "torch: PyTorch's pipeline schedule CSV; passes: passes of a run, by Primus, "
                  "Megatron-LM's pull request 3138 or as our CSV; kineto: PyTorch-profiler traces; "
                  "megatron: arguments, a launch script or YAML, also of NeMo and Bridge; "
                  "torchtitan: TOML; deepspeed: JSON")
      .one_of({"torch", "passes", "kineto", "megatron", "torchtitan", "deepspeed"});
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
