#include "sim/core/thread_team.h"

#include <algorithm>
#include <utility>

namespace pipesim {

ThreadTeam::ThreadTeam(int threads) {
  const unsigned all =
      threads > 0 ? static_cast<unsigned>(threads) : std::thread::hardware_concurrency();
  for (unsigned i = 1; i < all; ++i) threads_.emplace_back([this] { help(); });
}

ThreadTeam::~ThreadTeam() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  begun_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::run(std::size_t count, const std::function<void(std::size_t)>& work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    count_ = count;
    next_ = 0;
    helping_ = count > 1 ? threads_.size() : 0;
    if (helping_ > 0) ++loops_;
  }
  if (count > 1) begun_.notify_all();
  take_turns();
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return helping_ == 0; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadTeam::help() {
  for (std::uint64_t seen = 0;; ++seen) {
    {
      std::unique_lock lock(mutex_);
      begun_.wait(lock, [&] { return closing_ || loops_ != seen; });
      if (closing_) return;
    }
    take_turns();
    const std::lock_guard lock(mutex_);
    if (--helping_ == 0) ended_.notify_one();
  }
}

void ThreadTeam::take_turns() {
  for (std::size_t i = next_++; i < count_; i = next_++) {
    try {
      (*work_)(i);
    } catch (...) {
      next_ = count_;
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }
}

}  // namespace pipesim
