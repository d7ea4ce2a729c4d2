// One line on a terminal that says how far a command is.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace pipesim {

// A line rewritten on standard error and cleared at the end; nothing where that is no terminal that
// can (is_terminal). For one thread.
class ProgressLine {
 public:
  ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { clear(); }

  // A step that takes its time begins.
  void show(const std::string& text);
  // One of many steps: at most ten lines a second are made and shown.
  void tick(const std::function<std::string()>& text);
  void clear();
  [[nodiscard]] double elapsed() const;  // seconds

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_;
  bool shown_ = false;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point next_ = begin_;
};

}  // namespace pipesim
