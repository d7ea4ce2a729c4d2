// A program as words over few letters, one word a device, and back.
//
// A letter is a kind of pass (F, B, W and, where a stage recomputes, R) of one chunk. A BW is a B
// and its W. An overlapped block is its F and, joined to it, its backward.
//
// Where units cost alike, travel one way and are waited for, the n-th occurrence of a letter is
// unit n. That loses nothing: where units overtake each other the n-th is never later, since the
// n-th that it waits for is not. In other programs a letter runs through the units in the program's
// order. So B runs backwards through the splits of a sequence, and each direction has its own
// units.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sim/core/grid.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

struct Spelling {
  // letter = kind * chunks + chunk, kind 0 F, 1 B, 2 W, 3 R
  using Word = std::vector<std::uint16_t>;
  static constexpr std::uint16_t kJoined = 0x8000;  // beside a letter: to the one before it
  static bool is_joined(std::uint16_t pass) { return (pass & kJoined) != 0; }
  static int letter_of(std::uint16_t pass) { return pass & ~kJoined; }

  int kinds = 3;
  std::vector<bool> recomputes = {};  // by virtual stage; empty: none does
  WrapAround wrap_around = WrapAround::kEvery;
  // The units of a letter's occurrences, by device * kinds * chunks + letter. Empty: 0, 1, ...
  std::vector<std::vector<std::uint32_t>> units = {};

  [[nodiscard]] bool recompute(int vs) const { return !recomputes.empty() && recomputes[vs]; }
};

struct Spelled {
  Spelling spelling;
  std::vector<Spelling::Word> words;  // by device
};

// The passes that letters stand for, by device * kinds * chunks + letter: plain seconds and bytes.
struct LetterTable {
  // A number that nothing waits for.
  static constexpr std::uint32_t kNoWait = std::numeric_limits<std::uint32_t>::max();
  struct Letter {
    int source = -1;    // index of the letter of another stage that it waits for
    int receiver = -1;  // another device, where something waits for it
  };
  struct Cost {
    double seconds = 0;
    double bytes = 0;    // acquired, or less than nothing: released
    double message = 0;  // from the letter's source
  };

  std::vector<Letter> letters;
  std::vector<Cost> costs;           // by kind of unit, then by letter
  std::vector<std::uint32_t> count;  // of occurrences
  // By letter and number of its occurrence: the number of its source's that it waits for, or
  // kNoWait. Empty where it is the same number.
  Grid<std::uint32_t> awaited;
  int first_stage_backward = 0;  // the letter's index
};

// For the problem's units, or fewer where the n-th occurrence is unit n.
LetterTable letter_table(const Problem& problem, const Spelling& spelling, int units);

// True if there is one direction, and every message is waited for.
bool travels_one_way(const Program& program);

// True if some unit does not wait for the message between the stage and the next (WrapAround).
bool may_go_ahead(const Program& program, int vs);

// Nothing for programs with copies or a sharded vocabulary. O(passes).
std::optional<Spelled> spelled(const Program& program, const Problem& problem);

// The program of other words of the same letters.
Program program_of(const Problem& problem, const Spelling& spelling,
                   const std::vector<Spelling::Word>& words);

}  // namespace pipesim
