// solve_exactly: the best order of passes of small pipelines, by a mixed-integer program and CBC.
// See README.md beside this file. Not a test: it makes the data of one.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <unistd.h>
#include <vector>

#include "sim/core/error.h"
#include "sim/exact/cbc.h"
#include "sim/exact/formulation.h"
#include "sim/execution/evaluate.h"
#include "tests/exact/first_order.h"
#include "tests/exact/generate.h"
#include "tests/exact/instance.h"

namespace pipesim::exact {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kUsage =
    "usage: solve_exactly generate SEED LINEAR VEE > INSTANCES.json\n"
    "       solve_exactly alike SEED COUNT > INSTANCES.json\n"
    "       solve_exactly solve INSTANCES.json RESULTS.json SECONDS\n"
    "generate: random instances, LINEAR with one chunk per device and VEE with two\n"
    "alike:    each of COUNT pipelines on three placements, by makespan\n"
    "solve:    at most SECONDS for each instance that RESULTS.json does not hold yet\n";

struct Outcome {
  Program program;
  double cost = 0;
  double bound = 0;
  size_t binaries = 0;
  bool proven = false;
};

// The program must bear out the solver's answer.
void check(const Outcome& outcome, const Problem& problem, double cost) {
  const Evaluation result = evaluate(outcome.program, problem);
  if (std::abs(outcome.cost - cost) > 0.01) {
    throw LogicError(fmt::format("the solver says {}, the program costs {}", cost, outcome.cost));
  }
  for (const DeviceEvaluation& device : result.devices) {
    if (device.peak_activation > *problem.activation_limit) {
      throw LogicError("the program does not keep the limit");
    }
  }
}

Outcome solve(const Instance& instance, int seconds, const std::filesystem::path& folder) {
  const Problem& problem = instance.problem;
  const Program first = first_order(problem);
  const auto cost_of = [&](const Program& program) {
    return time_of(evaluate(program, problem), problem.objective).value();
  };
  const Ordering ordering(problem, cost_of(first));
  if (ordering.impossible()) throw LogicError("no program costs that little within the limit");
  const Formulation formulation(ordering);
  const Solution solution = run_cbc(formulation.milp(), formulation.encode(first), seconds, folder);
  if (!solution.found) throw InfeasibleError("cbc found no solution of its program");
  Outcome outcome{formulation.decode(solution.values)};
  outcome.cost = cost_of(outcome.program);
  outcome.binaries = formulation.milp().binaries();
  outcome.proven = solution.proven;
  outcome.bound = outcome.proven ? outcome.cost : std::ceil(solution.bound - 1e-3);
  const auto value = solution.values.find("z");
  check(outcome, problem, value == solution.values.end() ? 0 : value->second);
  return outcome;
}

json read_file(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw InputError({}, "cannot read " + file.string());
  return json::parse(in);
}

// One instance a line.
std::string list(const ordered_json& entries) {
  std::string text = "[";
  for (const auto& entry : entries) text += (text.size() > 1 ? ",\n  " : "\n  ") + entry.dump();
  return text + "]";
}

void write_results(const std::filesystem::path& file, const ordered_json& results) {
  const auto written = file.string() + ".new";
  std::ofstream out(written);
  out << "{\"command\": " << results["command"] << ",\n \"solver\": " << results["solver"]
      << ",\n \"instances\": " << list(results["instances"])
      << ",\n \"unproven\": " << list(results["unproven"]) << "}\n";
  out.close();
  std::filesystem::rename(written, file);
}

bool holds(const ordered_json& results, const std::string& id) {
  const auto is_it = [&id](const ordered_json& entry) { return entry["id"] == id; };
  return std::ranges::any_of(results["instances"], is_it) ||
         std::ranges::any_of(results["unproven"], is_it);
}

void solve_all(const std::filesystem::path& from, const std::filesystem::path& to, int seconds) {
  const json given = read_file(from);
  ordered_json results = {{"instances", json::array()}, {"unproven", json::array()}};
  if (std::filesystem::exists(to)) results = ordered_json::parse(std::ifstream(to));
  results["command"] = given.at("command");
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("solve_exactly-{}", getpid());
  std::filesystem::create_directories(folder);
  const auto version = cbc_version(folder);
  if (!version) throw InfeasibleError("there is no command cbc: install coinor-cbc");
  results["solver"] = *version;
  for (const json& entry : given.at("instances")) {
    const Instance instance = read_instance(entry);
    if (holds(results, instance.id)) continue;
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = solve(instance, seconds, folder);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    fmt::print("{:<18} cost {:>4} bound {:>4} {} binaries {:.1f} s\n", instance.id, outcome.cost,
               outcome.bound, outcome.binaries, took.count());
    std::fflush(stdout);
    ordered_json result = write_instance(instance);
    result["cost"] = number(outcome.cost);
    if (outcome.proven) {
      result["order"] = write_order(outcome.program);
    } else {
      result["bound"] = number(outcome.bound);
    }
    results[outcome.proven ? "instances" : "unproven"].push_back(result);
    write_results(to, results);
  }
  std::filesystem::remove_all(folder);
}

void print_generated(const std::vector<Instance>& instances,
                     const std::vector<std::string>& arguments) {
  ordered_json entries = json::array();
  for (const Instance& instance : instances) entries.push_back(write_instance(instance));
  std::cout << fmt::format("{{\"command\": \"solve_exactly {}\",\n \"instances\": {}}}\n",
                           fmt::join(arguments, " "), list(entries));
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() == 4 && arguments[0] == "generate") {
    print_generated(
        generate(std::stoull(arguments[1]), std::stoi(arguments[2]), std::stoi(arguments[3])),
        arguments);
  } else if (arguments.size() == 3 && arguments[0] == "alike") {
    print_generated(generate_alike(std::stoull(arguments[1]), std::stoi(arguments[2])), arguments);
  } else if (arguments.size() == 4 && arguments[0] == "solve") {
    solve_all(arguments[1], arguments[2], std::stoi(arguments[3]));
  } else {
    std::cerr << kUsage;
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace pipesim::exact

int main(int argc, char** argv) {
  try {
    return pipesim::exact::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << "solve_exactly: " << error.what() << "\n";
    return 1;
  }
}
