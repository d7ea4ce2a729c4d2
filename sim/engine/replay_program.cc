#include "sim/engine/replay_program.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "sim/core/error.h"
#include "sim/graph/task_stream.h"

namespace pipesim {
namespace {

// Takes tasks as they come (task_visitors.h): a task is waited for by its end.
class RunRows {
 public:
  using Task = double;
  static constexpr bool kKeepsClasses = false;
  static constexpr Task kNotYet = -1;
  static constexpr Task kNothing = -2;
  static bool is_task(Task task) { return task >= 0; }

  RunRows(const std::vector<TaskClass>& classes, size_t devices)
      : classes_(classes), sums_(devices), levels_(devices) {}

  void reserve(size_t /*tasks*/, size_t /*edges*/) {}
  void wait_for(Task end) { ready_ = std::max(ready_, end); }
  void wait_for_all(std::span<const Task> ends) {
    for (const Task end : ends) wait_for(end);
  }
  void wait_once_for(Task end) { wait_for(end); }

  Task close(std::uint32_t task_class, std::uint32_t /*number*/) {
    const TaskClass& of = classes_[task_class];
    const Task end = ready_ + of.seconds.value();
    sums_.count(role_of(of, static_cast<std::uint32_t>(levels_.size())), OneLane(ready_),
                OneLane(end));
    Level& level = levels_[of.device];
    level.now += of.acquired.value();
    level.most = std::max(level.most, level.now);
    level.now -= of.released.value();
    ready_ = 0;
    ++tasks_;
    return end;
  }

  // It takes nothing of its devices.
  Task close_message(std::uint32_t task_class, std::uint32_t /*number*/) {
    const Task end = ready_ + classes_[task_class].seconds.value();
    ready_ = 0;
    ++tasks_;
    return end;
  }

  [[nodiscard]] ProgramRun finish() const {
    ProgramRun run{sums_.times(0), {}, tasks_};
    run.peaks.reserve(levels_.size());
    for (const Level& level : levels_) run.peaks.emplace_back(level.most);
    return run;
  }

 private:
  struct Level {
    double now = 0;
    double most = 0;
  };

  const std::vector<TaskClass>& classes_;
  Sums<OneLane> sums_;
  std::vector<Level> levels_;  // of activations, by device
  double ready_ = 0;           // of the next task
  size_t tasks_ = 0;
};

}  // namespace

ProgramRun replay_program(const std::shared_ptr<const Program>& program, const Problem& problem,
                          const std::vector<std::vector<int>>& ranks, const BuildOptions& options) {
  if (options.iterations != 1) throw LogicError("replay_program: several iterations");
  if (!program->memory_follows_order()) throw LogicError("replay_program: copies to the host");
  TaskGraph::Parts parts;
  RunRows rows(parts.classes, program->shape().devices * ranks.size());
  TaskStream(parts, rows, program, problem, ranks, options).run();
  return rows.finish();
}

}  // namespace pipesim
