// Orders as commands take them: a scenario's only schedule, a schedule's name, or a description or
// PyTorch schedule CSV that runs with a scenario's costs.
#pragma once

#include <string>
#include <vector>

#include "app/command_line.h"
#include "sim/case/case.h"

namespace pipesim {

struct NamedOrder {
  std::string scenario;    // its file
  std::string order = {};  // a name, a description or CSV file; empty: the scenario's only schedule
};

// Arguments that are `path.to.key=value` (unless a file is called so), and those that are not.
struct OrderArguments {
  explicit OrderArguments(const std::vector<std::string>& arguments);
  std::vector<std::string> inputs, overrides;
};

// True for a scenario, or a description of a schedule.
bool is_yaml(const std::string& argument);

// True for a description, or a PyTorch schedule CSV.
bool is_order_file(const std::string& argument);

// A text in YAML's single quotes.
std::string in_quotes(const std::string& text);

// The value of the scenario's key `schedule` that stands for an order.
std::string schedule_value(const std::string& order);

// A name that the scenario has comes with its options there. InputError at the argument.
Case case_of(const NamedOrder& named, const std::vector<std::string>& overrides,
             const CommandLine& line);

// The case of SCENARIO [ORDER], where a second YAML file is a description.
Case only_case_of(const OrderArguments& arguments, const CommandLine& line);

// How unequal microbatches stand in an order, which its CSV does not say; nothing where they stand
// as given.
std::string order_line(const std::vector<int>& microbatch_order);

}  // namespace pipesim
