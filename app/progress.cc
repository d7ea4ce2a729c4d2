#include "app/progress.h"

#include <iostream>

#include "app/command_line.h"

namespace pipesim {

ProgressLine::ProgressLine() : terminal_(is_terminal(2)) {}

void ProgressLine::show(const std::string& text) {
  if (!terminal_) return;
  std::cerr << "\r\033[K" << text << std::flush;
  shown_ = true;
  next_ = Clock::now() + std::chrono::milliseconds(100);
}

void ProgressLine::tick(const std::function<std::string()>& text) {
  if (terminal_ && Clock::now() >= next_) show(text());
}

void ProgressLine::clear() {
  if (shown_) std::cerr << "\r\033[K" << std::flush;
  shown_ = false;
}

double ProgressLine::elapsed() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

}  // namespace pipesim
