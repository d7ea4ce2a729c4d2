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
#include <optional>
#include <vector>

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

// Nothing for programs with copies or a sharded vocabulary. O(passes).
std::optional<Spelled> spelled(const Program& program, const Problem& problem);

// The program of other words of the same letters.
Program program_of(const Problem& problem, const Spelling& spelling,
                   const std::vector<Spelling::Word>& words);

}  // namespace pipesim
