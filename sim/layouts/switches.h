// Settings that frameworks' tuned recipes turn on because they cost nothing: a plan sets them, says
// so, and does not search them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/interop/configurations/configuration.h"
#include "sim/layouts/space.h"

namespace pipesim {

// The settings of Megatron-Bridge's tuned recipes for the question's model and precision. An
// overlap without sequence parallelism or a distributed optimizer is left out. `said` are the paths
// that a person gives; they stay, and one about the optimizer's state keeps all of that state.
// Nothing for frameworks whose recipes set none of them.
std::vector<PlanSetting> tuned_switches(std::optional<Framework> framework,
                                        const PlanQuestion& question,
                                        const std::vector<PlanSetting>& said);

// A switch as it stands in the question: the scenario key without its section, and "true", "false"
// or a type of numbers.
struct PlanSwitch {
  std::string_view name;
  std::string value;
};
// All that apply to the question's model and precision, as the point has them.
std::vector<PlanSwitch> switches_of(const PlanQuestion& question, const PlanPoint& point);

// "overlap_grad_reduce, ..., accumulate_allreduce_grads_in_fp32=false": those that stand as tuned
// recipes set them; empty where none does.
std::string switches_text(const PlanQuestion& question);

}  // namespace pipesim
