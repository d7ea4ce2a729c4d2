// The result of a planned layout: its rate, its memory and where its time goes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/memory.h"
#include "sim/case/simulate.h"
#include "sim/layouts/space.h"

namespace pipesim {

// Where the time of an iteration goes, as shares of it that sum to 1, mean over devices.
enum class PlanShare : std::uint8_t {
  kModel,        // the model's FLOPs at the GPU's peak: MFU as shown
  kKernels,      // what kernels take more than that
  kRecompute,    // forwards that are run again because activations do not fit
  kCollectives,  // of tensor, context, expert and vocabulary ranks, as far as seen
  kRamps,        // idle in warm-up and cool-down
  kOrder,        // waiting for passes upstream
  kImbalance,    // waiting for a slower stage
  kTransfers,    // waiting for messages
  kHostCopies,   // waiting for copies to or from the host
  kReduction,    // of gradients, their norm, and parameters back, as far as they are seen
  kOptimizer,
  kFixed,  // what a step takes beside what is modelled
};
inline constexpr std::array<std::string_view, 12> kPlanShareNames{
    "model",     "kernels",   "recompute",   "collectives", "ramps",     "order",
    "imbalance", "transfers", "host_copies", "reduction",   "optimizer", "fixed"};
using PlanShares = std::array<double, kPlanShareNames.size()>;

struct Contended {
  Seconds iteration;
  std::optional<Ensemble> ensemble;  // where messages shared a way
};

// An idea that a row of a plan stands for beside being the fastest (shortlist.h).
enum class PlanIdea : std::uint8_t { kSimplest, kNoPipeline, kRoomy, kBeyond };
inline constexpr std::array<std::string_view, 4> kPlanIdeaNames{"simplest within 3%", "no pipeline",
                                                                "a fifth free", "no framework"};

struct Planned {
  size_t id = 0;  // in plan_space
  PlanPoint point;
  std::optional<Layout> layout;  // where the split is balanced
  Seconds iteration;
  double tokens_per_second_per_gpu = 0;
  double mfu = 0;
  double mfu_causal = 0;
  Bytes peak;  // of the device that holds most
  MemoryFit fits = MemoryFit::kYes;
  Bytes on_host = {};  // of the node that holds most, copies on their way included
  PlanShares shares{};
  std::optional<Contended> contended = {};
  size_t rank_by_replay = 0;  // from 1, of the layouts that are named
  std::vector<Framework> runs_on = {};
  std::vector<PlanIdea> ideas = {};
  std::string idea = {};  // what it stands for among the rows: "fastest, no pipeline"
  // The question that it answers, where that is another than the plan's: of another framework.
  std::shared_ptr<const PlanQuestion> asked = {};
  // Up to which number of chunks, from its own on, the same layout takes as long.
  int most_chunks_alike = 0;

  // The iteration's seconds, with contention where that is known.
  [[nodiscard]] Seconds expected() const { return contended ? contended->iteration : iteration; }
  [[nodiscard]] bool causal() const { return shows_causal(mfu, mfu_causal); }
  [[nodiscard]] double shown_mfu() const { return causal() ? mfu_causal : mfu; }
  [[nodiscard]] const Layout* balanced() const { return layout ? &*layout : nullptr; }
  [[nodiscard]] double share(PlanShare share) const { return shares[static_cast<size_t>(share)]; }
  // The share of all idle time but that of collectives.
  [[nodiscard]] double bubble() const {
    return share(PlanShare::kRamps) + share(PlanShare::kOrder) + share(PlanShare::kImbalance) +
           share(PlanShare::kTransfers) + share(PlanShare::kHostCopies);
  }
};

// Requires a case whose seconds follow from a model, with a sequence length, and its result. The
// point is left to the caller.
Planned planned_of(const Case& made, const Result& result);

// A point by replay; `layout` where its split is balanced.
struct PointRun {
  Planned planned;
  // The answer of both memories.
  [[nodiscard]] MemoryFit fits(const PlanQuestion& question) const;
};
// Where causes are not asked for, shares are left out. Throws InputError and InfeasibleError as
// `make_case` and the schedule do.
PointRun run_point(const PlanQuestion& question, const PlanPoint& point,
                   const Layout* layout = nullptr, Detail detail = Detail::kCauses);

// A framework's configuration of the layout. Throws InfeasibleError where it runs another.
Configuration configuration_of(Framework framework, const PlanQuestion& question,
                               const Planned& planned);
// All files that a person starts it from.
std::vector<Configuration> files_of(Framework framework, const PlanQuestion& question,
                                    const Planned& planned);
// The frameworks that run it as it stands.
std::vector<Framework> frameworks_of(const PlanQuestion& question, const Planned& planned);

// Shares of the time below this are left unsaid.
inline constexpr double kWorthSaying = 0.005;
// The largest two losses that are worth saying, as shares of the iteration.
std::vector<std::pair<PlanShare, double>> largest_losses(const Planned& planned);
// The same: "kernels 23.3%, ramps 8.1%". A loss under half a percent is left out.
std::string limits_of(const Planned& planned);

// Runs the layout again by SimGrid, with as many replicas as share a node, so that messages share
// ports and NICs. Where they do, the result is the mean of four runs. Throws as `simulate` does.
Contended with_contention(const PlanQuestion& question, const Planned& planned);
// The same of a scenario of one schedule.
Contended with_contention(Scenario scenario);

// True of a row that no framework runs.
bool is_beyond(const Planned& planned);

// Layouts that were run with contention come first, by that time; the others by replay. Tight ones
// stay behind those that fit, and what no framework runs behind all.
void rank_by_contention(std::vector<Planned>& best);

// Time and price of training on a number of tokens, with contention where that is known.
struct PlanBudget {
  double days = 0;
  double gpu_hours = 0;
};
PlanBudget budget_of(const PlanQuestion& question, const Planned& planned, double tokens);

}  // namespace pipesim
