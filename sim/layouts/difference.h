// Why one layout is slower than another: the seconds between them, by cause.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/layouts/outcome.h"

namespace pipesim {

// The parts that a person thinks in, by their causes; messages' contention is communication too.
inline constexpr std::array kComputeShares{PlanShare::kModel, PlanShare::kKernels,
                                           PlanShare::kOptimizer, PlanShare::kFixed};
inline constexpr std::array kCommunicationShares{PlanShare::kCollectives, PlanShare::kTransfers,
                                                 PlanShare::kHostCopies, PlanShare::kReduction};
inline constexpr std::array kBubbleShares{PlanShare::kRamps, PlanShare::kOrder,
                                          PlanShare::kImbalance};
inline constexpr std::array kRecomputeShares{PlanShare::kRecompute};

// `other` less `than`; the seconds sum to the difference of their expected iterations, up to
// rounding.
struct PlanDifference {
  std::array<Seconds, kPlanShareNames.size()> causes{};
  Seconds contention;  // what messages on shared ways add, where both or one were run with it
  Bytes memory;        // of the GPU that holds most

  [[nodiscard]] Seconds cause(PlanShare share) const { return causes[static_cast<size_t>(share)]; }
  [[nodiscard]] Seconds compute() const { return sum_of(kComputeShares); }
  [[nodiscard]] Seconds communication() const { return sum_of(kCommunicationShares) + contention; }
  [[nodiscard]] Seconds bubble() const { return sum_of(kBubbleShares); }
  [[nodiscard]] Seconds recompute() const { return sum_of(kRecomputeShares); }
  [[nodiscard]] Seconds total() const {
    return compute() + communication() + bubble() + recompute();
  }

 private:
  template <size_t kSize>
  [[nodiscard]] Seconds sum_of(const std::array<PlanShare, kSize>& shares) const {
    Seconds sum;
    for (const PlanShare share : shares) sum += cause(share);
    return sum;
  }
};

PlanDifference difference_of(const Planned& than, const Planned& other);

// "ramps +5.0%, kernels -3.0%": causes as shares of `than`'s expected seconds, the largest `most`
// of those over a thousandth.
std::string causes_text(const Planned& than, const PlanDifference& difference, size_t most);

// "compute -1.2%, bubble +4.0%": likewise, the four parts.
std::string parts_text(const Planned& than, const PlanDifference& difference);

}  // namespace pipesim
