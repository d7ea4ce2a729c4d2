// The orders of a program's devices as words over few letters, with times that follow a change
// without starting over.
//
// Letters, and the unit of a letter's n-th occurrence, are those of spelling.h. Any words with as
// many of each letter that keep F before R before B before W of every unit are a program. Times are
// plain seconds, bytes plain bytes: this is the hot loop of `refine`.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "sim/core/grid.h"
#include "sim/execution/spelling.h"
#include "sim/pipeline/problem.h"

namespace pipesim {

class Order {
 public:
  using Word = Spelling::Word;
  static constexpr std::uint16_t kJoined = Spelling::kJoined;
  static bool is_joined(std::uint16_t pass) { return Spelling::is_joined(pass); }
  static int letter_of(std::uint16_t pass) { return Spelling::letter_of(pass); }

  // `words` by device. A device with fewer chunks than others has fewer letters, and a shorter
  // word. `units`: of the problem, or fewer where the n-th occurrence is unit n. `blocks`: passes
  // may be joined; the problem has seconds of blocks, and outlives the order.
  Order(const Problem& problem, int units, double limit, std::vector<Word> words,
        bool blocks = false, const Spelling& spelling = {});

  // Other words; `evaluate` next.
  void restart(std::vector<Word> words) { words_ = std::move(words); }
  // Evaluates all; false on a deadlock, a device above the limit, or a cost above `most`, and the
  // words are no accepted order then.
  bool evaluate(double most = std::numeric_limits<double>::infinity());
  // Each of these changes one device's order. False, and nothing changed, when the order would be
  // no program, exceed the limit, deadlock, or score above `bound`.
  //
  // Moves the pass at `from`, or its whole block, to `to`, or behind or before the block there.
  bool move(int device, int from, int to, double bound);
  // Joins an F and a backward at the two positions, in either order. The F leaves the block that it
  // is in; so does the F of the backward's block. `whole`: a W directly behind its B joins too.
  bool join(int device, int from, int to, bool whole, double bound);
  // Takes the block at a position apart, its F first or last.
  bool split(int device, int at, bool forward_last, double bound);

  [[nodiscard]] double score() const { return score_; }  // cost, and a little of the mean span
  [[nodiscard]] double cost() const { return cost_; }    // the time that counts
  [[nodiscard]] const std::vector<Word>& words() const { return words_; }
  [[nodiscard]] int units() const { return m_; }
  [[nodiscard]] std::uint64_t evaluated() const { return evaluated_; }
  // Start of the pass at `position`, of the last order that was accepted.
  [[nodiscard]] double start(int device, int position) const { return start_(device, position); }
  [[nodiscard]] int length(int device) const { return length_[device]; }  // passes of a device
  [[nodiscard]] int longest() const { return longest_; }                  // of the lengths
  // True where passes may be joined.
  [[nodiscard]] bool has_blocks() const { return joins_; }

  // Start of the B of the first stage of `unit`, of units that cost alike, the n-th being unit n.
  // In a block it is as long before the end as B takes alone.
  [[nodiscard]] double first_stage_backward(int unit) const;
  // How many passes of `device` start before `time`.
  [[nodiscard]] int position_at(int device, double time) const;

 private:
  using Cost = LetterTable::Cost;
  // When the letters of an order have ended: by index of the letter and number of its occurrence.
  using Ends = Grid<double>;

  Order(const Problem& problem, int units, double limit, std::vector<Word> words, bool blocks,
        const Spelling& spelling, LetterTable table);
  void add_lengths();
  void add_blocks(const Problem& problem);
  // The index of a letter among those of all devices.
  [[nodiscard]] int index(int device, int letter) const { return device * letters_ + letter; }
  // Row of a position among those of all devices.
  [[nodiscard]] int row(int device, int position) const { return device * longest_ + position; }
  // The unit of an index's n-th occurrence.
  [[nodiscard]] std::uint32_t unit(int letter, std::uint32_t number) const {
    return mapped_ ? units_(letter, number) : number;
  }
  // The cost of an index's n-th occurrence, and of the pass at a position, whose letters are
  // counted.
  template <bool plain = false>
  [[nodiscard]] const Cost& cost(int letter, std::uint32_t number) const {
    if (plain || kind_of_unit_.empty()) return costs_[letter];
    return costs_[kind_of_unit_[unit(letter, number)] * table_.size() + letter];
  }
  [[nodiscard]] const Cost& cost_at(int device, int position) const {
    const int letter = letter_of(words_[device][position]);
    return cost(index(device, letter), number(device, position));
  }
  // How many of the letter at a position stand before it.
  [[nodiscard]] std::uint32_t number(int device, int position) const {
    return counts_(row(device, position), letter_of(words_[device][position]));
  }
  [[nodiscard]] std::uint32_t unit_at(int device, int position) const {
    return unit(index(device, letter_of(words_[device][position])), number(device, position));
  }
  [[nodiscard]] bool is_joined(int device, int position) const {
    return has_blocks() && position < length_[device] && is_joined(words_[device][position]);
  }
  [[nodiscard]] bool is_forward(int device, int position) const {
    return letter_of(words_[device][position]) < v_;
  }
  [[nodiscard]] bool is_backward(int device, int position) const {
    const int kind = letter_of(words_[device][position]) / v_;
    return kind == 1 || kind == 2;
  }
  // The first position of a pass's block, and the one behind it; of a single pass its own.
  [[nodiscard]] int begin_of(int device, int position) const;
  [[nodiscard]] int end_of(int device, int position) const;
  // Seconds of the block that begins at a position, and what a pass there adds to its device that
  // alone takes so long.
  [[nodiscard]] double block_seconds(int device, int position) const;
  [[nodiscard]] double seconds_at(int device, int position, double alone) const;
  [[nodiscard]] bool crosses(int device, int position, int first, int last) const;
  [[nodiscard]] bool is_weight_of(int device, int weight, int backward) const;
  [[nodiscard]] bool may_join(int device, int from, int first) const;
  void take_apart(int device, int position);
  void keep(int device, int first, int last);
  bool attempt(int device, int least, double bound);
  bool fits(int device, int first, int last);
  void count_letters(int device, int first, int last);
  void count_work(int device, int first, int last);
  bool trial(double bound);
  void start_trial();
  template <bool plain>
  [[nodiscard]] double arrival(int letter, std::uint32_t number) const;
  template <bool plain>
  [[nodiscard]] double arrival_at(int device, int position) const;
  template <bool blocks, bool plain>
  bool advance(int device, double bound);
  bool advance(int device, double bound);
  void wake(int device);
  void accept();

  const Problem& problem_;
  int p_, v_, m_, letters_, longest_ = 0;
  bool mapped_, plain_, joins_;       // plain: neither mapped nor of unequal units
  std::vector<std::uint32_t> count_;  // of a letter's occurrences, by index
  std::vector<int> length_;           // by device
  double limit_;
  bool from_zero_;                           // spans count from the start of all
  std::vector<LetterTable::Letter> table_;   // by index
  std::vector<Cost> costs_;                  // by kind of unit and index
  std::vector<std::uint32_t> kind_of_unit_;  // empty where units cost alike
  // Where `mapped_`, by index and number: the number that it waits for, and the unit.
  Grid<std::uint32_t> awaited_, units_;
  int first_stage_backward_;  // its index
  // Where units cost alike, seconds of blocks by device, chunk of F, chunk of backward and its
  // kind.
  std::vector<double> blocks_;
  std::vector<Word> words_;
  Word kept_;           // what a change replaces,
  int kept_first_ = 0;  // from this position on
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
