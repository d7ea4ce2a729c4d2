#include "app/imported.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "app/orders.h"
#include "sim/anchor/standing.h"
#include "sim/case/simulate.h"
#include "sim/core/input_text.h"
#include "sim/core/text.h"
#include "sim/interop/frameworks/draft.h"
#include "sim/interop/megatron/log.h"
#include "sim/interop/megatron/memory_log.h"
#include "sim/interop/torch/csv_reader.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim {
namespace {

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

// NeMo's templates of chats hold control characters, \x00 among them, which no size does.
std::string without_control_escapes(std::string text) {
  for (size_t at = text.find("\\x"); at != std::string::npos; at = text.find("\\x", at + 2)) {
    const char high = at + 2 < text.size() ? text[at + 2] : ' ';
    if ((high == '0' || high == '1') && at + 4 <= text.size()) text.replace(at, 4, "????");
  }
  return text;
}

Settings settings_of(const ImportOptions& options, const CommandLine& line, const Given& given) {
  std::string text = read_input(options.file, line.where(options.file));
  const std::string extension = std::filesystem::path(options.file).extension().string();
  const ScriptReader reader = [&](const std::string& path) { return sourced(options, line, path); };
  const bool yaml = extension == ".yaml" || extension == ".yml";
  if (yaml) {
    text = without_control_escapes(std::move(text));
    if (auto renamed = read_renamed_settings(options.file, text)) return *std::move(renamed);
  }
  if (options.format == "torchtitan") return read_toml_settings("torchtitan", options.file, text);
  if (options.format == "deepspeed") {
    return read_json_settings("deepspeed", options.file, text, given);
  }
  if (yaml) {
    Settings settings = read_yaml_settings("megatron", options.file, text, given, reader);
    settings.refuse_other_files();
    return settings;
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
  const LoggedSteps steps = steps_of_log(log, *made.scenario, line.where(options.log));
  const LoggedMemory memory = memory_of_log(log);
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

Imported imported_schedule(const ImportOptions& options, const CommandLine& line) {
  const std::string csv = read_input(options.file, line.where(options.file));
  const Program program = read_torch_csv(options.file, csv);
  return {comments_of(csv) + scenario_text(program, path_from(options.output, options.file)), ""};
}

Imported imported_settings(const ImportOptions& options, const CommandLine& line) {
  Draft draft = draft_of(options, line);
  for (const std::string& name : accept(options.accepted, draft)) {
    throw InputError(line.of_option(name), "no setting of this name stops the import");
  }
  const bool alone = options.output.empty() || options.output == "-";
  Imported made{scenario_of(draft), alone ? "" : summary_of(draft),
                draft.missing.empty() && draft.stops.empty()};
  if (made.complete) made.summary += prediction(options, line, made.text);
  return made;
}

// The first letters of a file, enough for a header or a trace's first keys; nothing where it cannot
// be read.
std::string beginning_of(const std::filesystem::path& file) {
  std::string text(1 << 16, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

// A cell of PyTorch's schedule CSV, such as 0F0, behind comments and empty cells.
bool begins_with_pass(std::string_view text) {
  const auto is_digit = [&text](size_t i) {
    return i < text.size() && text[i] >= '0' && text[i] <= '9';
  };
  const auto is_letter = [&text](size_t i) {
    return i < text.size() && text[i] >= 'A' && text[i] <= 'Z';
  };
  size_t at = text.find_first_not_of(" \t\r\n,");
  while (at < text.size() && text[at] == '#') {
    at = text.find_first_not_of(" \t\r\n,", std::min(text.find('\n', at), text.size()));
  }
  const size_t stage = at;
  while (is_digit(at)) ++at;
  const size_t kind = at;
  while (is_letter(at)) ++at;
  return kind > stage && at > kind && is_digit(at);
}

// True for YAML with a key at the start of a line.
bool has_key(const std::string& text, const std::string& key) {
  return text.starts_with(key + ":") || text.find("\n" + key + ":") != std::string::npos;
}

// A config.json, and no file of DeepSpeed, whose random_ltd has a model_type as well.
bool is_model(const std::filesystem::path& file) {
  const std::string text = beginning_of(file);
  return (text.find("\"model_type\"") != std::string::npos ||
          text.find("\"architectures\"") != std::string::npos) &&
         text.find("\"train_batch_size\"") == std::string::npos &&
         text.find("\"train_micro_batch_size_per_gpu\"") == std::string::npos &&
         text.find("\"zero_optimization\"") == std::string::npos;
}

}  // namespace

std::string path_from(const std::string& output, const std::string& file) {
  namespace fs = std::filesystem;
  const fs::path folder = output == "-" ? fs::current_path() : fs::absolute(output).parent_path();
  return in_quotes(fs::absolute(file).lexically_relative(folder).string());
}

std::string format_of(const ImportOptions& options) {
  namespace fs = std::filesystem;
  if (!options.format.empty()) return options.format;
  const fs::path file(options.file);
  std::string extension = file.extension().string();
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string name = file.filename().string();
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) {
    const bool passes = fs::exists(file / "pp_rank_0.json", ignored) ||
                        fs::exists(file / "finished_tasks.json", ignored);
    return passes ? "passes" : "kineto";
  }
  if (extension == ".toml") return "torchtitan";
  const std::string text = beginning_of(file);
  if (extension == ".json") {
    if (name.starts_with("pp_rank_") || name == "finished_tasks.json") return "passes";
    return text.find("traceEvents") == std::string::npos ? "deepspeed" : "kineto";
  }
  if (begins_with_pass(text)) return "torch";
  if (extension != ".csv") return "megatron";
  return text.find("start_ms") == std::string::npos ? "torch" : "passes";
}

Imported imported(const ImportOptions& asked, const CommandLine& line) {
  ImportOptions options = asked;
  options.format = format_of(asked);
  if (beginning_of(options.file).starts_with("\x1f\x8b")) {
    throw InputError(line.where(options.file), "the file is compressed: gunzip it first");
  }
  if (options.format == "torch") return imported_schedule(options, line);
  if (const std::string text = beginning_of(options.file);
      asked.format.empty() && has_key(text, "schedule") && has_key(text, "parallel")) {
    throw InputError(line.where(options.file),
                     "the file is a scenario already: `pipesim run FILE`");
  }
  if (options.format == "deepspeed" && is_model(asked.file)) {
    throw InputError(line.where(asked.file),
                     "a config.json of Hugging Face is a model: `pipesim plan --model FILE`, or "
                     "model: {hf_config: FILE} in a scenario");
  }
  const std::vector<std::string> formats(kImportFormats.begin(), kImportFormats.end());
  if (std::ranges::find(formats, options.format) == formats.end()) {
    throw InputError(
        line.where("--format", options.format),
        fmt::format("unknown format '{}'{}", options.format, suggestion(options.format, formats)));
  }
  if (options.format == "passes" || options.format == "kineto") {
    throw InputError(line.of_option(options.output),
                     "a run becomes two files, a scenario and its passes: name the scenario");
  }
  return imported_settings(options, line);
}

}  // namespace pipesim
