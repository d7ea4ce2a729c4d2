#include "sim/exact/cbc.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <utility>
#include <vector>

#include "sim/core/child_process.h"
#include "sim/core/error.h"
#include "sim/core/stop.h"

namespace pipesim::exact {
namespace {

constexpr int kPatience = 5;  // seconds: it looks at its clock now and then
constexpr const char* kNone = "there is no command cbc: install Debian's package coinor-cbc";

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
  // "Integer infeasible" and "Stopped on time (no integer solution" have the relaxation's values.
  solution.found = line.find("objective value") != std::string::npos &&
                   line.find("nfeasible") == std::string::npos &&
                   line.find("no integer solution") == std::string::npos;
  while (std::getline(in, line)) {
    if (line.starts_with("**")) line.erase(0, 2);
    std::istringstream fields(line);
    int number = 0;
    std::string name;
    double value = 0;
    if (fields >> number >> name >> value) solution.values[name] = value;
  }
}

template <class Write>
void write_file(const std::filesystem::path& file, Write write) {
  std::ofstream out(file);
  write(out);
  out.close();
  if (!out) refuse_by_system(fmt::format("cannot write '{}'", file.string()), errno);
}

// Waits for CBC, which is killed after so many seconds. InfeasibleError where somebody else ends
// it.
void wait_for(pid_t child, int seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  int status = 0;
  bool late = false;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    late = StopOn::is_asked() || Clock::now() > end;
    if (late) ::kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  check_stop();
  if (late || !WIFSIGNALED(status) || is_own_fault(status)) return;
  throw InfeasibleError("cbc " + how_it_ended(status));
}

// Runs cbc in the folder for so many seconds at most, what it prints into log.txt there; whether
// there is such a command.
bool run(std::vector<std::string> arguments, const std::filesystem::path& folder, int seconds) {
  arguments.insert(arguments.begin(), "cbc");
  const auto child = start_program(std::move(arguments), folder, "log.txt");
  if (child) wait_for(*child, seconds);
  return child.has_value();
}

}  // namespace

std::optional<std::string> cbc_version(const std::filesystem::path& folder) {
  if (!run({"-quit"}, folder, 60)) return std::nullopt;
  std::istringstream text(read_text(folder / "log.txt"));
  for (std::string word; text >> word;) {
    if (word == "Version:" && text >> word) return "cbc " + word;
  }
  return "cbc";
}

Solution run_cbc(const Milp& milp, const std::map<int, double>& start, int seconds,
                 const std::filesystem::path& folder) {
  write_file(folder / "model.lp", [&](std::ostream& out) { milp.write_lp(out); });
  write_file(folder / "start.txt", [&](std::ostream& out) { milp.write_start(out, start); });
  std::filesystem::remove(folder / "solution.txt");
  const bool there = run({"model.lp", "-mipstart", "start.txt", "-timeMode", "elapsed", "-seconds",
                          fmt::format("{}", seconds), "-allow", "0.99", "-increment", "0.99",
                          "-solve", "-solution", "solution.txt"},
                         folder, seconds + kPatience);
  if (!there) throw InfeasibleError(kNone);
  Solution solution;
  read_values(folder / "solution.txt", solution);
  solution.bound = number_after(read_text(folder / "log.txt"), "Lower bound:", 0);
  return solution;
}

}  // namespace pipesim::exact
