// Evaluates the points of a sweep that its store does not have, on any number of workers.
//
// Large points go first, in chunks, so that all workers end together. A result does not depend on
// the worker. The store and its files are the same for any number of workers, and for a sweep that
// was stopped and goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "sim/sweep/store.h"
#include "sim/sweep/sweep.h"
#include "sim/sweep/workers.h"

namespace pipesim {

struct SweepProgress {
  std::uint32_t points = 0;     // of the sweep
  std::uint32_t before = 0;     // stored when the run began
  std::uint32_t evaluated = 0;  // by it
  double share = 0;             // of the run's work, by weight
};

struct SweepHooks {
  std::function<bool()> stopped = [] { return false; };  // asked some ten times a second
  std::function<void(const SweepProgress&)> progress = [](const SweepProgress&) {};
  // Called for each result that arrives, not for those stored before.
  std::function<void(const PointResult&)> result = [](const PointResult&) {};
};

// Points whose processes ended, or that met a fault of ours, twice: not stored; why.
using LostPoints = std::map<std::uint32_t, std::string>;

struct SweepRun {
  SweepProgress progress;
  bool stopped = false;
  LostPoints lost;
};

// Stores what it evaluates, at least every half second. Throws what the store does.
SweepRun run_sweep(const Sweep& sweep, ResultStore& store, Workers& workers,
                   const SweepHooks& hooks);

}  // namespace pipesim
