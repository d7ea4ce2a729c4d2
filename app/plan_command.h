// A question to `pipesim plan`, by its options.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/simgrid.h"
#include "sim/layouts/plan.h"
#include "sim/layouts/report.h"
#include "sim/read/yaml.h"

namespace pipesim {

struct PlanCommand {
  std::string model;
  std::vector<std::string> clusters;  // "dgx-h100", or "dgx-h100:1024" with its GPUs
  std::vector<std::string> precisions;
  std::vector<std::string> settings;
  bool starts = false;        // from a scenario (plan_start.h), which has
  std::vector<Override> own;  // these keys,
  bool own_cluster = false;   // among them the cluster
  // Options whose values are its own, and where they stand.
  std::map<std::string, Location> said_at;
  bool own_baseline = false;  // `baseline` is that scenario, and only because the plan starts there
  std::vector<std::string> notes;  // sentences on what of the scenario is not planned
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

}  // namespace pipesim
