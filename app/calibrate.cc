// pipesim calibrate: runs pipesim-calibrate, where it was built, or pipesim-calibrate-cpu, with the
// same arguments.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>
#include <vector>

#include "app/commands.h"
#include "app/common_options.h"

namespace pipesim {
namespace {

// Read here for --help and for mistakes; the tools read the arguments themselves.
struct CalibrateOptions {
  std::string device;  // empty: the GPU
  std::string mode = "quick";
  std::string output, gpu;
  int nvls_ranks = 0;
  int hidden = 256;
  int sequence = 256;
  int repetitions = 5;
};

int run(const CalibrateOptions& options, const CommandLine& line) {
  std::error_code ignored;
  const auto beside = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  std::vector<std::string> arguments = line.arguments();
  const char* const program =
      options.device == "cpu" ? "pipesim-calibrate-cpu" : "pipesim-calibrate";
  arguments.front() = (beside / program).string();
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execv(pointers.front(), pointers.data());
  throw InfeasibleError(fmt::format(
      "cannot run {}: {}. It measures a GPU and is built with pipesim where CUDA is (nvcc with "
      "cuBLASLt; -DPIPESIM_CUDA=ON says what is missing); docs/how-to/calibration.md",
      arguments.front(), std::strerror(errno)));
}

}  // namespace

Subcommand add_calibrate(Parser& program) {
  auto options = std::make_shared<CalibrateOptions>();
  Parser& parser = program.add_command(
      "calibrate", "Measure the GPU of this machine, where pipesim was built with CUDA, or a core",
      "  pipesim calibrate --mode quick -o out/calibration\n"
      "  pipesim calibrate --device cpu --hidden 256 --sequence 256 -o out/cpu\n"
      "One process on each of several nodes also measures between them:\n"
      "  mpirun -n 2 --map-by ppr:1:node --bind-to none --host a,b pipesim calibrate \\\n"
      "      -o out/calibration");
  parser.add_option("--device", options->device, "cpu: one core instead of the GPU")
      .one_of({"cpu"});
  add_output(parser, options->output, "Folder of measurements.csv and calibration.yaml");
  parser.add_option("--mode", options->mode, "A GPU's: quick, under 2 minutes, or full, under 8")
      .one_of({"quick", "full"});
  parser.add_option("--gpu", options->gpu,
                    "The GPU's name in the catalogue, where it does not follow from the device");
  parser.add_option("--nvls-ranks", options->nvls_ranks,
                    "All-reduces of so many ranks run in the switch of the GPUs");
  parser
      .add_option("--hidden", options->hidden, "A core's: hidden size of the model that is to run")
      .range(64, 8192);
  parser.add_option("--sequence", options->sequence, "A core's: tokens of a microbatch")
      .range(64, 8192);
  parser.add_option("--repetitions", options->repetitions, "A core's: measurements of every point")
      .range(1, 1000);
  return {&parser, [options](const CommandLine& line) { return run(*options, line); }};
}

}  // namespace pipesim
