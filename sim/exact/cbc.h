// CBC, the solver of Debian's package coinor-cbc, run as a command on one thread.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "sim/exact/milp.h"

namespace pipesim::exact {

struct Solution {
  bool found = false;
  bool proven = false;                   // that nothing is less by 1
  double bound = 0;                      // nothing is less, when not proven
  std::map<std::string, double> values;  // of variables that are not 0
};

// The files that it reads and writes in its folder.
inline constexpr std::array kCbcFiles{"model.lp", "start.txt", "solution.txt", "log.txt"};

// "cbc 2.10.8"; nothing where there is no such command. Writes its log into the folder.
std::optional<std::string> cbc_version(const std::filesystem::path& folder);

// The objective must be a whole number in every best solution, or a difference of less than 1 not
// matter. Writes its files into the folder. Not found: CBC ended without an order or an answer, as
// it does where its time is up early. Or it did not end in time and was killed. InfeasibleError
// when CBC is not there, its files cannot be written, or somebody ends it.
Solution run_cbc(const Milp& milp, const std::map<int, double>& start, int seconds,
                 const std::filesystem::path& folder);

}  // namespace pipesim::exact
