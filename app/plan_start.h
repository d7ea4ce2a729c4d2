// A scenario that a plan starts from: `pipesim plan FILE`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/command_line.h"
#include "app/plan_command.h"
#include "sim/layouts/report.h"

namespace pipesim {

// The command with what a scenario among its settings says and its options do not. That is model,
// cluster, GPUs, batch, sequence length and the other keys that a plan starts from (`own`). The
// scenario's layout is the baseline while GPUs, batch and length are its own. InputError for what
// neither says.
PlanCommand with_start(PlanCommand command, const CommandLine& line);

// The command's scenario as the baseline. Where the plan only starts from it, a layout that cannot
// be met is none, with a note. Throws as baseline_of does.
std::optional<Baseline> own_baseline(PlanCommand& command, const PlanQuestion& question,
                                     const CommandLine& line);

// The settings of `own` that no later one replaces, in front of the later ones.
std::vector<Override> behind(std::vector<Override> own, const std::vector<Override>& later);

}  // namespace pipesim
