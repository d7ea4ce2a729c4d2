// Threads that stay from one loop to the next. Loops of a millisecond are too short to start a
// thread for each. The kernel often leaves a new thread beside the one that started it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace boost::asio {
class thread_pool;
}

namespace pipesim {

// Threads that may work at once: as many as the machine has cores, unless limited.
int available_threads();
// The process uses no more than `most` from here on; at least 1. Results do not depend on it.
void limit_threads(int most);

class ThreadTeam {
 public:
  // A team of `threads`, the caller included; of available_threads() for 0.
  // InfeasibleError where the system starts none.
  explicit ThreadTeam(int threads = 0);
  ~ThreadTeam();

  // Runs `work(i)` for every i in [0, count), begun in that order, and returns when all have ended.
  // The first exception stops what has not begun, and is thrown.
  void run(std::size_t count, const std::function<void(std::size_t)>& work);

 private:
  std::size_t helpers_;
  std::unique_ptr<boost::asio::thread_pool> pool_;
};

}  // namespace pipesim
