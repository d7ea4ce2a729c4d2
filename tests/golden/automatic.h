// Instances of data/automatic: problems and the orders that the authors' public generators make of
// them.
//
// A file names the schedule, the `source` of the orders and whether they are the
// `same_order_at_all_times`, and holds `instances`:
//   params    p, m, v; times per chunk (TF, TB, TW; a list has one per device) and Tcomm
//   memory    bytes per chunk (a list has one per device): activation, weight_stash, and limit, the
//             most that a device may hold
//   recompute chunks that recompute, TR; absent when none does, else checkpoints weigh nothing
//   options   of the schedule
//   order     per device, tokens <kind><microbatch>.<chunk>
//   cost, makespan, peak_chunks (most chunks of a device between F and W) of that order, and
//   alt_eval: its cost and makespan under other times
#pragma once

#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "sim/core/error.h"
#include "sim/planning/schedule.h"
#include "tests/golden/data.h"
#include "tests/pipeline/problems.h"

namespace pipesim::golden {

inline void set_times(Problem& problem, const nlohmann::json& times) {
  for (int vs = 0; vs < problem.placement.virtual_stages(); ++vs) {
    StageCost& cost = problem.stages[vs];
    const int device = problem.placement.device(vs);
    cost.forward = Seconds(of_device(times.at("TF"), device));
    cost.backward_input = Seconds(of_device(times.at("TB"), device));
    cost.backward_weight = Seconds(of_device(times.at("TW"), device));
  }
  testing::set_transfers(problem, times.at("Tcomm").get<double>());
}

inline Problem read_problem(const nlohmann::json& instance, const Schedule& schedule) {
  const nlohmann::json& params = instance.at("params");
  const Shape shape{params.at("p").get<int>(), params.at("v").get<int>(), params.at("m").get<int>(),
                    1};
  Problem problem = testing::make_problem(shape, schedule.place(shape.devices, shape.chunks));
  set_times(problem, params);
  const nlohmann::json& memory = instance.at("memory");
  for (int vs = 0; vs < problem.placement.virtual_stages(); ++vs) {
    StageCost& cost = problem.stages[vs];
    const int device = problem.placement.device(vs);
    cost.activation = Bytes(of_device(memory.at("activation"), device));
    cost.weight_stash = Bytes(of_device(memory.at("weight_stash"), device));
    if (instance.contains("recompute")) {
      cost.recompute = Seconds(instance.at("recompute").at("TR").get<double>());
    }
  }
  if (memory.contains("limit")) problem.activation_limit = Bytes(memory.at("limit").get<double>());
  if (instance.contains("recompute")) {
    problem.recompute_chunks = instance.at("recompute").at("chunks").get<int>();
  }
  for (const auto& [name, value] : instance.at("options").items()) {
    problem.options[name] = value.get<long>();
  }
  return problem;
}

inline Pass read_pass(const std::string& token) {
  const size_t digits = token.find_first_of("0123456789");
  const size_t dot = token.find('.');
  for (int kind = 0; kind < kPassKinds; ++kind) {
    if (to_text(static_cast<PassKind>(kind)) != token.substr(0, digits)) continue;
    return make_pass(static_cast<PassKind>(kind), std::stoi(token.substr(digits, dot - digits)),
                     std::stoi(token.substr(dot + 1)));
  }
  throw InputError({}, "no pass: " + token);
}

// Throws LogicError when the order is no program of the problem.
inline Program read_order(const nlohmann::json& order, const Problem& problem) {
  PassLists lists;
  for (const auto& device : order) {
    std::istringstream text(device.get<std::string>());
    auto& list = lists.emplace_back();
    for (std::string token; text >> token;) list.push_back(read_pass(token));
  }
  return {problem.shape, problem.placement, std::move(lists)};
}

}  // namespace pipesim::golden
