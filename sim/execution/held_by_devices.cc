#include "sim/execution/held_by_devices.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "sim/core/grid.h"
#include "sim/execution/evaluate.h"

namespace pipesim {
namespace {

// Microbatches of all directions by age: the first of each, then the second of each.
class Ages {
 public:
  explicit Ages(const Program& program)
      : splits_(program.shape().splits), ages_(program.shape().microbatches) {
    const int directions = program.placement().directions();
    const int all = program.shape().microbatches;
    int age = 0;
    for (int turn = 0; age < all; ++turn) {
      for (int direction = 0; direction < directions; ++direction) {
        const int microbatch = direction * all / directions + turn;
        if (microbatch < (direction + 1) * all / directions) ages_[microbatch] = age++;
      }
    }
  }

  [[nodiscard]] int of(std::uint32_t unit) const { return ages_[static_cast<int>(unit) / splits_]; }

 private:
  int splits_;
  std::vector<int> ages_;  // by microbatch
};

// The passes of one device, of which each is taken once.
class HeldDevice {
 public:
  HeldDevice(const Program& program, const Problem& problem, int device, double limit)
      : program_(program),
        problem_(problem),
        device_(device),
        limit_(limit),
        ages_(program),
        by_letter_(4 * program.placement().chunks(device)),
        next_(by_letter_.size()),
        ran_(program.placement().chunks(device), program.shape().units()),
        needs_(program.shape().microbatches),
        left_(needs_.size()) {
    const auto passes = program.passes(device);
    for (size_t at = 0; at < passes.size(); ++at) {
      by_letter_[letter(passes[at])].push_back(at);
      needs_[ages_.of(passes[at].microbatch)] += acquired(passes[at]);
      ++left_[ages_.of(passes[at].microbatch)];
    }
  }

  // Nothing where the device has passes left and none has room.
  std::optional<std::vector<Pass>> run() {
    std::vector<Pass> list;
    const auto passes = program_.passes(device_);
    while (list.size() < passes.size()) {
      while (left_[oldest_] == 0) ++oldest_;
      std::optional<size_t> first;
      for (size_t letter = 0; letter < by_letter_.size(); ++letter) {
        if (next_[letter] == by_letter_[letter].size()) continue;
        const size_t at = by_letter_[letter][next_[letter]];
        if ((!first || at < *first) && may_run(passes[at])) first = at;
      }
      if (!first) return std::nullopt;
      take(passes[*first]);
      list.push_back(passes[*first]);
    }
    return list;
  }

 private:
  static int number(PassKind kind) {
    return kind == PassKind::kF ? 0 : kind == PassKind::kR ? 1 : kind == PassKind::kB ? 2 : 3;
  }
  [[nodiscard]] int letter(const Pass& pass) const {
    return number(pass.kind) * program_.placement().chunks(device_) + pass.chunk;
  }
  [[nodiscard]] double acquired(const Pass& pass) const {
    return pass_bytes(problem_, program_, device_, pass).acquired.value();
  }

  // True if the pass's forerunners of its chunk and unit have run, and it has room.
  [[nodiscard]] bool may_run(const Pass& pass) const {
    const bool recomputes =
        program_.recomputes(program_.placement().virtual_stage(device_, pass.chunk));
    const int before = pass.kind == PassKind::kB && !recomputes ? 1 : number(pass.kind);
    const int ran = ran_(pass.chunk, pass.microbatch);
    if (ran < before) return false;
    const double bytes = acquired(pass);
    const int age = ages_.of(pass.microbatch);
    if (bytes <= 0 || age == oldest_) return true;
    return held_ + bytes + needs_[oldest_] <= limit_;
  }

  void take(const Pass& pass) {
    const PassBytes bytes = pass_bytes(problem_, program_, device_, pass);
    held_ += (bytes.acquired - bytes.released).value();
    const int age = ages_.of(pass.microbatch);
    needs_[age] -= bytes.acquired.value();
    --left_[age];
    ran_(pass.chunk, pass.microbatch) = number(pass.kind) + 1;
    ++next_[letter(pass)];
  }

  const Program& program_;
  const Problem& problem_;
  int device_;
  double limit_;
  Ages ages_;
  std::vector<std::vector<size_t>> by_letter_;  // positions
  std::vector<size_t> next_;
  Grid<int> ran_;              // by chunk and unit: the last kind, from 1
  std::vector<double> needs_;  // by age: bytes still to acquire
  std::vector<int> left_;      // by age: passes
  double held_ = 0;
  int oldest_ = 0;  // the age that is not done
};

}  // namespace

std::optional<Program> held_by_devices(const Program& program, const Problem& problem,
                                       Bytes limit) {
  PassLists lists;
  for (int d = 0; d < program.shape().devices; ++d) {
    auto list = HeldDevice(program, problem, d, limit.value()).run();
    if (!list) return std::nullopt;
    lists.push_back(*std::move(list));
  }
  return Program(program.shape(), program.placement(), std::move(lists), {}, program.wrap_around());
}

Program one_at_a_time(const Program& program) {
  const Ages ages(program);
  const Placement& place = program.placement();
  PassLists lists = program.lists();
  for (int d = 0; d < place.devices(); ++d) {
    // By age, F in stage order and splits, backwards the other way round.
    const auto rank = [&](const Pass& pass) {
      const int vs = place.virtual_stage(d, pass.chunk);
      const int split = static_cast<int>(pass.microbatch) % program.shape().splits;
      const bool forward = pass.kind == PassKind::kF;
      const int kind = pass.kind == PassKind::kR ? 0 : pass.kind == PassKind::kB ? 1 : 2;
      return std::array{ages.of(pass.microbatch), forward ? 0 : 1, forward ? vs : -vs,
                        forward ? split : -split, kind};
    };
    std::ranges::sort(lists[d], {}, rank);
  }
  return {program.shape(), place, std::move(lists), {}, program.wrap_around()};
}

}  // namespace pipesim
