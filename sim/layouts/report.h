// Plans for people, for spreadsheets, for scripts, and as scenarios that `pipesim run` takes.
#pragma once

#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/layouts/plan.h"
#include "sim/layouts/what_if.h"
#include "sim/read/hardware.h"

namespace pipesim {

// The layout that others are compared with: a published one, the usual one, or a person's own.
struct Baseline {
  Planned planned;
  std::string file = {};             // of a person's own,
  std::optional<Scenario> own = {};  // which it holds
  std::string run = {};              // of a published one (baseline.h)
};

// The answer for one cluster.
struct ClusterPlan {
  PlanQuestion question;
  std::vector<PlanQuestion> others = {};  // the same of other frameworks
  std::optional<double> price = {};       // of a GPU for an hour
  std::string label = {};  // tells it from the others: "dgx-h100:1024 fp8"; empty: the cluster
  PlanResult result;
  std::optional<Baseline> baseline = {};
  std::vector<PlanWhatIf> what_ifs = {};
  std::optional<double> days_with_failures = {};  // of the first row, where it is known
};

// Its label, or else its cluster.
std::string name_of(const ClusterPlan& plan);

// The question that a row answers.
const PlanQuestion& question_of(const ClusterPlan& plan, const Planned& planned);

// "interleaved-1f1b (recompute), balanced layers".
std::string label_of(const PlanPoint& point);

// "tp 2, cp 1, pp 4, vpp 1, dp 8, mbs 1", experts' ranks where there are some.
std::string sizes_of(const PlanPoint& point);

// How many divisions of the GPUs the global batch leaves out; nothing where it leaves out none.
std::string divisions_text(const ClusterPlan& plan);

// The first places that measured runs near the plan tell apart, and why the first is before the
// second. Differences are shares of the first's time: "ramps +2.1%, kernels -0.4%". Lines, or
// nothing where fewer than two layouts are named.
std::string places_text(const ClusterPlan& plan);

// How much faster the first is than the baseline, and why. A line, or nothing without a baseline.
std::string baseline_text(const ClusterPlan& plan);

// Why row `other` takes the time that it does, against row `than`: seconds by part and by cause,
// and the memory. Rows count from 1; 0 is the baseline. Requires that the plan has both.
std::string why_text(const ClusterPlan& plan, size_t than, size_t other);

// Gains by more of one thing, against the fastest by replay; nothing without what-ifs.
std::string what_ifs_text(const ClusterPlan& plan);

// True if the error of measured runs near the plan exceeds the row's distance from the first.
bool is_tied(const ClusterPlan& plan, const Planned& planned);
// "1 to 3, 5": the rows that they do not, the first among them.
std::string tied_places(const ClusterPlan& plan);

// Why no layout of the plan fits: the one that lacks least, by how much, and what would make it
// fit. `clusters` are those to look for larger GPUs in. Requires a plan that names no layout and
// was not stopped.
std::string no_fit_text(const ClusterPlan& plan, std::span<const ClusterEntry> clusters);

// Numbers that follow from `tokens`, of training in all, are left out without it.
std::string plan_table(std::span<const ClusterPlan> plans, std::optional<double> tokens);
std::string plan_csv(std::span<const ClusterPlan> plans, std::optional<double> tokens);
void write_plan_json(std::ostream& out, std::span<const ClusterPlan> plans,
                     std::optional<double> tokens, const std::string& version);

// Runs as it was planned: to the same bytes and the last bit of the iteration time.
std::string plan_scenario(const ClusterPlan& plan, const Planned& planned);

}  // namespace pipesim
