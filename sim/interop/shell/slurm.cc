#include "sim/interop/shell/slurm.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

namespace pipesim {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

constexpr std::array<Pair, 4> kShortOptions{
    {{"-N", "--nodes"}, {"-n", "--ntasks"}, {"-G", "--gpus"}, {"-c", "--cpus-per-task"}}};

constexpr std::array<Pair, 9> kSlurmVariables{{{"SLURM_NNODES", "nodes"},
                                               {"SLURM_JOB_NUM_NODES", "nodes"},
                                               {"SLURM_NTASKS", "ntasks"},
                                               {"SLURM_NPROCS", "ntasks"},
                                               {"SLURM_NTASKS_PER_NODE", "ntasks_per_node"},
                                               {"SLURM_TASKS_PER_NODE", "ntasks_per_node"},
                                               {"SLURM_GPUS_ON_NODE", "gpus_per_node"},
                                               {"SLURM_GPUS_PER_NODE", "gpus_per_node"},
                                               {"SLURM_GPUS_ON_NODE", "gres"}}};

}  // namespace

std::map<std::string, ShellValue> slurm_options(const std::string& file, const std::string& text) {
  std::map<std::string, ShellValue> options;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.starts_with("#SBATCH")) continue;
    std::string words = line.substr(7);
    std::ranges::replace(words, '=', ' ');
    std::istringstream stream(words);
    std::string option;
    std::string value;
    stream >> option >> value;
    for (const auto& [letter, name] : kShortOptions) {
      if (option == letter) option = name;
    }
    if (!option.starts_with("--")) continue;
    option.erase(0, 2);
    std::ranges::replace(option, '-', '_');
    // gpu:h100:8
    if (option.starts_with("gpus") || option == "gres") value.erase(0, value.rfind(':') + 1);
    options[option] = {value, {file, number, 1, line}};
  }
  return options;
}

std::vector<std::pair<std::string, std::string>> slurm_variables(
    const std::map<std::string, ShellValue>& options) {
  std::vector<std::pair<std::string, std::string>> told;
  for (const auto& [variable, option] : kSlurmVariables) {
    if (options.contains(std::string(option))) told.emplace_back(variable, option);
  }
  return told;
}

}  // namespace pipesim
