// A layout to hold the others against: the usual one, or one that a person brings.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "sim/core/error.h"
#include "sim/layouts/outcome.h"

namespace pipesim {

// The layout that a person would try first with Megatron-LM (Narayanan et al. 2021, section 3,
// takeaways 1 to 3). Microbatches have one sample, and stages even layers where these divide. It
// takes the fewest ranks that fit, with the most tensor ranks within a node, and interleaves as
// often as layers divide.
// Context ranks come only where no other division fits, full recomputation only where nothing fits
// without it, experts on several nodes likewise. Layouts with over a quarter of bubble are passed
// over. Switches and narrowed axes are those of the question. Nothing where none of these fits.
std::optional<Planned> usual_layout(const PlanQuestion& question);

// The layout of a tuned run that was published for the question's model and GPU, the nearest in
// precision, sequence length and GPUs (recipes.h). It has that run's sizes, and its recomputation
// where it fits so: few runs say what they recompute. Nothing where there is none, or where the
// question is narrowed to other sizes. Nothing also where it does not fit or idles for over a
// quarter of the time. `stop` ends the search as in PlanOptions. Expert tensor ranks are searched.
struct Published {
  Planned planned;
  std::string run;  // its name in validate/papers/runs/runs.yaml
};
std::optional<Published> published_layout(const PlanQuestion& question,
                                          const std::function<bool()>& stop = {});

// The scenario's layout as a row beside the question's. Throws InputError at `where` for a scenario
// of another model, cluster, number of GPUs, batch or sequence length. Also for several schedules,
// or a schedule without a name.
Planned baseline_of(const PlanQuestion& question, Scenario scenario, const Location& where);

}  // namespace pipesim
