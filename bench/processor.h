// Processor time, which is what to compare on a machine that does other work.
#pragma once

#include <sys/resource.h>

namespace pipesim::bench {

// User and system seconds of this process, and of all that it has started and seen end.
inline double processor_seconds() {
  double sum = 0;
  for (const int whose : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    getrusage(whose, &used);
    for (const timeval& time : {used.ru_utime, used.ru_stime}) {
      sum += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    }
  }
  return sum;
}

}  // namespace pipesim::bench
