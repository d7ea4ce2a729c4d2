// One execution of a graph in SimGrid.
//
// SimGrid keeps shared resources: links, and GPUs that are hosts. Dependencies are kept here in
// flat arrays. A task that nothing can disturb never meets SimGrid. Its end is known as soon as its
// start is, even ahead of the clock, because readiness is a maximum in any order. So the clock
// stops only where an activity begins or completes. Later beginnings wait in a heap of our own,
// with ties in order of task, and only the next kernel timer is ever set.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <simgrid/s4u.hpp>
#include <span>
#include <vector>

#include "sim/engine/simgrid/platform.h"

namespace pipesim::simgrid_module {

using TaskId = JobTask;
using SlotId = std::uint32_t;

// One run of the graph. SimGrid calls back: when the next timer is due, and when an activity
// completed.
class Execution {
 public:
  Execution(Platform& platform, std::uint64_t run);
  void operator()();

 private:
  // Messages out and in, copies out and in: what a GPU's compute may lose a share to.
  static constexpr size_t kFlows = 4;
  static size_t outward(const JobRoute& way) { return way.copies ? 2 : 0; }

  // A flow or a compute execution that SimGrid works on.
  struct Activity {
    SlotId slot = 0;  // its place in activities_
    s4u::ActivityPtr handle;
    TaskId task = 0;
    double began = 0;     // by SimGrid's clock
    double lasts = 0;     // alone
    double expected = 0;  // end of the task, unless disturbed
    bool disturbed = false;
    double flops = 0;  // of an execution: the amount when it was last started or interrupted
  };
  struct Gpu {
    std::vector<SlotId> computing;
    std::array<std::uint32_t, kFlows> flows{};
    std::array<s4u::ExecPtr, kFlows> load;  // what they take from compute
    bool stopped = false;
  };

  [[nodiscard]] const JobClass& class_of(TaskId task) const {
    return job_.classes[states_[task].task_class];
  }
  [[nodiscard]] double seconds(TaskId task) const {
    return job_.seconds.empty() ? class_of(task).seconds : seconds_[task];
  }
  // A transfer's payload, in the unit of Platform::rate.
  [[nodiscard]] double payload(TaskId task) const {
    const std::uint32_t of = states_[task].task_class;
    return std::round((seconds(task) - job_.classes[of].latency) * platform_.rate[of]);
  }
  [[nodiscard]] const JobRoute& route(TaskId task) const {
    return job_.routes[class_of(task).route];
  }
  void ready(TaskId task);
  void finish(TaskId task, double at);
  void begin(TaskId task);
  void advance();
  void set_timer();
  SlotId open(TaskId task, double lasts);
  void start_flow(TaskId task);
  void start_compute(TaskId task);
  void completed(SlotId slot);
  void leave_links(SlotId slot);
  double settle(const Activity& activity) const;
  void disturb(SlotId a, SlotId b);
  [[nodiscard]] bool ends_now(const Activity& activity) const;
  void flow_starts(size_t host, size_t flow);
  void flow_ends(size_t host, size_t flow);
  void load(size_t host, size_t flow);
  void cancel(s4u::ExecPtr exec);
  void change_speed(size_t host, bool stops);
  void interrupt(SlotId slot);
  void execute(SlotId slot, size_t host);

  Platform& platform_;
  const Job& job_;
  JobRun& result_;
  std::span<const double> seconds_;
  std::span<JobTimes> times_;
  std::span<double> energy_;
  std::array<double, kFlows> share_;  // of a GPU
  std::vector<JobTaskState> states_;
  std::vector<TaskId> ready_;        // tasks that wait for nothing more
  JobAgenda agenda_;                 // activities to begin
  std::vector<double> timers_;       // dates of SimGrid timers that are set; the last is due first
  std::deque<Activity> activities_;  // which SimGrid's point to: they stay where they are
  std::vector<SlotId> free_;
  // Activities that SimGrid still uses: one while it reports its completion, and a cancelled one
  // until it has reported that a second time.
  s4u::ActivityPtr last_completed_;
  std::vector<s4u::ExecPtr> cancelled_;
  std::vector<std::vector<SlotId>> flows_on_link_;
  std::vector<Gpu> gpus_;
};

}  // namespace pipesim::simgrid_module
