// A job in execution, apart from SimGrid. Flat arrays hold, for each task, the number of tasks that
// it still waits for and the tasks that wait for it. A heap holds the tasks that begin next.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/simgrid_module.h"

namespace pipesim {

using JobTask = std::uint32_t;

inline double job_seconds(const Job& job, std::uint64_t run, JobTask task) {
  return job.seconds.empty() ? job.classes[job.class_of[task]].seconds
                             : job.seconds[run * job.class_of.size() + task];
}

// All that is looked up when a task becomes ready and when it ends, kept together. Large graphs do
// not fit in caches, and tasks run in another order than they are stored in.
struct JobTaskState {
  std::uint32_t missing = 0;  // what the task still waits for
  std::uint32_t task_class = 0;
  std::uint32_t first_successor = 0;
  std::uint32_t successors = 0;
};

// The edges turned round, by counting.
struct JobDataflow {
  explicit JobDataflow(const Job& job)
      : states(job.class_of.size()), successors(job.waits_for.size()) {
    for (const JobTask waited : job.waits_for) ++states[waited].successors;
    std::uint32_t next = 0;
    for (JobTask task = 0; task < states.size(); ++task) {
      JobTaskState& state = states[task];
      state.missing = job.row[task + 1] - job.row[task];
      state.task_class = job.class_of[task];
      state.first_successor = next;
      next += state.successors;
      state.successors = 0;
    }
    for (JobTask task = 0; task < states.size(); ++task) {
      for (std::uint32_t e = job.row[task]; e < job.row[task + 1]; ++e) {
        JobTaskState& waited = states[job.waits_for[e]];
        successors[waited.first_successor + waited.successors++] = task;
      }
    }
  }

  std::vector<JobTaskState> states;  // before the first task
  std::vector<JobTask> successors;
};

// The makespan of the longest run if nothing were shared.
inline double job_longest_path(const Job& job) {
  double longest = 0;
  std::vector<double> end(job.class_of.size());
  for (std::uint64_t run = 0; run < job.runs.size(); ++run) {
    for (JobTask task = 0; task < end.size(); ++task) {
      double ready = 0;
      for (std::uint32_t e = job.row[task]; e < job.row[task + 1]; ++e) {
        ready = std::max(ready, end[job.waits_for[e]]);
      }
      end[task] = ready + job_seconds(job, run, task);
      longest = std::max(longest, end[task]);
    }
    if (job.seconds.empty()) break;
  }
  return longest;
}

// The most bytes that a message of any run carries.
inline double job_largest_message(const Job& job) {
  double largest = 0;
  for (std::uint64_t run = 0; run < job.runs.size(); ++run) {
    for (JobTask task = 0; task < job.class_of.size(); ++task) {
      const JobClass& of = job.classes[job.class_of[task]];
      if (of.kind != JobKind::kTransfer) continue;
      const double bandwidth = job.routes[of.route].bandwidth;
      largest = std::max(largest, (job_seconds(job, run, task) - of.latency) * bandwidth);
    }
    if (job.seconds.empty()) break;
  }
  return largest;
}

// A binary heap of the tasks that begin next, by time and then by task.
class JobAgenda {
 public:
  struct Entry {
    double time;
    JobTask task;
  };

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] const Entry& next() const { return entries_.front(); }
  void add(double time, JobTask task) {
    entries_.push_back({time, task});
    std::push_heap(entries_.begin(), entries_.end(), later);
  }
  Entry take() {
    std::pop_heap(entries_.begin(), entries_.end(), later);
    const Entry taken = entries_.back();
    entries_.pop_back();
    return taken;
  }

 private:
  static bool later(const Entry& a, const Entry& b) {
    return a.time != b.time ? a.time > b.time : a.task > b.task;
  }
  std::vector<Entry> entries_;
};

}  // namespace pipesim
