// CBC, the solver of Debian's package coinor-cbc, run as a command on one thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tests/exact/milp.h"

namespace pipesim::exact {

struct Solution {
  bool found = false;
  bool proven = false;                   // that nothing is less by 1
  double bound = 0;                      // nothing is less, when not proven
  std::map<std::string, double> values;  // of variables that are not 0
};

// "cbc 2.10.8". Throws InfeasibleError with the package's name when there is no such command.
std::string cbc_version();

// The objective must be a whole number in every best solution. Writes its files into the folder.
// Throws InfeasibleError when CBC calls the program infeasible or says nothing.
Solution run_cbc(const Milp& milp, const std::map<int, double>& start, int seconds,
                 const std::filesystem::path& folder);

}  // namespace pipesim::exact
