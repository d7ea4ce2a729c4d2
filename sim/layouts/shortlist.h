// The layouts of a search that stand for an idea each, beside the fastest.
//
// A point that by its lower bounds can be none of them is not run. So the choice does not depend on
// the order of runs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/layouts/outcome.h"

namespace pipesim {

// Layouts that take more than this times as long as the fastest stand for nothing. Two measured
// runs of one group differ by up to 18% in how far off they are (residuals.csv): this is beyond it.
inline constexpr double kMostSlower = 1.25;
// The simplest layout is sought within this factor of the fastest. Schedules of one layout are told
// apart from 3.2% on (353 measured pairs of schedule_runs.csv).
inline constexpr double kNearlyAsFast = 1.03;
// The share of the memory limit that a roomy layout takes at most. Measured peaks lie up to 9%
// above simulated ones (software.yaml, memory): twice that stays free.
inline constexpr double kRoomyShare = 0.8;

// The number of a layout's mechanisms: tensor, context, expert and pipeline ranks, chunks, uneven
// stages, recomputation, offload. Also a shared vocabulary, sharded gradients or weights,
// experts' overlap, a schedule beside 1F1B and its interleaving. Below kMostMechanisms.
int mechanisms_of(const PlanPoint& point);
inline constexpr int kMostMechanisms = 16;

class Shortlist {
 public:
  explicit Shortlist(Bytes limit) : limit_(limit) {}

  // True of a point that may stand for an idea, whose run takes no less than `seconds` and
  // `memory`. `runs`: a framework runs it as it stands. `tight`: at best.
  [[nodiscard]] bool may_enter(const PlanPoint& point, bool runs, double seconds, bool tight,
                               Bytes memory) const;
  void offer(const Planned& planned, bool runs);
  // No point of so many seconds or more may enter.
  [[nodiscard]] double closed_from() const;

  [[nodiscard]] std::optional<Seconds> best() const;
  // The chosen, each once: those that run by time, behind them the fastest that nothing runs where
  // it is faster than all of these.
  [[nodiscard]] std::vector<Planned> rows() const;

 private:
  using Entry = std::optional<Planned>;
  [[nodiscard]] double fastest() const;
  [[nodiscard]] bool may_be_simplest(const PlanPoint& point, double seconds) const;
  [[nodiscard]] const Planned* simplest() const;

  Bytes limit_;
  Entry fastest_, any_, no_pipeline_, roomy_;
  std::array<Entry, kMostMechanisms> simple_;  // the fastest of so many mechanisms
};

// Names the ideas of rows in their order: the first is the fastest, others of a framework that runs
// none before them are its fastest.
void name_ideas(std::vector<Planned>& rows);

}  // namespace pipesim
