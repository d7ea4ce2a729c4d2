// Simulates the schedules of a scenario: numbers, and on request passes, timelines, documents and
// drawings.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <pipesim/metrics.h>
#include <pipesim/scenario.h>
#include <string>
#include <utility>
#include <vector>

namespace pipesim {
class Simulations;
}

namespace pipesim::api {

// One device in an iteration; the names are those of `devices` in docs/reference/json.md.
struct Device {
  int device = 0;  // pipeline * pipeline_model_parallel_size + position
  double busy_seconds = 0;
  double passes_seconds = 0;     // of busy_seconds
  double recompute_seconds = 0;  // of passes_seconds
  double span_seconds = 0;       // first pass start to last pass end
  double idle_seconds = 0;
  std::optional<double> peak_activation_bytes;
  std::optional<double> peak_memory_bytes;
  std::optional<double> energy_joules;
};

// Something that a device or a link does.
struct Task {
  std::string name;   // "3F2", "3F2 -> device 4", "optimizer of device 1"
  std::string kind;   // compute, transfer, collective, optimizer, barrier, copy_out or copy_in
  std::string pass;   // F, B, W, BW, FB, R, S, T, IF or IB
  int device = -1;    // -1: all
  int receiver = -1;  // of a transfer
  int stage = -1;     // of a pass; -1: none
  int microbatch = -1;
  int iteration = 0;
  double start_seconds = 0, end_seconds = 0;
};

// A schedule's numbers. The rest is simulated once when it is first asked for, from any thread.
struct Result {
  std::string label;  // the schedule, and what tells it apart from the others
  std::string schedule, options, recompute, offload, memory_limit;
  std::string headline;  // "p = 4, m = 8, bubble 28.63%, peak activation 4 microbatches"
  Metrics metrics;
  std::size_t tasks = 0;  // that were simulated
  std::vector<Device> devices;

  // By device, in their order: "2F0", "3F0&1BW2".
  [[nodiscard]] std::vector<std::vector<std::string>> passes() const;
  // All iterations that were simulated.
  [[nodiscard]] std::vector<Task> timeline() const;
  // Seconds of a device's idle time by cause: warm_up, cool_down, transfer, collective, host_copy,
  // imbalance, order.
  [[nodiscard]] std::map<std::string, double> idle_seconds_by_cause(std::size_t device) const;
  // The document of `pipesim run --json` of this schedule alone.
  [[nodiscard]] std::string json() const;
  // A drawing in the papers' style, a row per device.
  [[nodiscard]] std::string svg() const;

  // The library's own.
  std::shared_ptr<Simulations> simulations;
  std::size_t index = 0;
};

struct Refused {
  std::string label;
  std::string reason;
};

// The schedules of a scenario side by side.
struct Comparison {
  std::vector<Result> results;   // of those that can be met, in the scenario's order
  std::vector<Refused> refused;  // the others

  // The document and the table of `pipesim run`.
  [[nodiscard]] std::string json() const;
  [[nodiscard]] std::string text() const;

  std::shared_ptr<Simulations> simulations;  // of the library
};

// Builds no timeline with the engine replay. Error of kInfeasible where no schedule can be met, of
// kInput where one does not take the scenario's shape. `watch.progress` counts schedules that can
// be met.
Comparison simulate(const Scenario& scenario, const Watch& watch = {});

}  // namespace pipesim::api
