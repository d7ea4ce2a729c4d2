// The options of `pipesim plan`, and the question that they make.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/command_line.h"
#include "app/options/parser.h"
#include "sim/engine/simgrid.h"
#include "sim/layouts/plan.h"
#include "sim/layouts/report.h"

namespace pipesim {

struct PlanCommand {
  std::string model;
  std::vector<std::string> clusters;  // "dgx-h100", or "dgx-h100:1024" with its GPUs
  std::vector<std::string> precisions;
  std::vector<std::string> settings;
  int gpus = 0;
  int nodes = 0;  // where the GPUs are not given
  long global_batch = 0;
  int seq_length = 0;
  std::optional<std::string> limit;
  std::optional<std::string> tokens;
  std::vector<double> prices;
  int contention = has_simgrid() ? 10 : 0;
  PlanAxes axes;
  std::vector<std::string> schedules, recompute, vocabulary, sharding, exchange, dispatchers;
  bool no_offload = false;
  bool no_expert_overlap = false;
  bool offload_modules = false;
  std::string runs_on = "frameworks";
  std::string defaults = "recipes";
  bool wide = false;
  int best = 0;      // 0: a row for each idea, or ten
  bool all = false;  // also what is near to another row
  std::string baseline = "published";
  std::vector<int> why;  // two rows
  bool what_if = false;
  std::vector<double> factors{kWhatIfFactors.begin(), kWhatIfFactors.end()};
  PlanOptions options;
  std::string json, csv, html, output, configurations;
};

void add_plan_options(Parser& parser, PlanCommand& command);

struct PlanAsked {
  std::vector<ClusterPlan> plans;     // one for each cluster and precision, nothing searched yet
  std::vector<WhatIfChange> changes;  // those that are named
  std::optional<double> tokens;
};
// InputError, located at the option, for what is no question.
PlanAsked read_plan_command(const PlanCommand& command, const CommandLine& line);

// The options of the search of one of its plans.
PlanOptions asked_options(const PlanCommand& command, const ClusterPlan& plan);

// The layouts of the command's first cluster, searched as `pipesim plan` does (plan.cc).
ClusterPlan find_layouts(const PlanCommand& command, const CommandLine& line);

}  // namespace pipesim
