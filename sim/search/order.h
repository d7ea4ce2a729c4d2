// The orders of a program's devices as words over few letters, with times that follow a change
// without starting over.
//
// A letter is a kind of pass (F, B, W) of one chunk. Microbatches pass a stage in order, so that
// the n-th occurrence of a letter is microbatch n, at that one's cost. Any words with m of each
// letter that keep F before B before W are a program. Times are plain seconds, bytes plain bytes:
// this is the hot loop of `refine`.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "sim/core/grid.h"
#include "sim/pipeline/dependencies.h"
#include "sim/pipeline/problem.h"
#include "sim/search/bound.h"

namespace pipesim {

class Order {
 public:
  using Word = std::vector<std::uint8_t>;

  // `words` by device; letter = kind * chunks + chunk, kind 0 F, 1 B, 2 W. A device with fewer
  // chunks than others has fewer letters, and a shorter word.
  Order(const Problem& problem, int microbatches, double limit, std::vector<Word> words);

  // Other words; `evaluate` next.
  void restart(std::vector<Word> words) { words_ = std::move(words); }
  // Evaluates all; false on a deadlock, a device above the limit, or a cost above `most`, and the
  // words are no accepted order then.
  bool evaluate(double most = std::numeric_limits<double>::infinity());
  // Moves the pass at `from` of `device` to `to`. False, and nothing changed, when the order would
  // be no program, exceed the limit, deadlock, or score above `bound`.
  bool move(int device, int from, int to, double bound);

  [[nodiscard]] double score() const { return score_; }  // cost, and a little of the mean span
  [[nodiscard]] double cost() const { return cost_; }    // the time that counts
  [[nodiscard]] const std::vector<Word>& words() const { return words_; }
  [[nodiscard]] int microbatches() const { return m_; }
  [[nodiscard]] std::uint64_t evaluated() const { return evaluated_; }
  // Start of the pass at `position`, of the last order that was accepted.
  [[nodiscard]] double start(int device, int position) const { return start_(device, position); }
  [[nodiscard]] int length(int device) const { return length_[device]; }  // passes of a device
  [[nodiscard]] int longest() const { return longest_; }                  // of the lengths

  // Start of the B of the first stage of microbatch `unit`, of units that cost alike.
  [[nodiscard]] double first_stage_backward(int unit) const;
  // How many passes of `device` start before `time`.
  [[nodiscard]] int position_at(int device, double time) const;

 private:
  // The pass that a letter names on a device.
  struct Letter {
    int source = -1;    // index of the letter of another stage that it waits for
    int receiver = -1;  // another device, where something waits for it
  };
  struct Cost {
    double seconds = 0;
    double bytes = 0;    // acquired, or less than nothing: released
    double message = 0;  // from the letter's source
  };
  // When the letters of an order have ended: by index of the letter and microbatch.
  using Ends = Grid<double>;

  void add_stage(const Problem& problem, int vs);
  // Stores the costs of a stage's units of one kind.
  void add_costs(const Placement& place, int vs, const std::vector<StageCost>& stages, size_t kind);
  // The index of a letter among those of all devices.
  [[nodiscard]] int index(int device, int letter) const { return device * letters_ + letter; }
  [[nodiscard]] int index(const Placement& place, const StagePass& pass) const;
  // Row of a position among those of all devices.
  [[nodiscard]] int row(int device, int position) const { return device * longest_ + position; }
  // The cost of an index and unit, and of the pass at a position, whose letters are counted.
  [[nodiscard]] const Cost& cost(int of, std::uint32_t unit) const {
    return costs_[kind_of_unit_.empty() ? of : kind_of_unit_[unit] * table_.size() + of];
  }
  [[nodiscard]] const Cost& cost_at(int device, int position) const {
    const int letter = words_[device][position];
    return cost(index(device, letter), counts_(row(device, position), letter));
  }
  [[nodiscard]] bool allowed(int device, int from, int to) const;
  bool fits(int device, int first, int last);
  void count_letters(int device, int first, int last);
  void count_work(int device, int first, int last);
  bool trial(double bound);
  void start_trial();
  bool advance(int device, double bound);
  void wake(int device);
  void accept();

  int p_, v_, m_, longest_, letters_;
  std::vector<int> length_;
  double limit_;
  bool from_zero_;                           // spans count from the start of all
  std::vector<Letter> table_;                // by index
  std::vector<Cost> costs_;                  // by kind of unit and index
  std::vector<std::uint32_t> kind_of_unit_;  // empty where units cost alike
  int first_stage_backward_ = 0;             // its index
  std::vector<Word> words_;
  // Accepted state, by device and position: start and end of every pass, bytes held before it, work
  // of the device after it.
  Grid<double> start_, end_, held_, work_after_;
  Grid<std::uint32_t> counts_;  // letters before it, by row and letter
  Ends ends_;
  // Trial state.
  Grid<double> trial_start_, trial_end_;
  Ends trial_ends_;
  std::vector<std::uint32_t> base_, done_;  // letters done before and during the trial, by index
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
