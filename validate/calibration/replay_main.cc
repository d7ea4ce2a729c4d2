// pipesim-replay: executes devices' rows of a scenario's schedules and compares what they take with
// the simulation.
#include <exception>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "app/options/parser.h"
#include "models/layer_memory.h"
#include "sim/core/error.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "validate/calibration/replay_clock.h"
#include "validate/calibration/replay_gpu.h"
#include "validate/calibration/replay_layer.h"
#include "validate/calibration/replay_report.h"

namespace {

using namespace pipesim;
using namespace pipesim::calibration;

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kBadInput = 2;

struct Options {
  std::string file;
  std::vector<std::string> overrides;
  std::vector<int> devices;
  std::string arrivals;  // empty: `sent` where it can be
  std::string times = "alone";
  int runs = 5;
  bool dry_run = false;
  std::filesystem::path folder;
};

std::vector<Arrivals> arrivals_of(const std::string& asked) {
  if (asked == "both") return {Arrivals::kSimulated, Arrivals::kAtStart};
  return {asked == "at-start" ? Arrivals::kAtStart : Arrivals::kSimulated};
}

std::vector<int> devices_of(const Options& options, const Result& result) {
  const int all = result.program->shape().devices;
  for (const int device : options.devices) {
    if (device < all) continue;
    throw InputError({"command line", 1, 1, "--device " + std::to_string(device)},
                     "expected a device from 0 to " + std::to_string(all - 1));
  }
  if (!options.devices.empty()) return options.devices;
  std::vector<int> devices(static_cast<std::size_t>(all));
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

// A model's message; without a model any size, since a clock needs none.
Bytes bytes_of_messages(const Case& made) {
  if (!made.context) return Bytes(1);
  return message_bytes(made.scenario->modelled->model, *made.context);
}

// True if all rows run beside each other. Throws where that is asked for and impossible.
bool are_sent(const Options& options, int devices) {
  const std::string reason = options.dry_run ? "" : why_no_gpus(devices);
  if (options.arrivals == "sent") {
    if (!reason.empty()) throw InfeasibleError(reason);
    return true;
  }
  return options.arrivals.empty() && options.devices.empty() && !options.dry_run && devices > 1 &&
         reason.empty();
}

void replay_beside(const Options& options, const Case& made, Result& result,
                   ReplayDocument& document) {
  const std::vector<StageContent> stages = stage_contents(made);
  const int devices = result.program->shape().devices;
  std::unique_ptr<ReplayPipeline> pipeline;
  if (options.dry_run) {
    pipeline = std::make_unique<ClockPipeline>(devices);
  } else {
    pipeline = make_gpu_pipeline(slice_of(made), devices);
    if (options.times == "alone") retime(result, stages, pipeline->device(0));
  }
  PipelineRows rows = rows_of(result, stages, bytes_of_messages(made));
  for (Row& row : rows.rows) row.schedule = made.label;
  for (Comparison& comparison : replay_and_compare(rows, options.runs, *pipeline)) {
    document.comparisons.push_back(std::move(comparison));
  }
  document.facts = pipeline->device(0).facts();
}

void replay_alone(const Options& options, const Case& made, Result& result,
                  ReplayDocument& document) {
  const std::vector<StageContent> stages = stage_contents(made);
  std::unique_ptr<ReplayDevice> device;
  if (options.dry_run) {
    device = std::make_unique<ClockDevice>();
  } else {
    device = make_gpu_device(slice_of(made));
    if (options.times == "alone") retime(result, stages, *device);
  }
  for (const int position : devices_of(options, result)) {
    Row row = row_of(result, stages, position);
    row.schedule = made.label;
    for (const Arrivals arrivals : arrivals_of(options.arrivals)) {
      document.comparisons.push_back(replay_and_compare(row, arrivals, options.runs, *device));
    }
  }
  document.facts = device->facts();
}

void replay_case(const Options& options, const Case& made, ReplayDocument& document) {
  Result result = simulate(made);
  if (are_sent(options, result.program->shape().devices)) {
    replay_beside(options, made, result, document);
  } else {
    replay_alone(options, made, result, document);
  }
}

void write(const std::filesystem::path& path, const ReplayDocument& document,
           void (*write_document)(const ReplayDocument&, std::ostream&)) {
  std::ofstream out(path);
  write_document(document, out);
  if (!out.flush()) throw std::ios_base::failure("cannot write " + path.string());
}

std::vector<Override> overrides_of(const Options& options) {
  std::vector<Override> overrides;
  for (const std::string& text : options.overrides) {
    overrides.push_back(parse_override(text, {"command line", 1, 1, text}));
  }
  return overrides;
}

int run(const Options& options) {
  if (options.arrivals == "sent" && !options.devices.empty()) {
    throw InputError({"command line", 1, 1, "--device"},
                     "leave it out with --arrivals sent: all rows are replayed beside each other");
  }
  if (const std::string reason = why_no_gpus(1); !options.dry_run && !reason.empty()) {
    throw InfeasibleError(reason +
                          "; --dry-run replays on simulated times (docs/how-to/calibration.md)");
  }
  const auto scenario = std::make_shared<const Scenario>(read_scenario_file(
      options.file, {"command line", 1, 1, options.file}, overrides_of(options)));
  ReplayDocument document;
  document.scenario = std::filesystem::path(options.file).filename().string();
  for (const Prepared& each : prepare_all(scenario)) {
    replay_case(options, each.get(), document);
  }
  if (!options.dry_run) {
    document.facts.emplace_back(
        "times", options.times == "alone" ? "each pass and copy timed alone" : "the scenario's");
    document.facts.emplace_back("runs", std::to_string(options.runs));
  }
  std::cout << described(document);
  if (options.folder.empty()) return kDone;
  std::filesystem::create_directories(options.folder);
  write(options.folder / "replay.csv", document, write_csv);
  write(options.folder / "replay.yaml", document, write_yaml);
  return kDone;
}

void add_options(Parser& parser, Options& options) {
  parser.add_option("file", options.file, "Scenario (YAML)").required();
  parser.add_option("overrides", options.overrides, "path.to.key=value, over what the file says");
  parser.add_option("--device", options.devices, "Whose rows; without it, every device's")
      .range(0, 1 << 16);
  parser
      .add_option(
          "--arrivals", options.arrivals,
          "When messages of other devices arrive: as simulated, all at the start, both one "
          "after the other, or sent by GPUs beside each other, one for every device. Without "
          "it, sent where all rows are replayed on so many GPUs, else simulated")
      .one_of({"simulated", "at-start", "both", "sent"});
  parser
      .add_option(
          "--times", options.times,
          "Times to simulate: each pass and copy as timed alone on this GPU just before, or "
          "the scenario's costs")
      .one_of({"alone", "scenario"})
      .with_default();
  parser
      .add_option(
          "--runs", options.runs,
          "Runs of each row, after one that does not count; the run with the median total counts")
      .range(1, 1000)
      .with_default();
  parser.add_flag("--dry-run", options.dry_run,
                  "Without a GPU, on simulated times: checks the rows");
  parser.add_option("-o,--out", options.folder, "Folder for replay.csv and replay.yaml");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Parser parser("pipesim-replay", "Replays devices' rows of schedules");
    Options options;
    add_options(parser, options);
    return parser.parse(argc, argv) ? run(options) : kDone;
  } catch (const OptionError& error) {
    std::cerr << error.what() << "\nRun with --help for more information.\n";
    return kBadInput;
  } catch (const InputError& error) {
    std::cerr << "pipesim-replay: " << error.what() << '\n';
    return kBadInput;
  } catch (const std::exception& error) {
    std::cerr << "pipesim-replay: " << error.what() << '\n';
    return kFailed;
  }
}
