// A schedule choice as columns of a table: the schedule's name alone, and beside it what else was
// chosen.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "sim/scenario/scenario.h"

namespace pipesim {

inline constexpr std::array<std::string_view, 5> kChoiceColumns{"schedule", "options", "recompute",
                                                                "offload", "memory_limit"};

// A text per column. `options` and `memory_limit` are empty where the choice states none.
// `recompute` and `offload` then say "none"; `offload` says "by the schedule" where the schedule
// offloads by itself.
using ChoiceColumns = std::array<std::string, kChoiceColumns.size()>;
ChoiceColumns columns_of(const ScheduleChoice& choice);

// Chunks, splits and the schedule's own options, as far as the choice states them.
std::string options_text(const ScheduleChoice& choice);
// "0.625" times what p microbatches keep, "24 GiB" of activations, or "40 GiB in total"; empty: no
// limit.
std::string limit_text(const ScheduleChoice& choice);

}  // namespace pipesim
