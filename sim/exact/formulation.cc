#include "sim/exact/formulation.h"

#include <algorithm>
#include <fmt/format.h>

namespace pipesim::exact {

Formulation::Formulation(const Ordering& ordering) : ordering_(ordering) {
  add_variables();
  for (const Arc& arc : ordering_.arcs()) add_arc(arc);
  for (int device = 0; device < ordering_.problem().shape.devices; ++device) add_device(device);
  for (int i = 0; i < static_cast<int>(ordering_.tasks().size()); ++i) {
    add_window(i);
    if (ordering_.task(i).acquired > 0) add_memory(i);
  }
}

void Formulation::add_variables() {
  double least = ordering_.least_cost();
  for (int device = 0; device < ordering_.problem().shape.devices; ++device) {
    least = std::max(least, ordering_.device_start(device) - ordering_.origin(device) +
                                ordering_.device_work(device));
    const auto& tasks = ordering_.of_device(device);
    for (const int i : tasks) {
      for (const int j : tasks) {
        if (i >= j || !ordering_.is_open(i, j)) continue;
        first_[{i, j}] = milp_.add_binary(fmt::format("p_{}_{}", i, j));
      }
    }
  }
  for (int i = 0; i < static_cast<int>(ordering_.tasks().size()); ++i) {
    idle_.push_back(milp_.add_continuous(fmt::format("w_{}", i), least_idle(i), most_idle(i)));
  }
  cost_ = milp_.add_continuous("z", least, ordering_.bound());
  milp_.minimise(cost_);
}

Linear Formulation::runs_before(int i, int j) const {
  if (ordering_.precedes(i, j)) return {1};
  if (ordering_.precedes(j, i)) return {0};
  const auto found = first_.find(std::minmax(i, j));
  Linear result;
  if (i < j) return result.add(1, found->second);
  result.constant = 1;
  return result.add(-1, found->second);
}

Linear Formulation::start(int i) const {
  const int device = ordering_.task(i).device;
  Linear result{ordering_.device_start(device)};
  result.add(1, idle_[i]);
  for (const int j : ordering_.of_device(device)) {
    if (j != i) result.add(ordering_.task(j).seconds, runs_before(j, i));
  }
  return result;
}

double Formulation::least_idle(int i) const {
  const Task& task = ordering_.task(i);
  double idle = task.release - ordering_.device_start(task.device);
  for (const int j : ordering_.of_device(task.device)) {
    if (j != i && !ordering_.precedes(i, j)) idle -= ordering_.task(j).seconds;
  }
  return std::max(0.0, idle);
}

double Formulation::most_idle(int i) const {
  const Task& task = ordering_.task(i);
  double idle = task.deadline - task.seconds - ordering_.device_start(task.device);
  for (const int j : ordering_.of_device(task.device)) {
    if (ordering_.precedes(j, i)) idle -= ordering_.task(j).seconds;
  }
  const double before = ordering_.device_start(task.device) - ordering_.origin(task.device);
  return std::min(ordering_.bound() - before - ordering_.device_work(task.device), idle);
}

void Formulation::add_arc(const Arc& arc) {
  const Task& from = ordering_.task(arc.from);
  if (from.device == ordering_.task(arc.to).device) return;  // idle time sees to it
  milp_.add_at_least(start(arc.to).add(-1, start(arc.from)), from.seconds + arc.latency);
}

// Idle time does not fall from i to j of a device, if i runs before j.
void Formulation::add_idle_rises(int i, int j) {
  if (ordering_.precedes(j, i) || is_between(i, j)) return;
  const double slack = ordering_.precedes(i, j) ? 0 : most_idle(i) - least_idle(j);
  Linear rise;
  rise.add(1, idle_[j]).add(-1, idle_[i]);
  if (slack > 0) rise.add(-slack, runs_before(i, j));
  if (slack >= 0) milp_.add_at_least(rise, -slack);
}

void Formulation::add_device(int device) {
  const auto& tasks = ordering_.of_device(device);
  const double work = ordering_.device_work(device);
  const double before = ordering_.device_start(device) - ordering_.origin(device);
  for (const int i : tasks) {
    Linear end = {-before - work};
    end.add(1, cost_).add(-1, idle_[i]);
    milp_.add_at_least(end, 0);
    for (const int j : tasks) {
      if (i != j) add_idle_rises(i, j);
    }
    for (const int j : tasks) {
      for (const int k : tasks) {
        if (i < j && j < k) add_total_order(i, j, k);
      }
    }
  }
}

// True if some pass runs after i and before j in every program.
bool Formulation::is_between(int i, int j) const {
  return std::ranges::any_of(ordering_.of_device(ordering_.task(i).device), [&](int k) {
    return ordering_.precedes(i, k) && ordering_.precedes(k, j);
  });
}

// The deadline moves with the cost.
void Formulation::add_window(int i) {
  const Task& task = ordering_.task(i);
  milp_.add_at_least(start(i), task.release);
  Linear left;
  left.add(1, cost_).add(-1, start(i));
  milp_.add_at_least(left, ordering_.bound() - task.deadline + task.seconds);
}

void Formulation::add_memory(int i) {
  const Task& task = ordering_.task(i);
  Linear room{ordering_.problem().activation_limit->value() - task.acquired};
  for (const int j : ordering_.of_device(task.device)) {
    if (j != i) room.add(-ordering_.task(j).kept(), runs_before(j, i));
  }
  milp_.add_at_least(room, 0);
}

void Formulation::add_total_order(int i, int j, int k) {
  add_cycle_row(i, j, k);
  add_cycle_row(k, j, i);
}

// Not all of: i before j, j before k, k before i.
void Formulation::add_cycle_row(int i, int j, int k) {
  if (ordering_.precedes(j, i) || ordering_.precedes(k, j) || ordering_.precedes(i, k)) return;
  Linear left{2};
  left.add(-1, runs_before(i, j)).add(-1, runs_before(j, k)).add(-1, runs_before(k, i));
  milp_.add_at_least(left, 0);
}

Program Formulation::decode(const std::map<std::string, double>& values) const {
  const Problem& problem = ordering_.problem();
  const auto before = [&](int i, int j) {
    const Linear expression = runs_before(i, j);
    double value = expression.constant;
    for (const auto& [variable, factor] : expression.terms) {
      const auto found = values.find(milp_.names()[variable]);
      if (found != values.end()) value += factor * found->second;
    }
    return value > 0.5;
  };
  PassLists lists;
  for (int device = 0; device < problem.shape.devices; ++device) {
    const auto& tasks = ordering_.of_device(device);
    std::vector<std::pair<long, int>> position;
    for (const int i : tasks) {
      position.emplace_back(
          std::ranges::count_if(tasks, [&](int j) { return j != i && before(j, i); }), i);
    }
    std::ranges::sort(position);
    auto& list = lists.emplace_back();
    for (const auto& [_, i] : position) list.push_back(ordering_.task(i).pass);
  }
  return {problem.shape, problem.placement, std::move(lists)};
}

std::map<int, double> Formulation::encode(const Program& program) const {
  std::vector<int> position(ordering_.tasks().size());
  for (int device = 0; device < program.shape().devices; ++device) {
    int next = 0;
    for (const Pass& pass : program.passes(device)) {
      const int stage = program.placement().virtual_stage(device, pass.chunk);
      const int i = ordering_.number_of(stage, pass.kind, static_cast<int>(pass.microbatch));
      position[i] = next++;
    }
  }
  std::map<int, double> values;
  for (const auto& [pair, variable] : first_) {
    const auto [i, j] = pair;
    values[variable] = position[i] < position[j] ? 1 : 0;
  }
  return values;
}

}  // namespace pipesim::exact
