// One device's row of a simulated schedule, as actions that a device can execute.
//
// A row holds the passes of one iteration and the copies of their activations, in an order in which
// every action comes after what it waits for. What other devices do (messages, collectives, copies
// of others over the same host link) has become a time at which it arrives. Memory has become
// blocks: each is acquired by one action, when it starts, and released by one, when it ends. Times
// are seconds of the simulation. Errors: InfeasibleError for passes that cannot be replayed
// (overlapped blocks, sharded vocabularies). O(tasks).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario/simulate.h"

namespace pipesim::calibration {

// Streams of a device; what is on one runs in order.
enum class Lane : std::uint8_t { kCompute, kCopyOut, kCopyIn };
inline constexpr std::size_t kLanes = 3;

struct Action {
  PassKind pass = PassKind::kF;  // of a copy: kF
  double bytes = 0;              // of a copy
  Lane lane = Lane::kCompute;
  std::string name;    // as traces have it
  double seconds = 0;  // simulated
  double start = 0;    // simulated, as `end`
  double end = 0;
  double arrival = 0;  // of the last thing that other devices do for it; Row::origin: nothing
  std::vector<std::uint32_t> waits_for;  // actions of other lanes
  std::vector<std::uint32_t> acquires;   // blocks
  std::vector<std::uint32_t> releases;
};

struct Row {
  std::string schedule;
  int device = 0;
  double origin = 0;  // the start of the first action
  std::vector<Action> actions;
  std::vector<double> blocks;  // bytes
};

// The row of a device of the first pipeline in the iteration that reports are about.
[[nodiscard]] Row row_of(const Simulation& simulation, int device);

}  // namespace pipesim::calibration
