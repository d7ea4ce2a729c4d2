// Plans for people, for spreadsheets, for scripts, and as scenarios that `pipesim run` takes.
#pragma once

#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/search/plan.h"

namespace pipesim {

// A scenario key of the question, as it was written.
struct PlanSetting {
  std::string path;   // "cost.overlap_grad_reduce"
  std::string value;  // YAML
};

// The answer for one cluster.
struct ClusterPlan {
  PlanQuestion question;
  std::vector<PlanSetting> settings;  // all that the question says beside what is planned
  std::optional<double> price;        // of a GPU for an hour
  PlanResult result;
};

// "interleaved-1f1b (recompute), balanced layers".
std::string label_of(const PlanPoint& point);

// What follows from `tokens`, of training in all, is left out without it.
std::string plan_table(std::span<const ClusterPlan> plans, std::optional<double> tokens);
std::string plan_csv(std::span<const ClusterPlan> plans, std::optional<double> tokens);
void write_plan_json(std::ostream& out, std::span<const ClusterPlan> plans,
                     std::optional<double> tokens, const std::string& version);

// Runs as it was planned: to the same bytes and the last bit of the iteration time.
std::string plan_scenario(const ClusterPlan& plan, const Planned& planned);

}  // namespace pipesim
