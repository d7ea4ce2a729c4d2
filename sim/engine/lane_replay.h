// The loop that replays the costs of a graph in lanes (sim/engine/lanes.h), a template of what
// holds them (sim/engine/lane_vector.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/engine/device_sums.h"
#include "sim/engine/lane_vector.h"
#include "sim/engine/ready.h"

namespace pipesim {

// Of a graph; `end` has room for the lanes of every task.
struct LaneArrays {
  EdgeRows rows;
  const std::uint32_t* class_of;
  const Role* role;  // by class
  double* end;
  size_t tasks;
};

// `seconds_of(task)`: those of all lanes.
template <class Vector, class SecondsOf>
[[gnu::always_inline]] inline void replay(const LaneArrays& of, Sums<Vector>& sums,
                                          const SecondsOf& seconds_of) {
  for (size_t task = 0; task < of.tasks; ++task) {
    Vector ready;
    ready_after(of.rows, task, of.end, ready);
    Vector end;
    end.load(seconds_of(task));
    end += ready;
    end.store(of.end + task * kLanesOf<Vector>);
    sums.count(of.role[of.class_of[task]], ready, end);
  }
}

// `seconds`: eight of every class of tasks.
template <class Vector>
[[gnu::always_inline]] inline void replay_eight(const LaneArrays& of, Sums<Vector>& sums,
                                                const double* seconds) {
  replay(of, sums, [&of, seconds](size_t task) {
    return seconds + size_t{of.class_of[task]} * kLanesOf<Vector>;
  });
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define PIPESIM_HAS_AVX2_LANES
using AvxLanes = EightLanes<4>;
// For a processor with AVX2.
void replay_eight_avx2(const LaneArrays& of, Sums<AvxLanes>& sums, const double* seconds);
#endif

}  // namespace pipesim
