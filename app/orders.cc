#include "app/orders.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "sim/prepare/microbatch_order.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim {
namespace {

// The scenario with that schedule alone.
Scenario with_order(const NamedOrder& named, const std::vector<std::string>& overrides,
                    const CommandLine& line) {
  const Location file = line.where(named.scenario);
  const std::string schedule = schedule_value(named.order);
  if (schedule == in_quotes(named.order)) {
    Scenario scenario = read_scenario_file(named.scenario, file, line.overrides(overrides));
    const auto own = std::ranges::find_if(scenario.schedules, [&](const ScheduleChoice& choice) {
      return !choice.program && choice.name == named.order;
    });
    if (own != scenario.schedules.end()) {
      scenario.schedules = {ScheduleChoice(*own)};
      return scenario;
    }
  }
  const Location where = line.where(named.order);
  std::vector<Override> all = line.overrides(overrides);
  all.push_back({"schedule", schedule, where, where});
  return read_scenario_file(named.scenario, file, std::move(all));
}

}  // namespace

std::string in_quotes(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

OrderArguments::OrderArguments(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    std::error_code ignored;
    const bool changes =
        argument.find('=') != std::string::npos && !std::filesystem::exists(argument, ignored);
    (changes ? overrides : inputs).push_back(argument);
  }
}

std::string schedule_value(const std::string& order) {
  if (is_yaml(order)) return fmt::format("{{file: {}}}", in_quotes(order));
  return is_order_file(order) ? fmt::format("{{csv: {}}}", in_quotes(order)) : in_quotes(order);
}

bool is_order_file(const std::string& argument) {
  return is_yaml(argument) || std::filesystem::path(argument).extension() == ".csv";
}

bool is_yaml(const std::string& argument) {
  const auto extension = std::filesystem::path(argument).extension();
  return extension == ".yaml" || extension == ".yml";
}

Case case_of(const NamedOrder& named, const std::vector<std::string>& overrides,
             const CommandLine& line) {
  if (!named.order.empty()) return prepare_first(with_order(named, overrides, line));
  const Location file = line.where(named.scenario);
  Scenario scenario = read_scenario_file(named.scenario, file, line.overrides(overrides));
  if (scenario.schedules.size() != 1) {
    std::vector<std::string> names;
    for (const ScheduleChoice& choice : scenario.schedules) names.push_back(choice.name);
    throw InputError(file, fmt::format("one order is meant, and this scenario has {}: name which",
                                       fmt::join(names, ", ")));
  }
  return prepare_first(std::move(scenario));
}

Case only_case_of(const OrderArguments& arguments, const CommandLine& line) {
  const auto& inputs = arguments.inputs;
  if (inputs.empty() || inputs.size() > 2 || !is_yaml(inputs.front())) {
    throw InputError(
        inputs.empty() ? line.where(line.arguments().size())
                       : line.where(inputs.size() > 2 ? inputs[2] : inputs[0]),
        "expected a scenario (.yaml), and one of its schedules, a description or a CSV");
  }
  return case_of({inputs[0], inputs.size() == 2 ? inputs[1] : ""}, arguments.overrides, line);
}

std::string order_line(const std::vector<int>& microbatch_order) {
  if (microbatch_order.empty()) return "";
  return fmt::format("its microbatches stand by {}\n", order_text(microbatch_order));
}

}  // namespace pipesim
