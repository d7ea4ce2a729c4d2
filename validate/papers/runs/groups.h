// Errors of the runs of a group.
#pragma once

#include <string>
#include <vector>

#include "validate/papers/runs/runs.h"

namespace pipesim {

struct RunGroup {
  std::string name;
  std::vector<const TrainingRun*> runs = {};  // simulated ones
  int rows = 0;
  double signed_median = 0;
  double median = 0;  // of |error|
  double worst = 0;   // the largest |error|, with its sign
  double within_10 = 0;
  double within_15 = 0;  // shares
};

// Groups of one quantity, by TrainingRun::group in order of first appearance; the last holds all.
std::vector<RunGroup> groups_of(const TrainingRuns& all, const std::string& quantity);

}  // namespace pipesim
