#include "sim/planning/pairs.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/core/error.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/least_overlap.h"
#include "sim/planning/room.h"

namespace pipesim {
namespace {

// The block of the passes, in any order: of an F with a BW, B or W of another unit, or with both B
// and W of one.
std::optional<OverlappedPair> block_of(std::span<const Pass> passes) {
  std::optional<Pass> forward, backward;
  for (const Pass& pass : passes) {
    if (pass.kind == PassKind::kF) {
      if (forward) return std::nullopt;
      forward = pass;
    } else if (!runs_beside_forward(pass.kind)) {
      return std::nullopt;
    } else if (!backward) {
      backward = pass;
    } else {
      const bool halves = backward->kind != pass.kind && backward->kind != PassKind::kBW &&
                          pass.kind != PassKind::kBW;
      if (!halves || backward->microbatch != pass.microbatch || backward->chunk != pass.chunk) {
        return std::nullopt;
      }
      backward->kind = PassKind::kBW;
    }
  }
  if (!forward || !backward || forward->microbatch == backward->microbatch) return std::nullopt;
  return OverlappedPair{*forward, *backward};
}

class Pairing {
 public:
  Pairing(const Program& program, const Problem& problem, Bytes limit, double effort)
      : program_(program),
        problem_(problem),
        lists_(program.lists()),
        pairs_(program.pairs().begin(), program.pairs().end()),
        left_(effort) {
    const Evaluation before = evaluate(program, problem);
    most_ = time_of(before, problem.objective);
    limit_ = std::max(kRounding * limit, before.peak_activation());
  }

  // Which neighbours are joined at once before others are joined one after the other.
  enum class AtOnce : std::uint8_t { kNone, kBackwardFirst, kForwardFirst };

  Program run(AtOnce which) {
    if (which != AtOnce::kNone) {
      const bool forward_first = which == AtOnce::kForwardFirst;
      join_all(0, lists_.size(), forward_first);
      for (size_t d = 0; d < lists_.size(); ++d) join_all(d, d + 1, forward_first);
    }
    while (round()) continue;
    return made();
  }
  [[nodiscard]] Seconds seconds() const { return most_; }

 private:
  void join_all(size_t from, size_t to, bool forward_first) {
    const PassLists lists = lists_;
    const std::vector<OverlappedPair> pairs = pairs_;
    for (size_t d = from; d < to; ++d) {
      for (size_t at = 0; at + 1 < lists_[d].size(); ++at) {
        if ((lists_[d][at].kind == PassKind::kF) != forward_first) continue;
        (void)(put(d, at, 3) || put(d, at, 2));
      }
    }
    if (left_ > 0 && pairs_.size() > pairs.size() && helps()) return;
    lists_ = lists;
    pairs_ = pairs;
  }

  // True where anything was joined.
  bool round() {
    bool joined = false;
    for (size_t d = 0; d < lists_.size(); ++d) {
      for (size_t at = 0; at + 1 < lists_[d].size() && left_ > 0; ++at) {
        joined |= join(d, at, 3) || join(d, at, 2);
      }
    }
    return joined;
  }

  // The passes from `at` on as one block; false where they make none.
  bool put(size_t device, size_t at, size_t count) {
    auto& list = lists_[device];
    if (at + count > list.size()) return false;
    const auto block = block_of(std::span(list).subspan(at, count));
    if (!block) return false;
    list[at] = make_pass(PassKind::kFB, static_cast<int>(pairs_.size()));
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(at) + 1,
               list.begin() + static_cast<std::ptrdiff_t>(at + count));
    pairs_.push_back(*block);
    return true;
  }

  bool join(size_t device, size_t at, size_t count) {
    std::vector<Pass> before = lists_[device];
    if (!put(device, at, count)) return false;
    if (helps()) return true;
    lists_[device] = std::move(before);
    pairs_.pop_back();
    return false;
  }

  bool helps() {
    const Program trial = made();
    left_ -= static_cast<double>(trial.size());
    try {
      const auto result = evaluate(trial, problem_);
      const Seconds time = time_of(result, problem_.objective);
      if (time > most_ || result.peak_activation() > limit_) return false;
      most_ = time;
      return true;
    } catch (const InfeasibleError&) {
      return false;  // a block that waits for itself
    }
  }

  [[nodiscard]] Program made() const {
    return {program_.shape(), program_.placement(),   lists_,
            pairs_,           program_.wrap_around(), program_.vocabulary()};
  }

  const Program& program_;
  const Problem& problem_;
  PassLists lists_;
  std::vector<OverlappedPair> pairs_;
  Seconds most_;
  Bytes limit_;
  double left_;  // passes to evaluate
};

}  // namespace

bool gains_by_pairs(const Problem& problem) {
  constexpr double kRoundingOfSums = 1e-9;
  return least_overlap(problem) < 1 - kRoundingOfSums;
}

// A steady state may gain only where all of it is blocks, and single blocks may gain where that
// does not: each way is tried, and the shortest order is taken.
Program with_pairs(const Program& program, const Problem& problem, Bytes limit, double effort) {
  using AtOnce = Pairing::AtOnce;
  std::optional<Program> best;
  std::optional<Seconds> least;
  if (program.copies() != nullptr) return program;
  for (const AtOnce which : {AtOnce::kNone, AtOnce::kBackwardFirst, AtOnce::kForwardFirst}) {
    Pairing pairing(program, problem, limit, effort);
    Program paired = pairing.run(which);
    if (least && pairing.seconds() >= *least) continue;
    least = pairing.seconds();
    best.emplace(std::move(paired));
  }
  return *best;
}

Program without_pairs(const Program& program) {
  PassLists lists(program.lists().size());
  for (size_t d = 0; d < lists.size(); ++d) {
    for (const Pass& pass : program.passes(static_cast<int>(d))) {
      if (pass.kind == PassKind::kFB) {
        lists[d].push_back(program.pair(pass).forward);
        lists[d].push_back(program.pair(pass).backward);
      } else {
        lists[d].push_back(pass);
      }
    }
  }
  return {program.shape(),       program.placement(), std::move(lists), {},
          program.wrap_around(), program.vocabulary()};
}

}  // namespace pipesim
