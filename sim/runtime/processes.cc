#include "sim/runtime/processes.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/core/child_process.h"
#include "sim/core/error.h"

namespace pipesim::runtime {
namespace {

// While it lives, ends of children and requests to stop wait to be asked for.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&held_);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM}) sigaddset(&held_, signal);
    // An ignored SIGCHLD would reap children unseen.
    before_child_ = std::signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &held_, &before_);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() {
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    std::signal(SIGCHLD, before_child_);
  }

  // The next signal, or 0 after so many seconds.
  int next(double seconds) const {
    timespec limit{};
    limit.tv_sec = static_cast<time_t>(std::max(0.0, seconds));
    limit.tv_nsec =
        static_cast<long>(1e9 * (std::max(0.0, seconds) - static_cast<double>(limit.tv_sec)));
    return std::max(0, sigtimedwait(&held_, nullptr, &limit));
  }
  void release() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t held_{};
  sigset_t before_{};
  void (*before_child_)(int) = SIG_DFL;
};

class Children {
 public:
  Children() = default;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() {
    for (const pid_t child : pids_) {
      if (child > 0) ::kill(child, SIGKILL);
    }
    for (const pid_t child : pids_) {
      if (child > 0) ::waitpid(child, nullptr, 0);
    }
  }

  void add(pid_t child) { pids_.push_back(child); }
  [[nodiscard]] bool runs(std::size_t device) const { return pids_[device] > 0; }
  [[nodiscard]] bool any() const {
    return std::ranges::any_of(pids_, [](pid_t child) { return child > 0; });
  }
  // Takes leave of those that have ended; calls `ended` with each, and how.
  template <class Ended>
  void reap(Ended ended) {
    for (std::size_t device = 0; device < pids_.size(); ++device) {
      int status = 0;
      if (pids_[device] <= 0 || ::waitpid(pids_[device], &status, WNOHANG) <= 0) continue;
      pids_[device] = 0;
      ended(static_cast<int>(device), status);
    }
  }

 private:
  std::vector<pid_t> pids_;  // by device; 0: has ended
};

// Ends without writing what the parent had not written yet.
[[noreturn]] void be_device(int device, SharedBoards& boards,
                            const std::function<DeviceRecord(int, Board&)>& run) {
  prctl(PR_SET_TIMERSLACK, 1UL);
  try {
    const auto board = boards.board(device);
    boards.leave(device, to_bytes(run(device, *board)), false);
    _exit(0);
  } catch (const std::exception& error) {
    boards.leave(device, error.what(), true);
  }
  _exit(1);
}

void refuse_end(int device, int status, const SharedBoards& boards) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  if (boards.failed(device)) {
    const auto reason = boards.left(device);
    throw InfeasibleError(
        fmt::format("device {} failed: {}", device, std::string(reason.begin(), reason.end())));
  }
  throw InfeasibleError(fmt::format("device {} {}", device, how_it_ended(status)));
}

}  // namespace

std::vector<DeviceRecord> run_processes(
    int devices, SharedBoards& boards, double deadline,
    const std::function<DeviceRecord(int device, Board& board)>& run,
    const std::function<std::string(int device, std::uint32_t item)>& place) {
  const HeldSignals signals;
  Children children;
  const double until = monotonic_seconds() + deadline;
  for (int device = 0; device < devices; ++device) {
    const pid_t child = fork_child();
    if (child < 0) refuse_by_system(fmt::format("no process for device {}", device), errno);
    if (child == 0) {
      signals.release();
      be_device(device, boards, run);
    }
    children.add(child);
  }
  while (children.any()) {
    const int signal = signals.next(until - monotonic_seconds());
    if (signal == SIGINT || signal == SIGTERM) throw Interrupted();
    children.reap([&](int device, int status) { refuse_end(device, status, boards); });
    if (!children.any() || monotonic_seconds() < until) continue;
    std::string text = fmt::format("not done after {:.1f} s:", deadline);
    for (int device = 0; device < devices; ++device) {
      if (!children.runs(static_cast<std::size_t>(device))) continue;
      text +=
          fmt::format("\n  device {} stands {}", device, place(device, boards.stands_at(device)));
    }
    throw InfeasibleError(text);
  }
  std::vector<DeviceRecord> records;
  for (int device = 0; device < devices; ++device) {
    records.push_back(record_from(boards.left(device)));
  }
  return records;
}

}  // namespace pipesim::runtime
