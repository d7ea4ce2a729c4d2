#include "sim/search/in_parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace pipesim {

void in_parallel(int count, const std::function<void(int)>& work) {
  std::atomic<int> next = 0;
  std::exception_ptr failure;
  std::atomic<bool> failed = false;
  const auto run = [&] {
    for (int i = next++; i < count && !failed; i = next++) {
      try {
        work(i);
      } catch (...) {
        if (!failed.exchange(true)) failure = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> pool;
    for (unsigned i = 1; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
      pool.emplace_back(run);
    }
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace pipesim
