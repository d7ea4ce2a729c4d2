// The result document of json.h as a value, for documents that hold it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "sim/report/json/json.h"

namespace pipesim {

nlohmann::ordered_json run_document(const Scenario& scenario,
                                    std::span<const Simulation> simulations,
                                    const JsonOptions& options);

}  // namespace pipesim
