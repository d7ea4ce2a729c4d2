// Eight lanes by AVX2. Only what is a template of AvxLanes may be compiled for it: the linker takes
// any copy of an inline function for the whole program, which also runs where there is no AVX2. So
// the headers that others share come before the pragma, and the source is compiled by itself.
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/graph/device_times.h"
#include "sim/graph/task_graph.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)

#pragma GCC push_options
#pragma GCC target("avx2")
#include "sim/engine/lane_replay.h"

namespace pipesim {

void replay_classes_avx2(const LaneArrays& of, Sums<AvxLanes>& sums, const double* seconds) {
  replay_classes(of, sums, seconds);
}

void replay_jittered_avx2(const LaneArrays& of, Sums<AvxLanes>& sums, const JitteredClass* classes,
                          const double* factors) {
  replay_jittered(of, sums, classes, factors);
}

}  // namespace pipesim
#pragma GCC pop_options

#endif
