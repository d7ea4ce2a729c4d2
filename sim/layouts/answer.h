// The answer of a plan as text. It has a sentence, a table that fits a terminal, its certainty, its
// limit, and the change that would help most.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sim/layouts/report.h"

namespace pipesim {

// Columns of a table where nothing says how wide the terminal is.
inline constexpr size_t kAnswerWidth = 100;

// The plan with the fastest layout; null where no layout is named.
const ClusterPlan* fastest_plan(std::span<const ClusterPlan> plans);

// "1,024 H100: Megatron-Bridge, tp 8, pp 2, vpp 10, micro batch 2: 154 days (141 to 170), $9.5 M;
// memory fits with 12 GiB to spare." It is about the fastest of several clusters. Without `tokens`
// of training in all the seconds of an iteration stand in place of days. Empty where no layout is
// named.
std::string answer_sentence(std::span<const ClusterPlan> plans, std::optional<double> tokens);

// The sentence, the rows in lines of at most `width` columns, and at most three sentences. Columns
// that have no room are left out, the least important first: `plan_table` has all.
std::string plan_answer(std::span<const ClusterPlan> plans, std::optional<double> tokens,
                        size_t width = kAnswerWidth);

}  // namespace pipesim
