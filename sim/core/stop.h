// Cancels long work. Loops that take seconds call check_stop(), which throws Stopped once the
// thread's StopOn is set.
#pragma once

#include <atomic>
#include <exception>

namespace pipesim {

class Stopped : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "stopped"; }
};

// While one lives, its thread stops once `asked` is true; the last one made counts.
class StopOn {
 public:
  explicit StopOn(const std::atomic<bool>& asked) : before_(current) { current = &asked; }
  StopOn(const StopOn&) = delete;
  StopOn& operator=(const StopOn&) = delete;
  ~StopOn() { current = before_; }

  static bool is_asked() { return current != nullptr && current->load(std::memory_order_relaxed); }

 private:
  static inline thread_local const std::atomic<bool>* current = nullptr;
  const std::atomic<bool>* before_;
};

// For work that nobody can end.
inline const std::atomic<bool> kNeverStopped = false;

// Costs a nanosecond or two.
inline void check_stop() {
  if (StopOn::is_asked()) throw Stopped();
}

}  // namespace pipesim
