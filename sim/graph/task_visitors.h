// Visitors of walks that append the tasks of one pipeline and iteration to a graph: the inside of
// build_task_graph.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sim/core/error.h"
#include "sim/execution/comm_batches.h"
#include "sim/graph/class_table.h"
#include "sim/graph/task_graph.h"

namespace pipesim {

// `Rows` takes the tasks that the visitors append. It has
//   kKeepsClasses: true if a task's class is looked at after the task;
//   Task: a handle by which later tasks wait for it; kNothing and kNotYet are none (is_task);
//   void reserve(size_t tasks, size_t edges): at most so many come;
//   void wait_for(Task), wait_for_all(span<const Task>), wait_once_for(Task): of the next task, the
//     last of them unless it does so already;
//   Task close(task_class, number), Task close_message(task_class, number): the task itself.

// Writes a graph.
class GraphRows {
 public:
  using Task = TaskId;
  static constexpr bool kKeepsClasses = true;
  static constexpr Task kNotYet = std::numeric_limits<TaskId>::max();
  static constexpr Task kNothing = kNotYet - 1;
  static bool is_task(Task task) { return task < kNothing; }

  explicit GraphRows(TaskGraph::Parts& parts) : parts_(parts) { parts_.row.push_back(0); }

  // Exact sizes: the arrays of a large graph must not be copied while they grow.
  void reserve(size_t tasks, size_t edges) {
    if (edges >= kNothing) {
      throw InfeasibleError("more than 2^32 dependencies: too large to simulate");
    }
    parts_.class_of.reserve(tasks);
    parts_.number.reserve(tasks);
    parts_.row.reserve(tasks + 1);
    parts_.waits_for.reserve(edges);
  }
  void wait_for(Task task) { parts_.waits_for.push_back(task); }
  void wait_for_all(std::span<const Task> tasks) {
    parts_.waits_for.insert(parts_.waits_for.end(), tasks.begin(), tasks.end());
  }
  void wait_once_for(Task task) {
    const auto begin = parts_.waits_for.begin() + parts_.row.back();
    if (std::find(begin, parts_.waits_for.end(), task) == parts_.waits_for.end()) wait_for(task);
  }
  Task close(std::uint32_t task_class, std::uint32_t number) {
    parts_.class_of.push_back(task_class);
    parts_.number.push_back(number);
    parts_.row.push_back(static_cast<std::uint32_t>(parts_.waits_for.size()));
    return static_cast<Task>(parts_.class_of.size() - 1);
  }
  Task close_message(std::uint32_t task_class, std::uint32_t number) {
    return close(task_class, number);
  }

 private:
  TaskGraph::Parts& parts_;
};

// The latest copy out, and back, of those that go one after the other: over a host link, or of a
// device.
template <class Rows>
using LinkTasks = std::array<typename Rows::Task, 2>;

// Appends the tasks of one pipeline and iteration, in the order of the walk.
template <class Rows>
class TaskVisitor {
 public:
  using Value = typename Rows::Task;
  static constexpr Value kNotYet = Rows::kNotYet;
  static constexpr Value kNothing = Rows::kNothing;

  TaskVisitor(Rows& rows, ClassTable& classes, std::span<Value> last_of_device,
              std::span<LinkTasks<Rows>> last_of_link, const Program& program, int iteration,
              bool copies_contend = false)
      : rows_(rows),
        classes_(classes),
        last_(last_of_device),
        last_of_link_(last_of_link),
        copies_(program.copies()),
        copies_contend_(copies_contend),
        place_(program.placement()),
        first_unit_(static_cast<std::uint32_t>(iteration * program.shape().units())),
        first_pair_(static_cast<std::uint32_t>(iteration) *
                    static_cast<std::uint32_t>(program.pairs().size())) {}

  Value run(int device, const Pass& pass, Value input, Value gradient) {
    return run(device, pass, input, gradient, number(pass));
  }
  // The same, as another unit (or pair) than the pass's own.
  Value run(int device, const Pass& pass, Value input, Value gradient, std::uint32_t number) {
    follow(device);
    rows_.wait_for_all(awaited_);
    awaited_.clear();
    if (Rows::is_task(input)) rows_.wait_for(input);
    if (Rows::is_task(gradient)) rows_.wait_for(gradient);
    return last_[device] = rows_.close(classes_.compute(device, pass), number);
  }
  // A pass that waits for `held` besides the one before it.
  void run(int device, const Pass& pass, std::span<const Value> held) {
    follow(device);
    rows_.wait_for_all(held);
    last_[device] = rows_.close(classes_.compute(device, pass), number(pass));
  }
  // Appends a device's own task after a pass.
  void step(int device, std::uint32_t task_class, std::uint32_t iteration) {
    follow(device);
    last_[device] = rows_.close(task_class, iteration);
  }

  Value deliver(Value result, PassKind kind, int from, int to, std::uint32_t unit) {
    // Within a device the program order is the dependency, and handing over is free.
    if (to < 0 || place_.device(from) == place_.device(to)) return kNothing;
    rows_.wait_for(result);
    return transfer(kind == PassKind::kF, from, to, unit);
  }

  Value join(Barrier barrier, std::uint32_t unit, std::span<const Value> results) {
    for (const Value result : results) {
      if (Rows::is_task(result)) rows_.wait_once_for(result);
    }
    return rows_.close(classes_.barrier(barrier, unit), first_unit_ + unit);
  }
  [[nodiscard]] Value last(int device) const { return last_[device]; }
  void hold(int device, Value until) { last_[device] = until; }

  void await(int /*device*/, Value task) { awaited_.push_back(task); }
  Value copy(const Copy& copy, bool out, Value a, Value b) {
    const size_t link = copies_contend_ ? copy.device : copies_->link_of(copy.device);
    Value& last = last_of_link_[link][out ? 0 : 1];
    if (last != kNothing) rows_.wait_for(last);
    rows_.wait_for(a);
    if (b != a) rows_.wait_for(b);
    return last = rows_.close(classes_.copy(copy, out), first_unit_ + copy.unit);
  }

  // A message that waits for the edges that have been appended.
  Value transfer(bool forward, int from, int to, std::uint32_t unit) {
    return rows_.close_message(classes_.transfer(forward, from, to, unit), first_unit_ + unit);
  }

 private:
  void follow(int device) {
    const Value last = last_[device];
    if (last != kNothing) rows_.wait_for(last);
  }
  [[nodiscard]] std::uint32_t number(const Pass& pass) const {
    return (pass.kind == PassKind::kFB ? first_pair_ : first_unit_) + pass.microbatch;
  }

  Rows& rows_;
  ClassTable& classes_;
  std::span<Value> last_;
  std::span<LinkTasks<Rows>> last_of_link_;
  const CopyPlan* copies_;
  bool copies_contend_;
  std::vector<Value> awaited_;  // by the next pass
  const Placement& place_;
  std::uint32_t first_unit_;
  std::uint32_t first_pair_;
};

// A TaskVisitor for devices that step while later microbatches are in flight. Tasks of a device
// from the first F of an iteration on count to it; its units are numbered within it.
template <class Rows>
class StreamVisitor {
 public:
  using Value = typename Rows::Task;
  static constexpr Value kNotYet = Rows::kNotYet;
  static constexpr Value kNothing = Rows::kNothing;

  // `steps`: by device, the classes of its own tasks in turn. The program has one chunk for each
  // device.
  StreamVisitor(TaskVisitor<Rows>& tasks, const Stream& stream,
                std::vector<std::vector<std::uint32_t>> steps)
      : tasks_(tasks), stream_(stream), steps_(std::move(steps)), devices_(steps_.size()) {}

  Value run(int device, const Pass& pass, Value input, Value gradient) {
    State& state = devices_[device];
    if (pass.kind == PassKind::kF) ++state.forwards;
    const std::uint32_t iteration = (state.forwards - 1) / stream_.units;
    const std::uint32_t unit = pass.microbatch % stream_.units;
    const Value end = tasks_.run(device, pass, input, gradient, iteration * stream_.units + unit);
    const bool ends = pass.kind == PassKind::kBW || pass.kind == PassKind::kW;
    if (ends && ++state.ended % stream_.units_per_step == 0) {
      for (const std::uint32_t step : steps_[device]) tasks_.step(device, step, iteration);
    }
    return end;
  }
  Value deliver(Value result, PassKind kind, int from, int to, std::uint32_t unit) {
    return tasks_.deliver(result, kind, from, to, unit);
  }

 private:
  struct State {
    std::uint32_t forwards = 0;
    std::uint32_t ended = 0;
  };

  TaskVisitor<Rows>& tasks_;
  Stream stream_;
  std::vector<std::vector<std::uint32_t>> steps_;
  std::vector<State> devices_;
};

// A TaskVisitor for devices that go on only when all messages of their batch have arrived. The
// messages wait for the last task of both devices, and each device's next task waits for them.
template <class Rows>
class BatchVisitor {
 public:
  using Task = typename Rows::Task;

  BatchVisitor(Rows& rows, ClassTable& classes, std::span<Task> last_of_device,
               std::span<std::vector<Task>> held, const Program& program, int iteration)
      : rows_(rows),
        last_(last_of_device),
        held_(held),
        open_(held.size()),
        place_(program.placement()),
        tasks_(rows, classes, last_of_device, {}, program, iteration) {}

  void run(int device, const Pass& pass) {
    std::vector<Task>& held = held_[device];
    tasks_.run(device, pass, held);
    held.clear();
  }

  void send(const Message& message) {
    const int sender = place_.device(message.from);
    const int receiver = place_.device(message.to);
    wait_for_device(sender);
    wait_for_device(receiver);
    const Task sent = tasks_.transfer(message.forward, message.from, message.to, message.unit);
    open_[sender].push_back(sent);
    open_[receiver].push_back(sent);
  }

  void release(int device) {
    held_[device].clear();
    std::swap(held_[device], open_[device]);
  }

 private:
  // Waits for the device's last task: the messages of its last batch, one of which may be the other
  // device's too, or else a pass.
  void wait_for_device(int device) {
    for (const Task task : held_[device]) rows_.wait_once_for(task);
    if (held_[device].empty() && last_[device] != Rows::kNothing)
      rows_.wait_once_for(last_[device]);
  }

  Rows& rows_;
  std::span<Task> last_;
  std::span<std::vector<Task>> held_;    // by device: the messages of its last batch
  std::vector<std::vector<Task>> open_;  // and of the one that it waits for
  const Placement& place_;
  TaskVisitor<Rows> tasks_;
};

}  // namespace pipesim
