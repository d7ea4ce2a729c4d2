// The loop that replays the costs of a graph in lanes (sim/engine/lanes.h), a template of the
// vector of lanes (sim/engine/lane_vector.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/engine/device_sums.h"
#include "sim/engine/lane_vector.h"
#include "sim/engine/ready.h"

namespace pipesim {

// The arrays of a graph; `end` has room for the lanes of every task.
struct LaneArrays {
  EdgeRows rows;
  const std::uint32_t* class_of;
  const Role* role;  // by class
  double* end;
  size_t first;  // of the tasks to replay: those before it are done
  size_t last;   // after them
};

// `seconds_of(task, seconds)` writes those of all lanes.
template <class Vector, class SecondsOf>
[[gnu::always_inline]] inline void replay(const LaneArrays& of, Sums<Vector>& sums,
                                          const SecondsOf& seconds_of) {
  for (size_t task = of.first; task < of.last; ++task) {
    Vector ready;
    ready_after(of.rows, task, of.end, ready);
    Vector end;
    seconds_of(task, end);
    end += ready;
    end.store(of.end + task * kLanesOf<Vector>);
    sums.count(of.role[of.class_of[task]], ready, end);
  }
}

// `seconds`: those of all lanes for every class of tasks.
template <class Vector>
[[gnu::always_inline]] inline void replay_classes(const LaneArrays& of, Sums<Vector>& sums,
                                                  const double* seconds) {
  replay(of, sums, [&of, seconds](size_t task, Vector& taken) {
    taken.load(seconds + size_t{of.class_of[task]} * kLanesOf<Vector>);
  });
}

struct JitteredClass {
  double seconds = 0;
  bool draws = false;  // whether its tasks have factors
};

// `factors`: those of all lanes for every task that has some, in their order.
template <class Vector>
[[gnu::always_inline]] inline void replay_jittered(const LaneArrays& of, Sums<Vector>& sums,
                                                   const JitteredClass* classes,
                                                   const double* factors) {
  double ones[kLanesOf<Vector>];
  Vector(1).store(ones);
  // No branch: passes and messages follow each other as no processor could foretell.
  replay(of, sums, [&of, &factors, &ones, classes](size_t task, Vector& taken) {
    const JitteredClass& its = classes[of.class_of[task]];
    taken.load(its.draws ? factors : ones);
    taken *= Vector(its.seconds);
    factors += its.draws ? kLanesOf<Vector> : 0;
  });
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define PIPESIM_HAS_AVX2_LANES
using AvxLanes = EightLanes<4>;
// For a processor with AVX2.
void replay_classes_avx2(const LaneArrays& of, Sums<AvxLanes>& sums, const double* seconds);
void replay_jittered_avx2(const LaneArrays& of, Sums<AvxLanes>& sums, const JitteredClass* classes,
                          const double* factors);
#endif

}  // namespace pipesim
