// A pipeline whose best order of passes is asked for, as JSON (README.md beside this file names the
// fields).
//
// Times are whole numbers, so that every cost is one. Orders are written as elsewhere in
// tests/golden: one text per device, a pass is `<kind><microbatch>.<chunk>`.
#pragma once

#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/planning/windows.h"
#include "tests/pipeline/problems.h"

namespace pipesim::exact {

struct Instance {
  std::string id;
  Problem problem;
};

inline Placement placement_of(const std::string& name, int devices) {
  if (name == "linear") return Placement::looped(devices, 1);
  if (name == "looped") return Placement::looped(devices, 2);
  if (name == "vee") return Placement::vee(devices);
  throw InputError({}, "placement must be linear, looped or vee, not " + name);
}

inline double whole(double seconds) {
  if (seconds < 0 || seconds != std::round(seconds)) {
    throw InputError({}, fmt::format("times must be whole numbers from 0, not {}", seconds));
  }
  return seconds;
}

inline Instance read_instance(const nlohmann::json& data) {
  Instance instance{data.at("id").get<std::string>(), {}};
  const int devices = data.at("devices").get<int>();
  const Placement place = placement_of(data.at("placement"), devices);
  const Shape shape{devices, place.chunks(), data.at("microbatches").get<int>(), 1};
  instance.problem = testing::make_problem(shape, place);
  for (size_t vs = 0; vs < instance.problem.stages.size(); ++vs) {
    StageCost& cost = instance.problem.stages[vs];
    const auto value = [&data, vs](const char* key) { return data.at(key).at(vs).get<double>(); };
    cost.forward = Seconds(whole(value("forward")));
    cost.backward_input = Seconds(whole(value("backward_input")));
    cost.backward_weight = Seconds(whole(value("backward_weight")));
    cost.activation = Bytes(value("activation"));
    cost.weight_stash = Bytes(value("weight_stash"));
  }
  testing::set_transfers(instance.problem, whole(data.at("transfer").get<double>()));
  if (data.contains("objective")) instance.problem.objective = Objective::kMakespan;
  instance.problem.activation_limit = Bytes(data.at("limit").get<double>());
  return instance;
}

// A whole number stays whole, so that the file reads well.
inline nlohmann::json number(double value) {
  if (value == std::round(value)) return static_cast<long>(value);
  return value;
}

inline nlohmann::ordered_json write_instance(const Instance& instance) {
  const Problem& problem = instance.problem;
  const auto of_stages = [&problem](auto member) {
    auto values = nlohmann::json::array();
    for (const StageCost& cost : problem.stages) values.push_back(number((cost.*member).value()));
    return values;
  };
  const int devices = problem.shape.devices;
  const bool vee = problem.placement == Placement::vee(devices);
  nlohmann::ordered_json data{{"id", instance.id}};
  if (problem.objective == Objective::kMakespan) data["objective"] = "makespan";
  data.update(nlohmann::ordered_json{{"placement", problem.shape.chunks == 1 ? "linear"
                                                   : vee                     ? "vee"
                                                                             : "looped"},
                                     {"devices", problem.shape.devices},
                                     {"microbatches", problem.shape.microbatches},
                                     {"forward", of_stages(&StageCost::forward)},
                                     {"backward_input", of_stages(&StageCost::backward_input)},
                                     {"backward_weight", of_stages(&StageCost::backward_weight)},
                                     {"transfer", number(problem.stages.front().transfer.value())},
                                     {"activation", of_stages(&StageCost::activation)},
                                     {"weight_stash", of_stages(&StageCost::weight_stash)},
                                     {"limit", number(problem.activation_limit.value().value())}});
  return data;
}

// Throws LogicError when the order is no program of the problem.
inline Program read_order(const nlohmann::json& order, const Problem& problem) {
  PassLists lists;
  for (const auto& device : order) {
    std::istringstream text(device.get<std::string>());
    auto& list = lists.emplace_back();
    for (std::string token; text >> token;) {
      const PassKind kind = token[0] == 'F'   ? PassKind::kF
                            : token[0] == 'B' ? PassKind::kB
                                              : PassKind::kW;
      const size_t dot = token.find('.');
      list.push_back(
          make_pass(kind, std::stoi(token.substr(1, dot - 1)), std::stoi(token.substr(dot + 1))));
    }
  }
  return {problem.shape, problem.placement, std::move(lists)};
}

inline std::vector<std::string> write_order(const Program& program) {
  std::vector<std::string> order;
  for (int device = 0; device < program.shape().devices; ++device) {
    std::string& text = order.emplace_back();
    for (const Pass& pass : program.passes(device)) {
      text += fmt::format("{}{}{}.{}", text.empty() ? "" : " ", to_text(pass.kind), pass.microbatch,
                          pass.chunk);
    }
  }
  return order;
}

// Instances with a proven optimum ("cost") and an order that has it: ours, and those that the Zero
// Bubble authors' integer program solves.
inline const nlohmann::json& proven_optima() {
  static const nlohmann::json kAll = [] {
    nlohmann::json all = nlohmann::json::array();
    for (const char* name : {"tiny", "ilp_small"}) {
      nlohmann::json read;
      std::ifstream(fmt::format("{}/tests/golden/data/exact/{}.json", PIPESIM_SOURCE_DIR, name)) >>
          read;
      for (auto& instance : read.at("instances")) all.push_back(std::move(instance));
    }
    return all;
  }();
  return kAll;
}

}  // namespace pipesim::exact
