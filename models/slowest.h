// The slowest of many GPUs of one kind, for which all others of a run wait.
//
// Chips differ in the clocks that they keep within their power. Seconds of compute are taken as
// normal around the mean of all. Ranks of a collective wait for the slowest of them, and so do
// stages of a pipeline, and pipelines. A long iteration takes as long as on the slowest GPU. Pure
// functions.
#pragma once

namespace pipesim {

// Expected maximum of so many standard normal numbers, 0 for one. Right to 1e-9 for up to 1e6.
// O(1).
double expected_maximum(double count);

// Seconds of the slowest of `gpus`, to the mean of all. `variation`: standard deviation over mean.
inline double slowest(double variation, double gpus) {
  return variation > 0 ? 1 + variation * expected_maximum(gpus) : 1;
}

}  // namespace pipesim
