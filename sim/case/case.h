// A case: one schedule of a scenario with all that follows from it before anything is simulated.
// Its coupling is that of sim/scenario/coupling.h.
//
// An outline says where stages stand and how a layer's passes run. With a layout a case follows:
// bytes and seconds of every stage, what closes an iteration, limits. Both are immutable once made
// and share the scenario. sim/prepare makes cases where something has to be found by trying.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/layer_cost.h"
#include "models/layout.h"
#include "models/memory.h"
#include "models/step_cost.h"
#include "sim/graph/coupling.h"
#include "sim/pipeline/placement.h"
#include "sim/pipeline/problem.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

struct Outline {
  std::shared_ptr<const Scenario> scenario;
  ScheduleChoice choice;  // of the scenario, or of what is tried in its place
  Placement placement = Placement::looped(1, 1);
  std::optional<LayerContext> context = {};  // with a model: the choice's recomputation included
  std::optional<CostSetting> setting = {};   // where seconds follow from a model
  std::shared_ptr<const LayerCosts> costs = {};  // by the setting; likewise
};

struct Case : Outline, Coupling {
  std::string label;                          // in texts: label_of, and what tells it apart
  std::string offload_reason;                 // why so much offloads, where sim/prepare chose it
  std::optional<Layout> layout = {};          // with a model
  std::optional<MemoryEstimate> memory = {};  // likewise
  Problem problem = {};
  std::vector<bool> recomputes = {};  // by virtual stage
  // Units like those that costs are counted of, in a microbatch: its sequence splits, or the length
  // of its sequence over a slice's.
  double parts = 1;
  // The scenario's microbatches as they are put in; empty: as they were drawn.
  std::vector<int> microbatch_order = {};
  // The same with the microbatches of another seed, where they are drawn more than once.
  Case (*redrawn)(const Case& made, std::uint64_t seed) = nullptr;
  std::vector<StepCost> closing = {};  // by device; where seconds follow from a model
};

}  // namespace pipesim
