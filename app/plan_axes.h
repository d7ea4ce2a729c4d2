// The axes of a plan, by its options: what is tried of each.
#pragma once

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "app/command_line.h"
#include "app/options/parser.h"
#include "app/plan_command.h"

namespace pipesim {

void add_plan_axes(Parser& parser, PlanCommand& command);
// InputError, located at the option, for what is no axis.
PlanAxes read_plan_axes(const PlanCommand& command, const CommandLine& line);

// A value that stands twice would be searched, and counted, twice.
template <class T>
void check_once(const std::vector<T>& given, const std::string& option, const CommandLine& line) {
  for (auto each = given.begin(); each != given.end(); ++each) {
    if (std::find(given.begin(), each, *each) == each) continue;
    const std::string value = fmt::format("{}", *each);
    throw InputError(line.where(option, value),
                     fmt::format("{}: '{}' is there twice", option, value));
  }
}

// Values with commas between. The words behind them, such as settings, are not values.
template <class List>
Option add_list(Parser& parser, const char* name, List& to, const std::string& help) {
  return parser.add_option(name, to, help).with_commas();
}

}  // namespace pipesim
