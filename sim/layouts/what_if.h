// What a little more of something would bring: the question again with one thing changed.
#pragma once

#include <string>
#include <vector>

#include "sim/layouts/plan.h"

namespace pipesim {

struct PlanWhatIf {
  std::string change;  // "memory of a GPU x 1.1"
  int gpus = 0;
  std::vector<Planned> best;  // the fastest, by replay; none where nothing fits
};

// A tenth more memory of a GPU, bandwidth between nodes, bandwidth within a node, and twice the
// GPUs with the same batch. Each is a search as `plan` makes it, for one layout.
std::vector<PlanWhatIf> plan_what_ifs(const PlanQuestion& question, PlanOptions options);

}  // namespace pipesim
