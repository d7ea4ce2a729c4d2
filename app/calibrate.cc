// pipesim calibrate: runs pipesim-calibrate, where it was built, or pipesim-calibrate-cpu, with the
// same arguments.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>
#include <vector>

#include "app/commands.h"

namespace pipesim {
namespace {

bool of_cpu(const std::vector<std::string>& arguments) {
  const auto device = std::ranges::find(arguments, "--device");
  return std::ranges::find(arguments, "--device=cpu") != arguments.end() ||
         (device != arguments.end() && device + 1 != arguments.end() && *(device + 1) == "cpu");
}

int run(const CommandLine& line) {
  std::error_code ignored;
  const auto beside = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  std::vector<std::string> arguments = line.arguments();
  const char* const program = of_cpu(arguments) ? "pipesim-calibrate-cpu" : "pipesim-calibrate";
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
  Parser& parser = program.add_command(
      "calibrate", "Measure the GPU of this machine (pipesim-calibrate, where CUDA is), or a core",
      "  pipesim calibrate --mode quick -o out/calibration\n"
      "  pipesim calibrate --device cpu --hidden 256 --sequence 256 -o out/cpu\n"
      "  mpirun -n 2 --map-by ppr:1:node --bind-to none --host a,b pipesim calibrate -o "
      "out/calibration");
  parser.pass_on();
  return {&parser, run};
}

}  // namespace pipesim
