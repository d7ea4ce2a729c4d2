#include "sim/metrics/analyze.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "sim/core/error.h"
#include "sim/graph/stage_seconds.h"
#include "sim/metrics/memory_curve.h"
#include "sim/metrics/percentile.h"
#include "sim/metrics/steady_cycle.h"

namespace pipesim {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr TaskId kNoTask = std::numeric_limits<TaskId>::max();
// Times nearer than this, relative to them, are one: engines add the same seconds in another order.
constexpr double kInstant = 1e-12;
// To which a cycle of iterations that run into each other is one.
constexpr double kSameCycle = 1e-9;

struct DeviceState {
  double first_start = kNever;
  double last_end = 0;  // of passes
  double pass_busy = 0;
  double busy = 0;             // passes and optimizer
  double recompute = 0;        // R passes
  double covered_to = 0;       // busy or charged up to here
  double next_first = kNever;  // first start of the next iteration
  TaskId next_task = kNoTask;
  int forwards_left = 0;
  bool backward_seen = false;
  EnumArray<IdleCause, double> idle{};

  void charge(IdleCause cause, double seconds) {
    if (seconds > 0) idle[cause] += seconds;
  }
};

Report of_times(std::span<const DeviceTimes> devices) {
  Report report;
  double begin = kNever;
  double end = 0;
  double idle_sum = 0;
  double most_work = 0;
  double busy_sum = 0;
  for (const DeviceTimes& device : devices) {
    begin = std::min(begin, device.first_start);
    end = std::max(end, device.last_end);
  }
  report.makespan = report.makespan_from_rest = Seconds(end - begin);
  report.devices.reserve(devices.size());
  for (const DeviceTimes& device : devices) {
    DeviceReport& of = report.devices.emplace_back();
    of.device = static_cast<int>(report.devices.size()) - 1;
    of.busy = Seconds(device.busy);
    of.passes = Seconds(device.pass_busy);
    of.recompute = Seconds(device.recompute);
    of.span = Seconds(device.last_end - device.first_start);
    of.idle = Seconds(device.period - device.busy);
    report.iteration = std::max(report.iteration, Seconds(device.period));
    if (of.span > report.cost) {
      report.cost = of.span;
      report.bubble_rate = (of.span - Seconds(device.pass_busy)) / of.span;
    }
    most_work = std::max(most_work, device.pass_busy);
    report.bubble_rate_makespan += 1 - device.pass_busy / report.makespan.value();
    idle_sum += of.idle.value();
    busy_sum += device.busy;
  }
  report.bubble_rate_busiest = (report.cost - Seconds(most_work)) / report.cost;
  report.bubble_rate_makespan /= static_cast<double>(devices.size());
  report.bubble_over_ideal = idle_sum / busy_sum;
  return report;
}

// All of a device's period is passes, what closes the iteration, or idle for a cause that has a
// name.
void check_named(const DeviceReport& device) {
  Seconds named = device.passes + device.closing();
  for (const Seconds idle : device.idle_by_cause) named += idle;
  const Seconds period = device.busy + device.idle;
  constexpr double kRounding = 1e-6;
  if (std::abs((named - period).value()) <= kRounding * period.value()) return;
  throw LogicError(fmt::format("device {}: {} of its {} s have no name", device.device,
                               (period - named).value(), period.value()));
}

// Streams the tasks of one iteration and charges every gap on every device.
class Analysis {
 public:
  Analysis(const TaskGraph& graph, const Timeline& timeline, std::span<const SpeedChange> speeds,
           IdleCauses causes)
      : graph_(graph),
        timeline_(timeline),
        speeds_(speeds),
        follows_(causes == IdleCauses::kFollowed),
        middle_(graph.iterations() / 2),
        devices_(graph.devices()),
        stage_seconds_(pipesim::stage_seconds(graph)) {
    // Where jitter or contention keep a run from settling, the result is a mean over its
    // iterations.
    if (graph.streams()) {
      cycle_ = steady_cycle(graph, timeline, kSameCycle).value_or(graph.iterations() / 2 - 1);
    }
    size_t first = 0;
    for (const PipelineInstance& pipeline : graph.pipelines()) {
      const Program& program = *pipeline.program;
      for (int d = 0; d < program.shape().devices; ++d) {
        devices_[first + d].forwards_left = static_cast<int>(std::ranges::count_if(
            program.passes(d), [](const Pass& pass) { return work_of(pass.kind).forward; }));
      }
      first += program.shape().devices;
    }
  }

  Report run() {
    const bool single = graph_.iterations() == 1;
    for (TaskId task = 0; task < graph_.size(); ++task) {
      const TaskClass& of = graph_.task_class(task);
      if (is_beside_compute(of.kind)) continue;
      const int iteration = single ? 0 : graph_.iteration(task);
      if (!single && iteration == 0 && of.kind == TaskKind::kCompute) {
        first_begin_ = std::min(first_begin_, timeline_.start[task]);
        first_end_ = std::max(first_end_, timeline_.end[task]);
      }
      if (iteration >= middle_ && iteration < middle_ + cycle_) {
        visit(task, of, single);
      } else if (iteration == middle_ + cycle_ && of.kind == TaskKind::kCompute) {
        DeviceState& device = devices_[of.device];
        if (timeline_.start[task] >= device.next_first) continue;
        device.next_first = timeline_.start[task];
        device.next_task = task;
      }
    }
    if (single) {
      for (DeviceState& device : devices_) device.next_first = closing_end_;
    }
    return finish(single);
  }

 private:
  void visit(TaskId task, const TaskClass& of, bool single) {
    const double start = timeline_.start[task];
    const double end = timeline_.end[task];
    if (of.kind == TaskKind::kCollective) {
      for (DeviceState& device : devices_) {
        device.charge(IdleCause::kCoolDown, start - device.covered_to);
        device.charge(IdleCause::kCollective, end - start);
        device.covered_to = end;
      }
      closing_end_ = end;
      return;
    }
    DeviceState& device = devices_[of.device];
    if (of.kind == TaskKind::kOptimizer) {
      device.charge(IdleCause::kCoolDown, start - device.covered_to);
    } else {
      if (device.first_start == kNever) {
        device.first_start = start;
        if (!single) device.covered_to = start;
      }
      if (follows_ && start > device.covered_to) {
        explain_gap(device, task, of, start - device.covered_to);
      }
      const PassWork work = work_of(of.pass);
      if (work.forward) --device.forwards_left;
      if (work.backward()) device.backward_seen = true;
      if (work.again) device.recompute += end - start;
      device.last_end = end;
      device.pass_busy += end - start;
    }
    device.busy += end - start;
    device.covered_to = end;
  }

  void explain_gap(DeviceState& device, TaskId task, const TaskClass& of, double gap) {
    if (!device.backward_seen && !graph_.streams()) return device.charge(IdleCause::kWarmUp, gap);
    if (device.forwards_left == 0) return device.charge(IdleCause::kCoolDown, gap);
    // Back along what was waited for, as far as the gap reaches: each task on the way took its
    // part.
    double to = timeline_.start[task];
    const double from = to - gap;
    bool only_messages = true;
    while (to > from) {
      const TaskId last = last_arrival(task);
      if (last == kNoTask) return device.charge(IdleCause::kOrder, to - from);
      const double begin = std::max(from, timeline_.start[last]);
      const TaskClass& waited = graph_.task_class(last);
      if (waited.kind == TaskKind::kTransfer) {
        // Sending held the device: it waited for the message and for whoever was to take it.
        const bool held = only_messages && waited.device == of.device;
        device.charge(IdleCause::kTransfer, to - (held ? from : begin));
        if (held) return;
      } else if (waited.kind == TaskKind::kCopyOut || waited.kind == TaskKind::kCopyIn) {
        only_messages = false;
        device.charge(IdleCause::kHostCopy, to - begin);
      } else if (waited.kind == TaskKind::kBarrier) {
        only_messages = false;
        device.charge(IdleCause::kCollective, to - begin);
      } else {
        only_messages = false;
        const double at = timeline_.start[last];
        const bool slower = stage_seconds(waited, at) > stage_seconds(of, at) * (1 + kInstant);
        device.charge(slower ? IdleCause::kImbalance : IdleCause::kOrder, to - begin);
      }
      to = begin;
      task = last;
    }
  }

  // Seconds of a task's stage at the speed of its GPU at a time.
  [[nodiscard]] double stage_seconds(const TaskClass& of, double at) const {
    const size_t chunks = stage_seconds_.size() / devices_.size();
    const double seconds = stage_seconds_[of.device * chunks + of.chunk];
    if (speeds_.empty()) return seconds;
    double speed = 1;
    for (const SpeedChange& change : speeds_) {
      if (change.rank == graph_.rank(of.device) && change.at_seconds <= at) speed = change.factor;
    }
    return seconds / speed;
  }

  // The input of the task that ended last (ties: the first); none for the first task of all.
  [[nodiscard]] TaskId last_arrival(TaskId task) const {
    TaskId last = kNoTask;
    for (const TaskId waited : graph_.waits_for(task)) {
      const double end = timeline_.end[waited];
      if (last == kNoTask || end > timeline_.end[last] * (1 + kInstant)) last = waited;
    }
    return last;
  }

  Report finish(bool single) {
    std::vector<DeviceTimes> times;
    times.reserve(devices_.size());
    double begin = kNever;
    for (DeviceState& device : devices_) {
      close(device);
      const double period = device.next_first - (single ? 0 : device.first_start);
      begin = std::min(begin, device.first_start);
      times.push_back({device.first_start, device.last_end, device.pass_busy, device.busy,
                       device.recompute, period});
    }
    if (graph_.streams()) take_mean_of_cycle(times);
    Report report = of_times(times);
    report.tasks = graph_.size();
    if (!single) report.makespan_from_rest = Seconds(first_end_ - first_begin_);
    for (size_t d = 0; d < devices_.size(); ++d) {
      DeviceReport& of = report.devices[d];
      const auto& idle = devices_[d].idle;
      for (size_t c = 0; c < idle.size(); ++c) of.idle_by_cause[c] = Seconds(idle[c] / cycle_);
      if (follows_) check_named(of);
      if (!timeline_.energy_joules.empty()) {
        of.energy_joules = timeline_.energy_joules[d] / graph_.iterations();
      }
    }
    add_peaks(report, single ? 0 : begin);
    return report;
  }

  // Iterations that run into each other have no first start and last end of their own: span and
  // makespan are the period.
  void take_mean_of_cycle(std::vector<DeviceTimes>& times) const {
    double period = 0;
    for (DeviceTimes& of : times) {
      for (double* sum : {&of.pass_busy, &of.busy, &of.recompute, &of.period}) *sum /= cycle_;
      period = std::max(period, of.period);
    }
    for (DeviceTimes& of : times) {
      of.first_start = 0;
      of.last_end = period;
    }
  }

  // The gap until the device's next iteration.
  void close(DeviceState& device) {
    const double gap = device.next_first - device.covered_to;
    if (!graph_.streams()) return device.charge(IdleCause::kCoolDown, gap);
    if (follows_ && gap > 0) {
      explain_gap(device, device.next_task, graph_.task_class(device.next_task), gap);
    }
  }

  void add_peaks(Report& report, double begin) {
    std::vector<double> held(devices_.size(), 0);
    std::vector<TaskId> peak_task(devices_.size(), kNoTask);
    std::vector<double> peak_at(devices_.size(), 0);
    visit_memory_events(graph_, timeline_, middle_, [&](const MemoryEvent& event) {
      double& level = held[event.device];
      level += event.delta_bytes;
      if (graph_.streams() && graph_.iteration(event.task) < middle_) return;
      DeviceReport& of = report.devices[event.device];
      if (level > of.peak_activation.value()) {
        of.peak_activation = Bytes(level);
        peak_task[event.device] = event.task;
        peak_at[event.device] = event.seconds;
      }
    });
    for (size_t d = 0; d < devices_.size(); ++d) {
      if (peak_task[d] == kNoTask) continue;
      DeviceReport& of = report.devices[d];
      of.peak_time = Seconds(peak_at[d] - begin);
      of.peak_pass = graph_.name(peak_task[d]);
      report.peak_activation = std::max(report.peak_activation, of.peak_activation);
    }
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  std::span<const SpeedChange> speeds_;
  bool follows_;
  int middle_;
  int cycle_ = 1;  // iterations that are looked at, from the middle one on
  std::vector<DeviceState> devices_;
  std::vector<double> stage_seconds_;
  double closing_end_ = 0;
  double first_begin_ = kNever;  // of the first iteration, where there are several
  double first_end_ = 0;
};

}  // namespace

Report analyze(const TaskGraph& graph, const Timeline& timeline,
               std::span<const SpeedChange> speeds, IdleCauses causes) {
  return Analysis(graph, timeline, speeds, causes).run();
}

Report numbers_of(size_t tasks, std::span<const DeviceTimes> times, std::span<const Bytes> peaks) {
  Report report = of_times(times);
  report.tasks = tasks;
  for (size_t d = 0; d < peaks.size(); ++d) {
    report.devices[d].peak_activation = peaks[d];
    report.peak_activation = std::max(report.peak_activation, peaks[d]);
  }
  return report;
}

// Passes of a device follow each other, so that tasks come in order of what they acquire and
// release.
std::vector<Bytes> peaks_in_order(const TaskGraph& graph, std::span<const TaskClass> classes) {
  struct Change {
    std::uint32_t device;
    double acquired, released;
  };
  std::vector<Change> changes;
  changes.reserve(classes.size());
  for (const TaskClass& of : classes) {
    changes.push_back({of.device, of.acquired.value(), of.released.value()});
  }
  struct Level {
    double now = 0;
    double most = 0;
  };
  std::vector<Level> levels(graph.devices());
  for (const std::uint32_t of : graph.class_of()) {
    const Change& change = changes[of];
    Level& level = levels[change.device];
    level.now += change.acquired;
    level.most = std::max(level.most, level.now);
    level.now -= change.released;
  }
  std::vector<Bytes> peaks;
  peaks.reserve(levels.size());
  for (const Level& level : levels) peaks.emplace_back(level.most);
  return peaks;
}

const std::vector<Bytes>& KeptPeaks::of(const TaskGraph& graph,
                                        std::span<const TaskClass> classes) {
  std::vector<ClassBytes> bytes;
  bytes.reserve(classes.size());
  for (const TaskClass& each : classes) bytes.push_back({each.acquired, each.released});
  if (bytes != bytes_) {
    peaks_ = peaks_in_order(graph, classes);
    bytes_ = std::move(bytes);
  }
  return peaks_;
}

bool is_steady(const TaskGraph& graph, const Timeline& timeline, double relative) {
  if (graph.iterations() == 1) return true;
  if (graph.streams()) return steady_cycle(graph, timeline, relative).has_value();
  const Report report = analyze(graph, timeline, {}, IdleCauses::kLeftOut);
  const double period = report.iteration.value();
  return std::ranges::all_of(report.devices, [&](const DeviceReport& device) {
    return std::abs((device.busy + device.idle).value() - period) <= relative * period;
  });
}

Report ensemble_of(std::span<const Report> runs, std::uint64_t seed, double jitter) {
  if (runs.empty()) throw LogicError("an ensemble of no runs");
  const auto count = static_cast<double>(runs.size());
  Report mean = runs.front();
  const auto average = [&](auto read) {
    auto sum = read(runs.front());
    for (const Report& run : runs.subspan(1)) sum += read(run);
    return sum / count;
  };
  mean.iteration = average([](const Report& r) { return r.iteration; });
  mean.makespan = average([](const Report& r) { return r.makespan; });
  mean.makespan_from_rest = average([](const Report& r) { return r.makespan_from_rest; });
  mean.cost = average([](const Report& r) { return r.cost; });
  mean.bubble_rate = average([](const Report& r) { return r.bubble_rate; });
  mean.bubble_rate_busiest = average([](const Report& r) { return r.bubble_rate_busiest; });
  mean.bubble_rate_makespan = average([](const Report& r) { return r.bubble_rate_makespan; });
  mean.bubble_over_ideal = average([](const Report& r) { return r.bubble_over_ideal; });
  for (size_t d = 0; d < mean.devices.size(); ++d) {
    DeviceReport& device = mean.devices[d];
    device.busy = average([d](const Report& r) { return r.devices[d].busy; });
    device.passes = average([d](const Report& r) { return r.devices[d].passes; });
    device.recompute = average([d](const Report& r) { return r.devices[d].recompute; });
    device.span = average([d](const Report& r) { return r.devices[d].span; });
    device.idle = average([d](const Report& r) { return r.devices[d].idle; });
    device.peak_time = average([d](const Report& r) { return r.devices[d].peak_time; });
    for (size_t c = 0; c < device.idle_by_cause.size(); ++c) {
      device.idle_by_cause[c] =
          average([d, c](const Report& r) { return r.devices[d].idle_by_cause[c]; });
    }
    if (device.energy_joules) {
      device.energy_joules =
          average([d](const Report& r) { return r.devices[d].energy_joules.value(); });
    }
  }
  std::vector<double> periods;
  double squares = 0;
  for (const Report& run : runs) {
    periods.push_back(run.iteration.value());
    squares += std::pow(run.iteration.value() - mean.iteration.value(), 2);
  }
  std::ranges::sort(periods);
  const double spread = runs.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
  mean.ensemble = Ensemble{static_cast<int>(runs.size()),
                           seed,
                           jitter,
                           mean.iteration,
                           Seconds(spread),
                           Seconds(percentile(periods, 0.05)),
                           Seconds(percentile(periods, 0.50)),
                           Seconds(percentile(periods, 0.95))};
  return mean;
}

}  // namespace pipesim
