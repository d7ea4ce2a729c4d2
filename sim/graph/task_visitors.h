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

#include "sim/execution/comm_batches.h"
#include "sim/graph/class_table.h"
#include "sim/graph/task_graph.h"

namespace pipesim {

constexpr TaskId kNoTask = std::numeric_limits<TaskId>::max();

// Writes a graph task after task: what the next one waits for, then the task itself.
class GraphRows {
 public:
  explicit GraphRows(TaskGraph::Parts& parts) : parts_(parts) { parts_.row.push_back(0); }

  void wait_for(TaskId task) { parts_.waits_for.push_back(task); }
  void wait_for_all(std::span<const TaskId> tasks) {
    parts_.waits_for.insert(parts_.waits_for.end(), tasks.begin(), tasks.end());
  }
  void wait_once_for(TaskId task) {
    const auto begin = parts_.waits_for.begin() + parts_.row.back();
    if (std::find(begin, parts_.waits_for.end(), task) == parts_.waits_for.end()) wait_for(task);
  }
  TaskId close(std::uint32_t task_class, std::uint32_t number) {
    parts_.class_of.push_back(task_class);
    parts_.number.push_back(number);
    parts_.row.push_back(static_cast<std::uint32_t>(parts_.waits_for.size()));
    return static_cast<TaskId>(parts_.class_of.size() - 1);
  }

 private:
  TaskGraph::Parts& parts_;
};

// The latest copy out, and back, of those that go one after the other: over a host link, or of a
// device.
using LinkTasks = std::array<TaskId, 2>;

// Appends the tasks of one pipeline and iteration, in the order of the walk.
class TaskVisitor {
 public:
  using Value = TaskId;
  static constexpr Value kNotYet = kNoTask;
  static constexpr Value kNothing = kNoTask - 1;

  TaskVisitor(GraphRows& rows, ClassTable& classes, std::span<TaskId> last_of_device,
              std::span<LinkTasks> last_of_link, const Program& program, int iteration,
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
    follow(device);
    rows_.wait_for_all(awaited_);
    awaited_.clear();
    if (input < kNothing) rows_.wait_for(input);
    if (gradient < kNothing) rows_.wait_for(gradient);
    return add(device, pass);
  }
  // A pass that waits for `held` besides the one before it.
  void run(int device, const Pass& pass, std::span<const TaskId> held) {
    follow(device);
    rows_.wait_for_all(held);
    add(device, pass);
  }

  Value deliver(Value result, PassKind kind, int from, int to, std::uint32_t unit) {
    // Within a device the program order is the dependency, and handing over is free.
    if (to < 0 || place_.device(from) == place_.device(to)) return kNothing;
    rows_.wait_for(result);
    return transfer(kind == PassKind::kF, from, to, unit);
  }

  Value join(Barrier barrier, std::uint32_t unit, std::span<const Value> results) {
    for (const Value result : results) {
      if (result < kNothing) rows_.wait_once_for(result);
    }
    return rows_.close(classes_.barrier(barrier, unit), first_unit_ + unit);
  }
  [[nodiscard]] Value last(int device) const {
    const TaskId last = last_[device];
    return last == kNoTask ? kNothing : last;
  }
  void hold(int device, Value until) { last_[device] = until; }

  void await(int /*device*/, Value task) { awaited_.push_back(task); }
  Value copy(const Copy& copy, bool out, Value a, Value b) {
    const size_t link = copies_contend_ ? copy.device : copies_->link_of(copy.device);
    TaskId& last = last_of_link_[link][out ? 0 : 1];
    if (last != kNoTask) rows_.wait_for(last);
    rows_.wait_for(a);
    if (b != a) rows_.wait_for(b);
    return last = rows_.close(classes_.copy(copy, out), first_unit_ + copy.unit);
  }

  // A message that waits for the edges that have been appended.
  TaskId transfer(bool forward, int from, int to, std::uint32_t unit) {
    return rows_.close(classes_.transfer(forward, from, to, unit), first_unit_ + unit);
  }

 private:
  void follow(int device) {
    const TaskId last = last_[device];
    if (last != kNoTask) rows_.wait_for(last);
  }
  TaskId add(int device, const Pass& pass) {
    const std::uint32_t first = pass.kind == PassKind::kFB ? first_pair_ : first_unit_;
    return last_[device] = rows_.close(classes_.compute(device, pass), first + pass.microbatch);
  }

  GraphRows& rows_;
  ClassTable& classes_;
  std::span<TaskId> last_;
  std::span<LinkTasks> last_of_link_;
  const CopyPlan* copies_;
  bool copies_contend_;
  std::vector<TaskId> awaited_;  // by the next pass
  const Placement& place_;
  std::uint32_t first_unit_;
  std::uint32_t first_pair_;
};

// As TaskVisitor, where a device goes on only when all messages of its batch have arrived: they
// wait for what both their devices did last, and what the device does next waits for them.
class BatchVisitor {
 public:
  BatchVisitor(GraphRows& rows, ClassTable& classes, std::span<TaskId> last_of_device,
               std::span<std::vector<TaskId>> held, const Program& program, int iteration)
      : rows_(rows),
        last_(last_of_device),
        held_(held),
        open_(held.size()),
        place_(program.placement()),
        tasks_(rows, classes, last_of_device, {}, program, iteration) {}

  void run(int device, const Pass& pass) {
    std::vector<TaskId>& held = held_[device];
    tasks_.run(device, pass, held);
    held.clear();
  }

  void send(const Message& message) {
    const int sender = place_.device(message.from);
    const int receiver = place_.device(message.to);
    wait_for_device(sender);
    wait_for_device(receiver);
    const TaskId sent = tasks_.transfer(message.forward, message.from, message.to, message.unit);
    open_[sender].push_back(sent);
    open_[receiver].push_back(sent);
  }

  void release(int device) {
    held_[device].clear();
    std::swap(held_[device], open_[device]);
  }

 private:
  // What the device did last: the messages of its last batch, one of which may be the other
  // device's too, or else a pass.
  void wait_for_device(int device) {
    for (const TaskId task : held_[device]) rows_.wait_once_for(task);
    if (held_[device].empty() && last_[device] != kNoTask) rows_.wait_once_for(last_[device]);
  }

  GraphRows& rows_;
  std::span<TaskId> last_;
  std::span<std::vector<TaskId>> held_;    // by device: the messages of its last batch
  std::vector<std::vector<TaskId>> open_;  // and of the one that it waits for
  const Placement& place_;
  TaskVisitor tasks_;
};

}  // namespace pipesim
