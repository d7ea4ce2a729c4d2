// A line for people where a GPU would do more than it can.
#pragma once

#include <string>

namespace pipesim {

// Nothing up to 100%. `peak` in FLOP/s; both utilisations are shares of it, and `causal` counts the
// pairs alone that a causal model attends to.
std::string impossible_rate(const std::string& name, double mfu, double causal, double peak);

}  // namespace pipesim
