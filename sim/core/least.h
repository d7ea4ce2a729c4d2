// Bisection over whole numbers.
#pragma once

#include <numeric>

namespace pipesim {

// The least number from `first` on that is enough, below `end`; else `end`. Numbers behind one that
// is enough must be enough too.
template <class Enough>
int least(int first, int end, Enough enough) {
  while (first < end) {
    const int middle = std::midpoint(first, end);
    if (enough(middle)) {
      end = middle;
    } else {
      first = middle + 1;
    }
  }
  return first;
}

}  // namespace pipesim
