// A schedule in the format of another program.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "sim/scenario/scenario.h"

namespace pipesim {

inline constexpr std::array<std::string_view, 5> kExportFormats{"torch", "csv", "megatron",
                                                                "megatron-bridge", "torchtitan"};

// InputError for an unknown format, and for more than one schedule.
void check_exportable(const std::string& format, const Scenario& scenario);

// The text of the scenario's first schedule in a format of `pipesim export --format`. Throws what
// preparing and planning it do, and InfeasibleError for what the format cannot say.
std::string exported(const std::string& format, const Scenario& scenario);

}  // namespace pipesim
