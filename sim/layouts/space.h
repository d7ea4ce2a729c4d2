// The layouts that `pipesim plan` looks at: the ways for a number of GPUs to run a model. Points
// become scenarios once they are asked for (docs/reference/plan.md has the rules).
//
// A question starts from a scenario with everything else: the model, the cluster, the framework's
// overlaps, the state held. Points keep the question's GPUs, global batch and sequence length, and
// divide the model, the node and the batch evenly. A schedule's refusal is found when its problem
// is made.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "models/layout.h"
#include "models/offload_modules.h"
#include "sim/interop/configurations/configuration.h"
#include "sim/planning/schedule.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// Layers on stages: evenly, evenly with embedding and loss counted as a layer each, or with the
// least slowest stage (models/layout.h). The last ignores memory.
enum class PlanSplit : std::uint8_t { kEven, kEvenWithEnds, kBalanced };

// All of one copy of the model that say nothing of being left out (Schedule::left_out_of_plan), by
// name.
std::vector<std::string> schedules_to_plan();

// How context ranks exchange keys and values, and of `a2a+p2p` the ranks that divide heads and
// those of the ring.
struct PlanExchange {
  ContextExchange kind = ContextExchange::kAllGather;
  std::array<int, 2> hierarchy{1, 1};

  friend bool operator==(const PlanExchange&, const PlanExchange&) = default;
};

// Kinds worth trying: none, pointwise, selective, full, and those of Megatron's modules that the
// model has (layernorm, moe_act, mla_up_proj). Modules are added one at a time, from the shortest
// forward on.
std::vector<RecomputeGranularity> recompute_to_plan(const Transformer& model);

// Modules worth offloading, beside none: those of attention and the norms, whose inputs are as
// large as what they save.
std::vector<OffloadModules> modules_to_plan();

// The dispatchers of tokens, none with more bytes or waits than the one before it. All-to-all sends
// a token to every expert of its own. DeepEP sends it once to every node, where it is handed on:
// Megatron's `flex`. HybridEP's host need not learn what goes where.
enum class ExpertDispatcher : std::uint8_t { kAllToAll, kDeepEp, kHybridEp };
inline constexpr std::array<std::string_view, 3> kExpertDispatchers{"alltoall", "deepep",
                                                                    "hybridep"};
constexpr std::string_view to_text(ExpertDispatcher dispatcher) {
  return kExpertDispatchers[static_cast<size_t>(dispatcher)];
}

// Choices to try; an empty list of sizes follows the rule of docs/reference/plan.md.
struct PlanAxes {
  std::vector<int> tensor, context, expert, pipeline, chunks, micro_batch;
  std::vector<std::string> schedules = schedules_to_plan();
  std::vector<RecomputeGranularity> recompute = {
      RecomputeGranularity::kNone, RecomputeGranularity::kPointwise,
      RecomputeGranularity::kSelective, RecomputeGranularity::kFull};
  // Full recomputation takes as few layers of each stage as the memory asks for; else all.
  bool fewest_layers = false;
  std::vector<VocabularyPlacement> vocabulary = {
      VocabularyPlacement::kFirstLast, VocabularyPlacement::kVocab1, VocabularyPlacement::kVocab2};
  std::vector<PlanSplit> splits = {PlanSplit::kEven, PlanSplit::kEvenWithEnds,
                                   PlanSplit::kBalanced};
  std::vector<bool> offload = {false, true};
  std::vector<OffloadModules> modules = {OffloadModules()};
  std::vector<ShardingStrategy> sharding = {};  // empty: the question's own
  bool fsdp = false;  // beside the question's own also optim_grads_params, without a pipeline
  std::vector<ContextExchange> exchange = {};      // of several context ranks; empty: the same
  std::vector<ExpertDispatcher> dispatchers = {};  // of several expert ranks; empty: the same
  std::vector<bool> expert_overlap = {false, true};
  std::optional<Framework> runs_on = {};  // only what it runs as it stands (runs_on.h)
};

// A scenario key of the question, as it was written.
struct PlanSetting {
  std::string path;   // "cost.overlap_grad_reduce"
  std::string value;  // YAML
};

struct PlanQuestion {
  // All that it says beside what is planned.
  std::vector<PlanSetting> settings = {};
  // With a model, roofline costs and a capacity; its own layout is not looked at.
  Scenario base;
  int gpus = 1;
  long global_batch = 1;
  PlanAxes axes;
  // True if memory.reshard_after_forward is given; otherwise the framework decides (state_of).
  bool says_reshard = false;

  // The base's dispatcher, and the seconds that the host holds a GPU for with each. Set for models
  // with experts.
  ExpertDispatcher dispatcher = ExpertDispatcher::kAllToAll;
  std::array<Seconds, kExpertDispatchers.size()> routing{};

  // Bytes of a GPU's memory.
  [[nodiscard]] Bytes limit() const { return *base.modelled->capacity; }
  // Below these peaks a layout fits, and may fit.
  [[nodiscard]] Bytes surely_within() const { return (1 / base.modelled->band.high) * limit(); }
  [[nodiscard]] Bytes may_be_within() const { return (1 / base.modelled->band.low) * limit(); }
  // The limit that schedules plan for: surely_within in whole hundredths of a GiB, which a scenario
  // states to the last bit.
  [[nodiscard]] double schedule_limit_gib() const;
};

struct PlanPoint {
  int tensor = 1;
  int context = 1;
  int expert = 1;
  int expert_tensor = 1;
  int pipeline = 1;
  int data = 1;
  int micro_batch = 1;
  int chunks = 1;
  const Schedule* schedule = nullptr;
  PlanSplit split = PlanSplit::kEven;
  VocabularyPlacement vocabulary = VocabularyPlacement::kFirstLast;
  RecomputeGranularity recompute = {};
  int recompute_layers = 0;                       // of each stage, under kFull; 0: all
  bool offload = false;                           // by the transform, beside what the schedule does
  OffloadModules modules = {};                    // beside those of the question
  std::optional<ShardingStrategy> sharding = {};  // empty: the question's own
  std::optional<PlanExchange> exchange = {};      // the same
  std::optional<ExpertDispatcher> dispatcher = {};  // the same
  // F of one microbatch runs beside BW of another, layer by layer, and weight gradients behind the
  // exchange of tokens. A way of interleaved-1f1b.
  bool expert_overlap = false;

  friend bool operator==(const PlanPoint&, const PlanPoint&) = default;
};

// True if activations leave the device, by the schedule or beside it.
inline bool offloads(const PlanPoint& point) { return point.offload || point.schedule->offloads(); }

// Ways to divide the GPUs into tensor, context, pipeline and data ranks; every one uses them all.
struct PlanDivisions {
  size_t all = 0;
  size_t uneven = 0;         // those whose data ranks do not divide the global batch: not tried
  long multiple = 1;         // of which a global batch must be to lose none
  std::string refused = {};  // where no point is left: why not the one that came furthest
};

struct PlanSpace {
  // In the order of their members, from smaller sizes to larger ones.
  std::vector<PlanPoint> points;
  PlanDivisions divisions;
};

PlanSpace plan_space(const PlanQuestion& question);

// How the point's data ranks divide parameters' state, by a framework's default. Fewer ranks may
// divide a copy (data_parallel_shard_degree): the greatest common divisor with the data ranks.
ParameterState state_of(const PlanQuestion& question, const PlanPoint& point);

// True if full recomputation of the point may take fewer layers than all. Beside a schedule that
// plans for a memory limit, or copies, fewer is not less time.
bool takes_fewest_layers(const PlanQuestion& question, const PlanPoint& point);

// The options of a schedule that PlanPoint::expert_overlap sets, by Megatron-LM's names.
inline constexpr std::array<std::string_view, 2> kExpertOverlap{"overlap_moe_expert_parallel_comm",
                                                                "delay_wgrad_compute"};

// The dispatcher of the point's tokens. Megatron-LM refuses `flex` where every rank has all
// experts.
ExpertDispatcher dispatcher_of(const PlanQuestion& question, const PlanPoint& point);
// Requires costs that follow from a model with experts.
void dispatch_by(ExpertDispatcher dispatcher, const PlanQuestion& question, Scenario& scenario);

// How the point's context ranks exchange keys and values.
PlanExchange exchange_of(const PlanQuestion& question, const PlanPoint& point);

// The point as a scenario of one schedule; `layout` where its split is balanced. Schedules that
// take a memory limit take the question's, in total.
Scenario scenario_of(const PlanQuestion& question, const PlanPoint& point,
                     const Layout* layout = nullptr);
// The same where nothing leaves the device, by the schedule or beside it.
Scenario scenario_without_offload(const PlanQuestion& question, PlanPoint point,
                                  const Layout* layout = nullptr);

}  // namespace pipesim
