// The least time of all orders of a problem's passes on its placement within a memory limit, or the
// gap of the best known order. Proven by our own bound where that is reached, else by CBC.
//
// Seconds become whole units. The unit is the largest that divides all of them. It must be a
// multiple of a power of ten of a second, and the time at most kMostUnits of it. Otherwise the unit
// is a kMostUnits-th of the time. No order is faster than the proven one by a unit or more.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/planning/windows.h"

namespace pipesim::exact {

inline constexpr double kMostUnits = 1e6;
// Pairs of passes on a device whose order is undecided. CBC does not solve a program with more.
inline constexpr int kMostOpenPairs = 4000;

enum class Ended {
  kBoundReached,  // the order takes no longer than our own bound: no solver was needed
  kProven,        // CBC excludes what is faster by a unit
  kTimeLimit,     // CBC was stopped
  kNoAnswer,      // CBC ended without an order
  kTooLarge,      // more than kMostOpenPairs
  kNoSolver,      // there is no command cbc
  kPairs,         // overlapped blocks may save time, which the program for CBC does not know
};

struct Proof {
  Program program;  // the best order that is known
  Seconds time;     // of it, by the problem's objective
  Seconds bound;    // nothing takes less
  Seconds unit;
  std::int64_t open_pairs = 0;
  Ended ended = Ended::kBoundReached;

  [[nodiscard]] bool proven() const {
    return ended == Ended::kBoundReached || ended == Ended::kProven;
  }
  [[nodiscard]] double gap() const { return proven() ? 0 : time / bound - 1; }
};

struct ProveOptions {
  int seconds = 60;              // of CBC
  std::filesystem::path folder;  // for kCbcFiles
};

// `start` is an order of F, B and W in one direction, microbatches in their order, within `limit`
// on every device: as `refine` returns it. Where blocks save time it may have some. LogicError
// where CBC's order is not what CBC says.
Proof prove(const Program& start, const Problem& problem, Bytes limit, const ProveOptions& options);

}  // namespace pipesim::exact
