// A loop whose turns run beside each other, on as many threads as the machine has.
#pragma once

#include <functional>

namespace pipesim {

// Runs `work(i)` for every i in [0, count), begun in that order. The first exception stops what has
// not begun, and is thrown when all threads have ended.
void in_parallel(int count, const std::function<void(int)>& work);

}  // namespace pipesim
