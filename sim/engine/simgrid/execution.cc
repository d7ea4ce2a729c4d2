#include "sim/engine/simgrid/execution.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/plugins/energy.h>
#include <simgrid/version.h>
#include <stdexcept>

namespace pipesim::simgrid_module {

using ::simgrid::kernel::timer::Timer;

namespace {

constexpr double kNotFinished = std::numeric_limits<double>::quiet_NaN();
// Amount of the execution that stands for messages: longer than any run, cancelled when they end.
constexpr double kEndless = kHostSpeed * 1e15;
// Messages take their share before compute takes the rest, up to shares that leave compute a
// millionth.
constexpr double kMessagePriority = 1e6;
// Largest relative error of SimGrid's clock where its value is known.
constexpr double kAgreement = 1e-11;

// Timers run before SimGrid reports what has completed at the same time.
bool completes_now(const s4u::Activity& activity) {
  for (::simgrid::kernel::resource::Model* model : s4u::Engine::get_instance()->get_all_models()) {
    for (const auto& action : *model->get_finished_action_set()) {
      if (action.get_activity() == activity.get_impl()) return true;
    }
  }
  return false;
}

}  // namespace

Execution::Execution(Platform& platform, std::uint64_t run)
    : platform_(platform),
      job_(platform.job),
      result_(platform.job.runs[run]),
      share_{platform.job.header->settings.message_share,
             platform.job.header->settings.message_share, platform.job.header->settings.copy_share,
             platform.job.header->settings.copy_share},
      states_(platform.dataflow.states) {
  const size_t tasks = job_.class_of.size();
  if (!job_.seconds.empty()) seconds_ = job_.seconds.subspan(run * tasks, tasks);
  times_ = job_.times.subspan(run * tasks, tasks);
  energy_ = job_.energy.subspan(run * job_.header->sizes.hosts, job_.header->sizes.hosts);
  flows_on_link_.resize(job_.link_bandwidth.size());
  gpus_.resize(job_.header->sizes.hosts);
}

void Execution::operator()() {
  std::ranges::fill(times_, JobTimes{0.0, kNotFinished});
  const auto on_completion = [this](const s4u::Activity& activity) {
    const auto* const known = activity.get_data<Activity>();
    if (known != nullptr) return completed(known->slot);
    const auto cancelled = std::ranges::find(cancelled_, &activity, &s4u::ExecPtr::get);
    if (cancelled == cancelled_.end()) return;
    last_completed_ = *cancelled;
    cancelled_.erase(cancelled);
  };
#if SIMGRID_VERSION < 33400
  s4u::Activity::on_completion_cb(on_completion);
#else  // each kind of activity has a signal of its own
  s4u::Comm::on_completion_cb(on_completion);
  s4u::Exec::on_completion_cb(on_completion);
#endif
  for (const JobSpeedChange& change : job_.speed_changes) {
    const size_t host = change.host;
    const bool stops = change.factor == 0;
    if (change.at_seconds <= 0) {
      gpus_[host].stopped = stops;
    } else {
      Timer::set(change.at_seconds, [this, host, stops] { change_speed(host, stops); });
    }
  }
  for (TaskId task = 0; task < states_.size(); ++task) {
    if (states_[task].missing == 0) ready_.push_back(task);
  }
  advance();
  platform_.engine->run();
  if (job_.header->settings.energy) {
    for (size_t i = 0; i < energy_.size(); ++i) {
      energy_[i] = sg_host_get_consumed_energy(platform_.hosts[i]);
    }
  }
}

// All that the task waits for has ended, the last at times_[task].start.
void Execution::ready(TaskId task) {
  const JobClass& of = class_of(task);
  const double at = times_[task].start;
  const double duration = seconds(task);
  switch (of.kind) {
    case JobKind::kTransfer:
      // A communication of nothing would never complete.
      if (payload(task) >= 1) return agenda_.add(at + of.latency, task);
      break;
    case JobKind::kExecution:
      if (duration > 0) return agenda_.add(at, task);
      break;
    case JobKind::kTimer:
      // Energy is counted until the last task ends, which need not be an activity.
      if (job_.header->settings.energy) return agenda_.add(at + duration, task);
      break;
  }
  finish(task, at + duration);
}

void Execution::finish(TaskId task, double at) {
  times_[task].end = at;
  const JobTaskState& state = states_[task];
  const auto successors =
      std::span(platform_.dataflow.successors).subspan(state.first_successor, state.successors);
  for (const TaskId next : successors) {
    times_[next].start = std::max(times_[next].start, at);
    if (--states_[next].missing == 0) ready_.push_back(next);
  }
}

void Execution::begin(TaskId task) {
  switch (class_of(task).kind) {
    case JobKind::kTransfer:
      return start_flow(task);
    case JobKind::kExecution:
      return start_compute(task);
    case JobKind::kTimer:
      return finish(task, times_[task].start + seconds(task));
  }
}

// Follows all that is known to end, and begins what is due by SimGrid's clock.
void Execution::advance() {
  const double now = s4u::Engine::get_clock();
  while (true) {
    if (!ready_.empty()) {
      const TaskId task = ready_.back();
      ready_.pop_back();
      ready(task);
    } else if (!agenda_.empty() && agenda_.next().time <= now) {
      begin(agenda_.take().task);
    } else {
      break;
    }
  }
  set_timer();
}

void Execution::set_timer() {
  if (agenda_.empty()) return;
  const double next = agenda_.next().time;
  if (!timers_.empty() && timers_.back() <= next) return;
  timers_.push_back(next);
  Timer::set(next, [this] {
    timers_.pop_back();
    advance();
  });
}

SlotId Execution::open(TaskId task, double lasts) {
  if (free_.empty()) {
    free_.push_back(static_cast<SlotId>(activities_.size()));
    activities_.emplace_back().slot = free_.back();
  }
  const SlotId slot = free_.back();
  free_.pop_back();
  activities_[slot] = {
      slot, nullptr, task, s4u::Engine::get_clock(), lasts, times_[task].start + seconds(task)};
  return slot;
}

void Execution::start_flow(TaskId task) {
  const JobRoute& way = route(task);
  const SlotId slot = open(task, seconds(task) - class_of(task).latency);
  for (const std::uint32_t link : job_.route_links.subspan(way.first_link, way.links)) {
    for (const SlotId other : flows_on_link_[link]) disturb(slot, other);
    flows_on_link_[link].push_back(slot);
  }
  flow_starts(way.from, outward(way));
  flow_starts(way.to, outward(way) + 1);
  s4u::CommPtr comm = s4u::Comm::sendto_init(platform_.hosts[way.from], platform_.hosts[way.to]);
  comm->set_payload_size(static_cast<std::uint64_t>(payload(task)));
  comm->set_data(&activities_[slot]);
  activities_[slot].handle = comm;
  comm->start();
}

void Execution::start_compute(TaskId task) {
  const size_t host = class_of(task).host;
  Gpu& gpu = gpus_[host];
  const SlotId slot = open(task, seconds(task));
  bool alone = !platform_.host_changes_speed[host];
  for (const std::uint32_t flows : gpu.flows) alone = alone && flows == 0;
  activities_[slot].disturbed = !alone;
  for (const SlotId other : gpu.computing) disturb(slot, other);
  gpu.computing.push_back(slot);
  activities_[slot].flops = seconds(task) * kHostSpeed;
  if (!gpu.stopped) execute(slot, host);
}

bool Execution::ends_now(const Activity& activity) const {
  const double now = s4u::Engine::get_clock();
  return !activity.disturbed && activity.expected <= now + kInstant * now;
}

// `a` begins where `b` is. SimGrid reports completions of one instant one after the other: what is
// about to be reported shares nothing any more.
void Execution::disturb(SlotId a, SlotId b) {
  if (ends_now(activities_[b])) return;
  activities_[a].disturbed = true;
  activities_[b].disturbed = true;
}

void Execution::completed(SlotId slot) {
  Activity& activity = activities_[slot];
  const TaskId task = activity.task;
  const double at = settle(activity);
  const JobClass& of = class_of(task);
  if (of.kind == JobKind::kTransfer) {
    leave_links(slot);
    const JobRoute& way = route(task);
    flow_ends(way.from, outward(way));
    flow_ends(way.to, outward(way) + 1);
  } else {
    std::erase(gpus_[of.host].computing, slot);
  }
  last_completed_ = std::move(activity.handle);
  free_.push_back(slot);
  finish(task, at);
  advance();
}

// The end of the task whose activity just completed. Disturbed, it is what SimGrid's clock says.
// Undisturbed, it is start + seconds in our own doubles, after a check that SimGrid's clock has
// advanced by just that: taken from the clock, ends would gather its rounding from task to task
// (5e-12 of the time after 800,000 tasks), and a graph without contention would no longer equal
// replay to the bit. A clock that says something else is never hidden: then SimGrid has modelled
// something else than a resource held alone.
double Execution::settle(const Activity& activity) const {
  const double now = s4u::Engine::get_clock();
  if (activity.disturbed) return now;
  const double lasted = now - activity.began;
  if (std::abs(lasted - activity.lasts) > kAgreement * now + 4 * platform_.precision) {
    std::array<char, 160> text{};
    std::snprintf(text.data(), text.size(),
                  "task %u ran alone and should have taken %.17g s, but SimGrid took %.17g s",
                  activity.task, activity.lasts, lasted);
    throw std::logic_error(text.data());
  }
  return activity.expected;
}

void Execution::leave_links(SlotId slot) {
  const double now = s4u::Engine::get_clock();
  const JobRoute& way = route(activities_[slot].task);
  for (const std::uint32_t link : job_.route_links.subspan(way.first_link, way.links)) {
    std::vector<SlotId>& flows = flows_on_link_[link];
    // A message between two GPUs behind one link goes over it twice, and shares it with itself.
    if (std::erase(flows, slot) > 1) result_.shared_links = true;
    if (result_.shared_links) continue;
    for (const SlotId other : flows) {
      const double both = std::max(activities_[slot].began, activities_[other].began);
      if (now - both > kInstant * now) result_.shared_links = true;
    }
  }
}

void Execution::flow_starts(size_t host, size_t flow) {
  if (share_[flow] == 0) return;
  for (const SlotId slot : gpus_[host].computing) {
    if (!ends_now(activities_[slot])) activities_[slot].disturbed = true;
  }
  if (gpus_[host].flows[flow]++ == 0) load(host, flow);
}

void Execution::flow_ends(size_t host, size_t flow) {
  if (share_[flow] == 0) return;
  Gpu& gpu = gpus_[host];
  if (--gpu.flows[flow] == 0) cancel(std::move(gpu.load[flow]));
}

// Takes the share of compute that messages, or copies, of one direction cost: an execution of its
// own.
void Execution::load(size_t host, size_t flow) {
  s4u::Host* const at = platform_.hosts[host];
  s4u::ExecPtr load = s4u::Exec::init();
  load->set_flops_amount(kEndless)->set_host(at);
  load->set_bound(share_[flow] * kHostSpeed * at->get_available_speed());
  load->set_priority(kMessagePriority);
  load->start();
  gpus_[host].load[flow] = std::move(load);
}

// A cancelled execution uses its host until SimGrid has swept it out, which it may not do before it
// computes what ends next: a timer that is due at once makes it sweep.
void Execution::cancel(s4u::ExecPtr exec) {
  exec->set_data(nullptr);
  exec->cancel();
  cancelled_.push_back(std::move(exec));
  Timer::set(s4u::Engine::get_clock(), [] {});
}

void Execution::change_speed(size_t host, bool stops) {
  Gpu& gpu = gpus_[host];
  for (const SlotId slot : gpu.computing) {
    if (stops && !gpu.stopped) interrupt(slot);
    if (!stops && !activities_[slot].handle) execute(slot, host);
  }
  gpu.stopped = stops;
  // A change of speed makes SimGrid forget the bounds of what runs.
  for (size_t flow = 0; flow < kFlows; ++flow) {
    if (gpu.flows[flow] == 0) continue;
    cancel(std::move(gpu.load[flow]));
    load(host, flow);
  }
}

// SimGrid 3.32 can suspend an execution only once: end it, and start another with what is left of
// it.
void Execution::interrupt(SlotId slot) {
  if (completes_now(*activities_[slot].handle)) return;
  const auto exec = boost::static_pointer_cast<s4u::Exec>(std::move(activities_[slot].handle));
  activities_[slot].flops = exec->get_remaining();
  cancel(exec);
}

void Execution::execute(SlotId slot, size_t host) {
  s4u::ExecPtr exec = s4u::Exec::init();
  exec->set_flops_amount(activities_[slot].flops)->set_host(platform_.hosts[host]);
  exec->set_data(&activities_[slot]);
  activities_[slot].handle = exec;
  exec->start();
}

}  // namespace pipesim::simgrid_module
