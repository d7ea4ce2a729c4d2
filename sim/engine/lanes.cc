#include "sim/engine/lanes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "sim/core/error.h"

namespace pipesim {
namespace {

constexpr size_t kWidth = 8;  // lanes that stay in registers together

struct Arrays {
  const std::uint32_t* row;
  const TaskId* edge;
  const std::uint32_t* class_of;
  const double* seconds;
  double* end;
  size_t tasks;
  size_t lanes;
};

// `width` lanes from `first` on: a constant number, or the few that are left.
template <class Width>
[[gnu::always_inline]] inline void replay(const Arrays& of, size_t task, size_t first,
                                          Width width) {
  std::array<double, kWidth> ready{};
  for (std::uint32_t e = of.row[task]; e < of.row[task + 1]; ++e) {
    const double* waited = of.end + of.edge[e] * of.lanes + first;
    for (size_t lane = 0; lane < width; ++lane) ready[lane] = std::max(ready[lane], waited[lane]);
  }
  const double* seconds = of.seconds + of.class_of[task] * of.lanes + first;
  double* end = of.end + task * of.lanes + first;
  for (size_t lane = 0; lane < width; ++lane) end[lane] = ready[lane] + seconds[lane];
}

// The processor's own vectors where the compiler can choose at run time: no sum is contracted.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
[[gnu::target_clones("avx2", "default")]]
#endif
void replay_all(const Arrays& of) {
  const size_t whole = of.lanes / kWidth * kWidth;
  for (size_t task = 0; task < of.tasks; ++task) {
    for (size_t first = 0; first < whole; first += kWidth) {
      replay(of, task, first, std::integral_constant<size_t, kWidth>());
    }
    if (whole < of.lanes) replay(of, task, whole, of.lanes - whole);
  }
}

}  // namespace

void replay_lanes(const TaskGraph& graph, std::span<const double> seconds, size_t lanes,
                  LaneTimes& times) {
  if (seconds.size() != graph.classes().size() * lanes) {
    throw LogicError("seconds of lanes: expected one for every class and lane");
  }
  times.lanes = lanes;
  times.end.resize(graph.size() * lanes);
  replay_all({graph.row_starts().data(), graph.edges().data(), graph.class_of().data(),
              seconds.data(), times.end.data(), graph.size(), lanes});
}

}  // namespace pipesim
