// The result document of json.h as a value, for what is written into something larger.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "sim/report/json/json.h"

namespace pipesim {

nlohmann::ordered_json run_document(std::span<const Answer> answers, const JsonOptions& options);

}  // namespace pipesim
