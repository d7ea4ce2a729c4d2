// The orders of a program's devices as words over few letters, with times that follow a change
// without starting over.
//
// A letter is a kind of pass (F, B, W) of one chunk. Microbatches pass a stage in order, so that
// the n-th occurrence of a letter is microbatch n, and any words with m of each letter that keep F
// before B before W are a program. Times are plain seconds, bytes plain bytes: this is the hot loop
// of `refine`.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/search/bound.h"

namespace pipesim {

class Order {
 public:
  using Word = std::vector<std::uint8_t>;

  // `words` by device; letter = kind * chunks + chunk, kind 0 F, 1 B, 2 W.
  Order(const Problem& problem, int microbatches, double limit, std::vector<Word> words,
        Objective objective);

  // Other words; `evaluate` next.
  void restart(std::vector<Word> words) { words_ = std::move(words); }
  // Evaluates all; false on a deadlock or a device above the limit.
  bool evaluate();
  // Moves the pass at `from` of `device` to `to`. False, and nothing changed, when the order would
  // be no program, exceed the limit, deadlock, or score above `bound`.
  bool move(int device, int from, int to, double bound);

  [[nodiscard]] double score() const { return score_; }  // cost, and a little of the mean span
  [[nodiscard]] double cost() const { return cost_; }    // what the objective is of it
  [[nodiscard]] const std::vector<Word>& words() const { return words_; }
  [[nodiscard]] int microbatches() const { return m_; }
  [[nodiscard]] std::uint64_t evaluated() const { return evaluated_; }
  // Start of the pass at `position`, of the last order that was accepted.
  [[nodiscard]] double start(int device, int position) const {
    return start_[row(device) + static_cast<size_t>(position)];
  }
  [[nodiscard]] int length() const { return length_; }  // passes of a device

  // Start of the B of the first stage of microbatch `unit`.
  [[nodiscard]] double first_stage_backward(int unit) const;
  // How many passes of `device` start before `time`.
  [[nodiscard]] int position_at(int device, double time) const;

 private:
  struct Chunk {
    double forward, backward, weight;
    double from_upstream, from_downstream;
    double activation, stash;
    int up = -1, down = -1;  // index (device * v + chunk) of the neighbouring stages
    int up_device = -1, down_device = -1;
  };

  [[nodiscard]] size_t row(int device) const {
    return static_cast<size_t>(device) * static_cast<size_t>(length_);
  }
  [[nodiscard]] bool allowed(int device, int from, int to) const;
  bool fits(int device, int first, int last);
  void count_from(int device, int first, int last);
  bool trial(double bound);
  bool advance(int device, double bound);
  void accept();

  int p_, v_, m_, length_, letters_;
  double limit_;
  bool from_zero_;  // spans count from the start of all
  std::vector<Chunk> chunks_;
  std::vector<Word> words_;
  // Accepted state, by device and position: start and end of every pass, letters counted before it,
  // bytes held before it.
  std::vector<double> start_, end_, held_;
  std::vector<std::uint32_t> counts_;
  std::vector<double> work_after_;          // by device and position
  std::vector<double> forward_, backward_;  // ends, by chunk index * m + microbatch
  // Trial state.
  std::vector<double> trial_start_, trial_end_, trial_forward_, trial_backward_;
  std::vector<std::uint32_t> base_, done_;  // letters done before and during the trial
  std::vector<int> from_, position_, queue_;
  std::vector<std::uint8_t> queued_;
  std::vector<double> clock_, first_;
  size_t head_ = 0, tail_ = 0, queued_count_ = 0;
  double score_ = std::numeric_limits<double>::infinity();
  double cost_ = score_;
  double trial_score_ = 0, trial_cost_ = 0;
  std::uint64_t evaluated_ = 0;
};

}  // namespace pipesim
