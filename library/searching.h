// A search that is asked for in words, with what it finds as public values.
#pragma once

#include <functional>
#include <optional>
#include <pipesim/search.h>
#include <string>

#include "sim/search/search.h"

namespace pipesim {

// The question beside the scenario.
struct SearchAsked {
  std::string memory_limit;   // as `pipesim search --memory-limit`
  std::optional<int> points;  // of a frontier, in place of the limit
  SearchOptions options;
};

// Ends early, with what it has, once options.refinement.stop says so.
api::Searched searched(const Scenario& scenario, SearchAsked asked);

}  // namespace pipesim
