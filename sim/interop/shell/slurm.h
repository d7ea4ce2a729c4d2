// A job's sizes in a script: options of #SBATCH, and the variables in which SLURM tells them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/interop/shell/script.h"

namespace pipesim {

// By name with underscores; -N and its like by their long names.
std::map<std::string, ShellValue> slurm_options(const std::string& file, const std::string& text);

// SLURM_NNODES and others with the option that each tells.
std::vector<std::pair<std::string, std::string>> slurm_variables(
    const std::map<std::string, ShellValue>& options);

}  // namespace pipesim
