// Longest path, device spans and activation peaks of a program under a problem, without building a
// graph.
//
// For schedules and search, which compare many candidates. The arithmetic is the replay engine's. A
// pass starts at the later of the end of the one before it and the arrival of its messages. A test
// holds the two equal to the last bit. O(passes). Throws InfeasibleError on a deadlock.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "sim/core/units.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

struct DeviceEvaluation {
  Seconds first_start;
  Seconds last_end;
  Seconds busy;
  Bytes peak_activation;  // docs/reference/model.md, "Memory"
  // Units between the start of their F and the end of their W or BW, recomputed or not.
  int peak_in_flight = 0;

  [[nodiscard]] Seconds span() const { return last_end - first_start; }
};

struct Evaluation {
  std::vector<DeviceEvaluation> devices;
  Seconds makespan;  // first start to last end
  Seconds cost;      // largest span of a device (Zero Bubble, section 5: the iteration's cost)
  Seconds work;      // busy time of that device (ties: the lowest)

  [[nodiscard]] double bubble_rate() const { return (cost - work) / cost; }
  // Against the work of the device that has most.
  [[nodiscard]] double bubble_rate_busiest() const {
    const auto busiest = std::ranges::max_element(devices, {}, &DeviceEvaluation::busy);
    return (cost - busiest->busy) / cost;
  }

  // Peak of the device that holds most.
  [[nodiscard]] Bytes peak_activation() const {
    Bytes largest;
    for (const DeviceEvaluation& device : devices) {
      largest = std::max(largest, device.peak_activation);
    }
    return largest;
  }
};

inline Seconds time_of(const Evaluation& result, Objective objective) {
  return objective == Objective::kMakespan ? result.makespan : result.cost;
}

Evaluation evaluate(const Program& program, const Problem& problem);

// Evaluates a program that takes less than `most`, by the problem's objective. Returns nothing for
// others, mostly early: once a device has idled so long that its passes cannot end in time.
std::optional<Evaluation> evaluate_below(const Program& program, const Problem& problem,
                                         Seconds most);

// Seconds of the overlapped block of a forward and a BW, of one stage or two. Each pass takes the
// share of its seconds that its own stage's block takes of its F and BW. The block is at least as
// long as either pass, or as that stage's own block if that is shorter. Nothing where either
// stage's block has no cost.
std::optional<Seconds> block_seconds(const StageCost& forward, const StageCost& backward);

// Seconds of the block of two stages of a device: Problem::blocks, or as above.
std::optional<Seconds> block_seconds(const Problem& problem, int vs_forward, int vs_backward);

// Duration of a pass; throws LogicError for an overlapped block without a cost.
Seconds pass_seconds(const Problem& problem, const Program& program, int device, const Pass& pass);

// Activation bytes that the pass acquires at its start and releases at its end.
struct PassBytes {
  Bytes acquired;
  Bytes released;
};
PassBytes pass_bytes(const Problem& problem, const Program& program, int device, const Pass& pass);

// Bytes that a copy to the host, or back, moves: a part of its unit's activation.
Bytes copied_bytes(const Problem& problem, const Program& program, const Copy& copy);

// Seconds of such a copy.
Seconds copy_seconds(const Problem& problem, const Program& program, const Copy& copy, bool out);

}  // namespace pipesim
