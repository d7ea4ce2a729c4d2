#include "sim/search/ordering.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "sim/planning/one_machine.h"

namespace pipesim {
namespace {

constexpr std::array kKinds{PassKind::kF, PassKind::kB, PassKind::kW};
constexpr double kTolerance = 1e-6;

}  // namespace

Ordering::Ordering(const Problem& problem, double bound) : problem_(problem), bound_(bound) {
  add_tasks();
  before_.assign(tasks_.size() * tasks_.size(), 0);
  add_arcs();
  close();
  bool changed = true;
  while (changed && !impossible_) {
    if (!tighten_windows()) {
      impossible_ = true;
      return;
    }
    changed = decide_by_windows();
    changed = decide_by_memory() || changed;
    close();
  }
}

// One machine with heads and tails whose jobs may be interrupted.
bool Ordering::in_time(int device) const {
  std::vector<MachineJob> jobs;
  for (const int i : of_device(device)) {
    const Task& pass = task(i);
    jobs.push_back({pass.release, pass.seconds, origin(device) + bound_ - pass.deadline});
  }
  return one_machine_bound(std::move(jobs)).seconds <= origin(device) + bound_ + kTolerance;
}

void Ordering::add_tasks() {
  of_device_.resize(problem_.shape.devices);
  for (int stage = 0; stage < problem_.placement.virtual_stages(); ++stage) {
    for (const PassKind kind : kKinds) {
      for (int i = 0; i < problem_.shape.microbatches; ++i) {
        const StageCost& cost = problem_.stage(stage, static_cast<std::uint32_t>(i));
        Task task;
        task.device = problem_.placement.device(stage);
        task.stage = stage;
        task.pass = make_pass(kind, i, problem_.placement.chunk(stage));
        if (kind == PassKind::kF) {
          task.seconds = cost.forward.value();
          task.acquired = cost.activation.value();
        } else if (kind == PassKind::kB) {
          task.seconds = cost.backward_input.value();
          task.acquired = std::max(0.0, (cost.weight_stash - cost.activation).value());
          task.released = std::max(0.0, (cost.activation - cost.weight_stash).value());
        } else {
          task.seconds = cost.backward_weight.value();
          task.released = cost.weight_stash.value();
        }
        of_device_[task.device].push_back(count());
        tasks_.push_back(task);
      }
    }
  }
}

int Ordering::number_of(int stage, PassKind kind, int microbatch) const {
  const auto at = std::ranges::find(kKinds, kind) - kKinds.begin();
  return (stage * 3 + static_cast<int>(at)) * problem_.shape.microbatches + microbatch;
}

void Ordering::add_arcs() {
  const Placement& place = problem_.placement;
  const auto add = [this](int from, int to, Seconds latency) {
    arcs_.push_back({from, to, latency.value()});
    before_[slot(from, to)] = 1;
  };
  for (int stage = 0; stage < place.virtual_stages(); ++stage) {
    const int down = place.downstream(stage);
    for (int i = 0; i < problem_.shape.microbatches; ++i) {
      const int f = number_of(stage, PassKind::kF, i);
      const int b = number_of(stage, PassKind::kB, i);
      const int w = number_of(stage, PassKind::kW, i);
      add(f, b, Seconds(0));
      add(b, w, Seconds(0));
      if (down >= 0) {
        const Seconds latency = problem_.transfer(stage, down, static_cast<std::uint32_t>(i));
        add(f, number_of(down, PassKind::kF, i), latency);
        add(number_of(down, PassKind::kB, i), b, latency);
      }
      if (i + 1 < problem_.shape.microbatches) {
        for (const int task : {f, b, w}) add(task, task + 1, Seconds(0));
      }
    }
  }
}

void Ordering::close() {
  for (int k = 0; k < count(); ++k) {
    for (int i = 0; i < count(); ++i) {
      if (!precedes(i, k)) continue;
      const char* from = &before_[slot(k, 0)];
      char* to = &before_[slot(i, 0)];
      for (int j = 0; j < count(); ++j) to[j] = static_cast<char>(to[j] | from[j]);
    }
  }
  for (int i = 0; i < count(); ++i) {
    if (precedes(i, i)) impossible_ = true;
  }
}

// After the predecessors on its device, which run one at a time from the first release on.
bool Ordering::tighten_release(Task& task, int i) {
  double release = task.release;
  for (const Arc& arc : arcs_) {
    if (arc.to != i) continue;
    const Task& from = this->task(arc.from);
    release = std::max(release, from.release + from.seconds + arc.latency);
  }
  for (const int first : of_device(task.device)) {
    if (!precedes(first, i)) continue;
    double end = this->task(first).release;
    for (const int k : of_device(task.device)) {
      if (precedes(k, i) && this->task(k).release >= this->task(first).release) {
        end += this->task(k).seconds;
      }
    }
    release = std::max(release, end);
  }
  const bool tighter = release > task.release;
  task.release = release;
  return tighter;
}

bool Ordering::tighten_deadline(Task& task, int i) {
  double deadline = task.deadline;
  for (const Arc& arc : arcs_) {
    if (arc.from != i) continue;
    const Task& to = this->task(arc.to);
    deadline = std::min(deadline, to.deadline - to.seconds - arc.latency);
  }
  for (const int last : of_device(task.device)) {
    if (!precedes(i, last)) continue;
    double start = this->task(last).deadline;
    for (const int k : of_device(task.device)) {
      if (precedes(i, k) && this->task(k).deadline <= this->task(last).deadline) {
        start -= this->task(k).seconds;
      }
    }
    deadline = std::min(deadline, start);
  }
  const bool tighter = deadline < task.deadline;
  task.deadline = deadline;
  return tighter;
}

bool Ordering::tighten_windows() {
  const auto fits = [](const Task& task) {
    return task.release + task.seconds <= task.deadline + kTolerance;
  };
  const auto until_settled = [&](auto tighten) {
    bool changed = true;
    while (changed && std::ranges::all_of(tasks_, fits)) {
      changed = false;
      for (int i = 0; i < count(); ++i) {
        changed = tighten(tasks_[i], i) || changed;
      }
    }
  };
  until_settled([this](Task& task, int i) { return tighten_release(task, i); });
  for (Task& task : tasks_) {
    task.deadline = std::min(task.deadline, origin(task.device) + bound_);
  }
  until_settled([this](Task& task, int i) { return tighten_deadline(task, i); });
  if (!std::ranges::all_of(tasks_, fits)) return false;
  for (int device = 0; device < problem_.shape.devices; ++device) {
    if (!in_time(device)) return false;
  }
  return true;
}

bool Ordering::decide(int i, int j) {
  before_[slot(i, j)] = 1;
  return true;
}

bool Ordering::decide_by_windows() {
  bool decided = false;
  for (const auto& device : of_device_) {
    for (const int i : device) {
      for (const int j : device) {
        if (!is_open(i, j)) continue;
        const double end = task(i).release + task(i).seconds + task(j).seconds;
        if (end > task(j).deadline + kTolerance) decided = decide(j, i);
      }
    }
  }
  return decided;
}

bool Ordering::decide_by_memory() {
  bool decided = false;
  for (int j = 0; j < count(); ++j) {
    if (task(j).acquired > 0) decided = decide_by_memory_at(j) || decided;
  }
  return decided;
}

// The least that the device holds when it starts j: every pass that may release has run, and a pass
// that acquires has run only if it must.
bool Ordering::decide_by_memory_at(int j) {
  const auto& device = of_device(task(j).device);
  double least = task(j).acquired;
  for (const int k : device) {
    if (precedes(k, j)) least += task(k).kept();
    if (is_open(k, j)) least += std::min(0.0, task(k).kept());
  }
  bool decided = false;
  for (const int i : device) {
    if (!is_open(i, j)) continue;
    double without = least;  // if i, and so all that follows it, runs after j
    double with = least;     // if i, and so all that it follows, runs before j
    for (const int k : device) {
      if (!is_open(k, j)) continue;
      if (k == i || precedes(i, k)) without += std::max(0.0, -task(k).kept());
      if (k == i || precedes(k, i)) with += std::max(0.0, task(k).kept());
    }
    const double limit = problem_.activation_limit->value() + kTolerance;
    if (without > limit) decided = decide(i, j);
    if (with > limit) decided = decide(j, i);
  }
  return decided;
}

double Ordering::device_start(int device) const {
  const auto& tasks = of_device(device);
  const auto release = [this](int i) { return task(i).release; };
  return release(*std::ranges::min_element(tasks, std::less<>(), release));
}

double Ordering::device_work(int device) const {
  double work = 0;
  for (const int i : of_device(device)) work += task(i).seconds;
  return work;
}

double Ordering::least_cost() const {
  double least = 0;
  for (const Task& task : tasks_) {
    least = std::max(least, task.release + task.seconds + bound_ - task.deadline);
  }
  return least;
}

}  // namespace pipesim
