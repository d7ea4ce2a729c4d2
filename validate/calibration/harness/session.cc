#include "validate/calibration/harness/session.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "validate/calibration/compose.h"

namespace pipesim::calibration {
namespace {

constexpr std::size_t kSmallestArena = std::size_t{1} << 30;
constexpr std::size_t kArenaShare = 6;        // three arenas, and as much for layers
constexpr std::size_t kRegionPadding = 1024;  // alignment of the operands within a region

TimingSettings timing_of(const Plan& plan) {
  return {.sample_target_us = plan.sample_target_us,
          .budget_us = plan.point_budget_us,
          .maximum_repetitions = plan.maximum_repetitions};
}

// The largest region that a launch of the plan takes, which an arena must hold at least once; but
// no more than its share of the card.
std::size_t arena_bytes(const Plan& plan, int64_t memory_bytes) {
  double largest = 0;
  for (const MatmulSpec& spec : plan.matmuls) largest = std::max(largest, spec.bytes());
  for (const KernelSpec& spec : plan.kernels) {  // at most three bf16 matrices on either side
    const double elements = static_cast<double>(spec.rows) * static_cast<double>(spec.columns);
    if (spec.kernel != Kernel::kAdamStep) largest = std::max(largest, 6 * elements);
  }
  return std::min(std::max(kSmallestArena, static_cast<std::size_t>(largest) + kRegionPadding),
                  static_cast<std::size_t>(memory_bytes) / kArenaShare);
}

}  // namespace

Session::Session(const Card& the_card, Plan the_plan, Progress progress)
    : card(the_card),
      plan(std::move(the_plan)),
      timer(the_card, timing_of(plan)),
      progress_(std::move(progress)),
      start_(std::chrono::steady_clock::now()) {}

double Session::elapsed_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Session::not_measured(std::string what, std::string reason) {
  progress_("not measured: " + what + ": " + reason);
  measured.not_measured.push_back({std::move(what), std::move(reason)});
}

bool Session::attempt(Point point, const std::function<void(Point&)>& fill) {
  if (elapsed_s() > plan.time_limit_s) {
    ++skipped_[point.group];
    return false;
  }
  std::string reason;
  try {
    fill(point);
    measured.points.push_back(std::move(point));
    return true;
  } catch (const OutOfMemory& error) {
    reason = error.what();
  } catch (const LibraryError& error) {
    reason = error.what();
  } catch (const MeasureError& error) {
    reason = error.what();
  }
  not_measured(point.key(), reason);
  return false;
}

void Session::burn_in() {
  if (plan.burn_in_s <= 0) return;
  try {
    if (!load_) load_ = layer_work(*this, plan.layers.front());
    timer.keep_busy(load_, plan.burn_in_s);
    timer.run_ahead(load_);
  } catch (const LibraryError& error) {
    not_measured("burn-in", error.what());
  } catch (const OutOfMemory& error) {
    not_measured("burn-in", error.what());
  }
}

void Session::settle() {
  constexpr double kSeconds = 0.1;
  if (load_) timer.keep_busy(load_, kSeconds);
}

void Session::close() {
  for (const auto& [group, count] : skipped_) {
    not_measured(std::to_string(count) + " points of " + group, "the mode's time was over");
  }
  skipped_.clear();
}

const Arena& Session::operands(Precision precision) {
  std::optional<Arena>& arena = precision == Precision::kBf16 ? bf16_ : fp8_;
  if (!arena) {
    if (precision == Precision::kBf16) {
      arena.emplace(arena_bytes(plan, card.facts().memory_bytes), Filling::kBf16, 1);
    } else {
      arena.emplace(arena_bytes(plan, card.facts().memory_bytes) / 2, Filling::kFp8, 2);
    }
  }
  return *arena;
}

const Arena& Session::scratch() {
  if (!scratch_) scratch_.emplace(arena_bytes(plan, card.facts().memory_bytes), Filling::kFp32, 3);
  return *scratch_;
}

void run_stages(Session& session) {
  struct Stage {
    const char* name;
    void (*measure)(Session&);
  };
  // Collectives come last: nothing else can hang. Before them the sweep of matmuls, the longest, of
  // which a mode's time may cut the end.
  constexpr std::array<Stage, 10> kStages{{{"launches", measure_launches},
                                           {"kernels", measure_kernels},
                                           {"host copies", measure_copies},
                                           {"host copies together", measure_copies_together},
                                           {"interference", measure_interference},
                                           {"attention", measure_attention},
                                           {"layers", measure_layers},
                                           {"pauses", measure_pauses},
                                           {"matmuls", measure_matmuls},
                                           {"collectives", measure_collectives}}};
  for (const Stage& stage : kStages) {
    session.announce("after " + std::to_string(static_cast<int>(session.elapsed_s())) +
                     " s: " + stage.name);
    const std::shared_ptr<void> guard = session.watch ? session.watch(stage.name) : nullptr;
    bool lost = false;
    try {
      session.timer.run_ahead({});
      stage.measure(session);
    } catch (const OutOfMemory& error) {
      session.not_measured(std::string("the rest of ") + stage.name, error.what());
    } catch (const CudaError& error) {
      // The device is lost to this process; what was measured before is not.
      session.not_measured(std::string("the rest of ") + stage.name + " and every later stage",
                           error.what());
      lost = true;
    } catch (const std::runtime_error& error) {
      session.not_measured(std::string("the rest of ") + stage.name, error.what());
    }
    if (session.stage_ended) session.stage_ended(session);
    if (lost) break;
  }
  compose_layers(session);
  session.close();
}

void compose_layers(Session& session) {
  for (const LayerSlice& slice : session.plan.layers) {
    for (const char pass : {'F', 'B', 'W'}) {
      for (Composition composition : {compose_layer(session.measured, slice, pass),
                                      compose_vocabulary(session.measured, slice, pass)}) {
        if (composition.missing.empty()) {
          session.measured.points.push_back(std::move(composition.point));
        } else {
          session.not_measured(composition.point.key(),
                               "a part is missing: " + composition.missing.front());
        }
      }
    }
  }
}

}  // namespace pipesim::calibration
