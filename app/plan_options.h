// The options of `pipesim plan`, and the question that they make.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/command_line.h"
#include "app/options/parser.h"
#include "app/plan_command.h"
#include "sim/layouts/report.h"

namespace pipesim {

void add_plan_options(Parser& parser, PlanCommand& command);

struct PlanAsked {
  std::vector<ClusterPlan> plans;     // one for each cluster and precision, nothing searched yet
  std::vector<WhatIfChange> changes;  // those that are named
  std::optional<double> tokens;
  std::vector<std::string> notes;  // sentences on what is not planned, of a scenario it starts from
};
// InputError, located at the option, for what is no question.
PlanAsked read_plan_command(const PlanCommand& command, const CommandLine& line);

// The options of the search of one of its plans.
PlanOptions asked_options(const PlanCommand& command, const ClusterPlan& plan);

// The layouts of the command's first cluster, searched as `pipesim plan` does (plan.cc).
ClusterPlan find_layouts(const PlanCommand& command, const CommandLine& line);

}  // namespace pipesim
