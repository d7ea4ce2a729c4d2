// pipesim-calibrate-cpu: measures one core of this machine as pipesim-calibrate measures a GPU.
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <string>

#include "app/options/parser.h"
#include "sim/core/error.h"
#include "validate/calibration/calibration_file.h"
#include "validate/calibration/cpu/measure.h"
#include "validate/calibration/measurements_csv.h"

namespace {

using namespace pipesim;
using namespace pipesim::calibration;
namespace fs = std::filesystem;

struct Options {
  std::string device = "cpu";
  std::string folder = "calibration";
  int hidden = 256;
  int sequence = 256;
  int repetitions = 5;
};

int run(int argc, char** argv) {
  Parser program("pipesim calibrate --device cpu",
                 "Measure one core with what pipesim execute --compute runs on it");
  Options options;
  program.add_option("--device", options.device, "cpu").one_of({"cpu"});
  program
      .add_option("-o,--output", options.folder, "Folder of measurements.csv and calibration.yaml")
      .with_default();
  program.add_option("--hidden", options.hidden, "Hidden size of the model that is to run")
      .range(64, 8192)
      .with_default();
  program.add_option("--sequence", options.sequence, "Tokens of a microbatch")
      .range(64, 8192)
      .with_default();
  program.add_option("--repetitions", options.repetitions, "Repetitions of every point")
      .range(1, 1000);
  if (!program.parse(argc, argv)) return 0;
  fs::create_directories(options.folder);
  CpuPlan plan = make_cpu_plan(options.hidden, options.sequence);
  plan.repetitions = options.repetitions;
  (void)measure_cpu(plan, [&options](const Measurements& measured) {
    std::ofstream out(fs::path(options.folder) / "measurements.csv");
    write_measurements(measured, out);
    if (!out.flush()) throw std::ios_base::failure("cannot write to " + options.folder);
    std::cerr << fmt::format("{} points\n", measured.points.size());
  });
  std::cout << fit_folder(options.folder, {});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const OptionError& error) {
    std::cerr << error.what() << "\nRun with --help for more information.\n";
    return 2;
  } catch (const InputError& error) {
    std::cerr << "pipesim: " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "pipesim: " << error.what() << '\n';
    return 1;
  }
}
