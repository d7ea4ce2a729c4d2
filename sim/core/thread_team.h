// Threads that stay from one loop to the next. Loops of a millisecond are too short to start a
// thread for each: the kernel often leaves a new thread beside the one that started it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace pipesim {

class ThreadTeam {
 public:
  // Of so many threads, the caller's included; 0: of as many as the machine has cores.
  explicit ThreadTeam(int threads = 0);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // Runs `work(i)` for every i in [0, count), begun in that order, and returns when all have ended.
  // The first exception stops what has not begun, and is thrown.
  void run(std::size_t count, const std::function<void(std::size_t)>& work);

 private:
  void help();
  void take_turns();

  std::mutex mutex_;
  std::condition_variable begun_, ended_;
  std::uint64_t loops_ = 0;  // begun
  std::size_t helping_ = 0;  // threads that have not ended their part
  bool closing_ = false;
  std::exception_ptr failure_;

  // Of the loop at hand.
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_ = 0;

  std::vector<std::thread> threads_;
};

}  // namespace pipesim
