#include "tests/exact/cbc.h"

#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

#include "sim/core/error.h"

namespace pipesim::exact {
namespace {

std::string read_text(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// The number after the last `label`.
double number_after(const std::string& text, std::string_view label, double otherwise) {
  const size_t at = text.rfind(label);
  return at == std::string::npos ? otherwise : std::strtod(&text[at + label.size()], nullptr);
}

// "Optimal - objective value 71.0", then lines of number, name, value, reduced cost; two stars
// stand before a value that breaks a bound by some rounding.
void read_values(const std::filesystem::path& file, Solution& solution) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  solution.proven = line.starts_with("Optimal");
  solution.found = line.find("objective value") != std::string::npos &&
                   line.find("Infeasible") == std::string::npos;
  while (std::getline(in, line)) {
    if (line.starts_with("**")) line.erase(0, 2);
    std::istringstream fields(line);
    int number = 0;
    std::string name;
    double value = 0;
    if (fields >> number >> name >> value) solution.values[name] = value;
  }
}

}  // namespace

std::string cbc_version() {
  const auto file = std::filesystem::temp_directory_path() / "pipesim-cbc-version";
  const std::string command = fmt::format("cbc -quit > '{}' 2>&1", file.string());
  if (std::system(command.c_str()) != 0) {  // NOLINT(concurrency-mt-unsafe,cert-env33-c)
    throw InfeasibleError("there is no command cbc: install Debian's package coinor-cbc");
  }
  std::istringstream text(read_text(file));
  std::filesystem::remove(file);
  for (std::string word; text >> word;) {
    if (word == "Version:" && text >> word) return "cbc " + word;
  }
  return "cbc";
}

Solution run_cbc(const Milp& milp, const std::map<int, double>& start, int seconds,
                 const std::filesystem::path& folder) {
  std::ofstream model(folder / "model.lp");
  milp.write_lp(model);
  model.close();
  std::ofstream given(folder / "start.txt");
  milp.write_start(given, start);
  given.close();
  std::filesystem::remove(folder / "solution.txt");
  const std::string command = fmt::format(
      "cd '{}' && cbc model.lp -mipstart start.txt -timeMode elapsed -seconds {} -allow 0.99 "
      "-increment 0.99 -solve -solution solution.txt > log.txt 2>&1",
      folder.string(), seconds);
  std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe,cert-env33-c)
  const std::string log = read_text(folder / "log.txt");
  Solution solution;
  read_values(folder / "solution.txt", solution);
  solution.bound = number_after(log, "Lower bound:", 0);
  if (!solution.found) {
    throw InfeasibleError(fmt::format("cbc found no solution: see {}", folder.string()));
  }
  return solution;
}

}  // namespace pipesim::exact
