// The fastest order of passes under a limit on activation memory, with a lower bound on any.
#pragma once

#include <cstdint>
#include <optional>
#include <pipesim/scenario.h>
#include <string>
#include <vector>

namespace pipesim::api {

struct SearchOptions {
  std::vector<std::string> schedules = {};  // empty: all, and the scenario's own
  int max_chunks = 2;                       // per device
  int max_splits = 1;                       // of a microbatch, along its sequence
  bool offload = false;  // also schedules that offload, or recompute, some chunks
  bool recompute = false;
  bool refine = true;  // also changes the best orders, pass by pass
  std::optional<double> effort =
      {};  // passes evaluated there; else 2e7, at each of many limits 2e6
  std::uint64_t seed = 1;
};

// The best order that was found at a limit. Times are of an order from rest.
struct Found {
  double limit_bytes = 0;                // on activations of a device
  double limit_over_p_microbatches = 0;  // as a multiple of what p microbatches keep there
  std::string schedule;
  bool refined = false;
  int chunks = 1;
  double cost_seconds = 0;  // largest span of a device
  double makespan_from_rest_seconds = 0;
  double time_seconds = 0;  // the one of the two that an iteration takes, which is sought
  double bubble_rate = 0, bubble_rate_busiest = 0;  // shares of cost_seconds
  double peak_activation_bytes = 0;
  std::optional<std::string> registered_schedule;  // the best that is not refined
  std::optional<double> registered_cost_seconds;
  double bound_seconds = 0;  // no order within the limit takes less
  double gap = 0;            // by which share the time exceeds that
  int offload_chunks = 0, recompute_chunks = 0;
  std::vector<int> microbatch_order;             // empty: as given
  std::vector<std::vector<std::string>> passes;  // by device: "2F0"
};

struct Searched {
  std::vector<Found> found;           // by limit; none where nothing fits
  std::vector<std::string> left_out;  // "schedule: reason"
};

// `memory_limit`: "72 GiB" of a GPU, or "0.75" times p microbatches' activations on a device. Error
// of kInfeasible where no schedule can be searched. A search that is stopped is an Error;
// it tells no progress.
Searched search(const Scenario& scenario, const std::string& memory_limit,
                const SearchOptions& options = {}, const Watch& watch = {});

// At `points` limits, from one microbatch to where more memory stops to help. `watch.progress`
// counts limits.
Searched search_frontier(const Scenario& scenario, int points, const SearchOptions& options = {},
                         const Watch& watch = {});

}  // namespace pipesim::api
