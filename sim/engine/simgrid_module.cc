// The module that loads SimGrid: platform, and one execution of a graph on it.
//
// SimGrid keeps what is shared: links, and GPUs that are hosts. What waits for what is kept here in
// flat arrays. A task that nothing can disturb never meets SimGrid: its end is known as soon as its
// start is, even when that lies ahead of the clock, because readiness is a maximum and does not
// depend on the order in which it is found. So the clock stops only where an activity begins or
// completes. What begins later waits in a heap of our own, with ties in order of task, and only the
// next kernel timer is ever set.
#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <simgrid/kernel/ProfileBuilder.hpp>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/plugins/energy.h>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/engine/simgrid_dataflow.h"
#include "sim/engine/simgrid_job.h"

namespace pipesim {
namespace {

namespace s4u = ::simgrid::s4u;
using ::simgrid::kernel::timer::Timer;

using TaskId = JobTask;
using SlotId = std::uint32_t;

constexpr double kNotFinished = std::numeric_limits<double>::quiet_NaN();
// A host's flop/s. SimGrid cuts off the last `precision` flops of an execution: at this speed they
// are far below the resolution of its clock.
constexpr double kHostSpeed = 0x1p40;
// Amount of the execution that stands for messages: longer than any run, cancelled when they end.
constexpr double kEndless = kHostSpeed * 1e15;
// Messages take their share before compute takes the rest, up to shares that leave compute a
// millionth.
constexpr double kMessagePriority = 1e6;
// Clock readings nearer than this, relative to the clock, are one instant: sums of the same
// durations in another order differ by less, durations that differ on purpose by more.
constexpr double kInstant = 1e-12;
// What SimGrid's clock may be off, relative to the clock, where we know what it must say.
constexpr double kAgreement = 1e-11;

// Everything that the runs of a job share: built once, inherited by fork.
struct Platform {
  explicit Platform(const Job& of);

  Job job;
  std::vector<double> rate;  // by class: units of payload per second of flow
  JobDataflow dataflow;
  double precision = 0;
  std::unique_ptr<s4u::Engine> engine;
  std::vector<s4u::Host*> hosts;
  std::vector<bool> host_changes_speed;

 private:
  void start_engine();
  void build_zone(double unit);
};

Platform::Platform(const Job& of) : job(of), dataflow(of) {
  // SimGrid treats clock readings nearer than the precision as one. It must exceed the rounding of
  // the clock, or a completion is stepped over and lost; any more than that is an error at short
  // times. Contention and slow hosts may stretch a run: 2^-46 leaves a factor of 64 for that.
  double slowest = 1;
  for (const JobSpeedChange& change : job.speed_changes) {
    if (change.factor > 0) slowest = std::min(slowest, change.factor);
  }
  precision =
      std::max(job_longest_path(job) / slowest, std::numeric_limits<double>::min()) * 0x1p-46;
  start_engine();
  // Payloads are whole numbers: choose the unit so that the largest has 62 bits.
  const double largest = job_largest_message(job);
  const double unit = largest > 0 ? std::exp2(61 - std::ilogb(largest)) : 1;
  rate.reserve(job.classes.size());
  for (const JobClass& each : job.classes) {
    const bool transfer = each.kind == JobKind::kTransfer;
    rate.push_back(transfer ? job.routes[each.route].bandwidth * unit : 0);
  }
  build_zone(unit);
}

void Platform::start_engine() {
  // CM02 without its TCP terms is plain max-min sharing.
  std::vector<std::string> words = {"pipesim",
                                    "--log=root.thresh:critical",
                                    "--cfg=network/model:CM02",
                                    "--cfg=network/crosstraffic:0",
                                    "--cfg=network/TCP-gamma:0",
                                    "--cfg=network/optim:Lazy",
                                    "--cfg=cpu/optim:Lazy",
                                    "--cfg=contexts/factory:raw",
                                    "--cfg=contexts/nthreads:1",
                                    "--cfg=debug/clean-atexit:no"};
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(words.size());
  engine = std::make_unique<s4u::Engine>(&argc, argv.data());
  s4u::Engine::set_config("surf/precision", precision);
  if (job.header->settings.energy) sg_host_energy_plugin_init();
}

void Platform::build_zone(double unit) {
  s4u::NetZone* zone = s4u::create_full_zone("cluster");
  hosts.reserve(job.header->sizes.hosts);
  host_changes_speed.resize(job.header->sizes.hosts);
  for (const JobSpeedChange& change : job.speed_changes) {
    host_changes_speed[change.host] = true;
  }
  const JobSettings& settings = job.header->settings;
  size_t change = 0;
  for (size_t i = 0; i < job.header->sizes.hosts; ++i) {
    s4u::Host* host = zone->create_host("gpu" + std::to_string(i), kHostSpeed);
    if (settings.energy) {
      std::array<char, 80> watts{};
      std::snprintf(watts.data(), watts.size(), "%.17g:%.17g", settings.idle_power,
                    settings.busy_power);
      host->set_property("wattage_per_state", watts.data());
    }
    std::string profile;
    for (; change < job.speed_changes.size() &&
           job.speed_changes[change].host == static_cast<std::int32_t>(i);
         ++change) {
      // SimGrid ignores a speed of 0: the run interrupts what computes instead.
      if (job.speed_changes[change].factor == 0) continue;
      std::array<char, 80> line{};
      std::snprintf(line.data(), line.size(), "%.17g %.17g\n", job.speed_changes[change].at_seconds,
                    job.speed_changes[change].factor);
      profile += line.data();
    }
    if (!profile.empty()) {
      host->set_speed_profile(::simgrid::kernel::profile::ProfileBuilder::from_string(
          "speed" + std::to_string(i), profile, -1));
    }
    host->seal();
    hosts.push_back(host);
  }
  std::vector<s4u::Link*> links;
  links.reserve(job.link_bandwidth.size());
  for (size_t i = 0; i < job.link_bandwidth.size(); ++i) {
    // Latency passes in a timer: CM02 would share links by round-trip time.
    s4u::Link* link = zone->create_link("link" + std::to_string(i), job.link_bandwidth[i] * unit);
    link->set_latency(0)->seal();
    links.push_back(link);
  }
  for (const JobRoute& route : job.routes) {
    std::vector<s4u::LinkInRoute> way;
    for (const std::uint32_t link : job.route_links.subspan(route.first_link, route.links)) {
      way.emplace_back(links[link]);
    }
    zone->add_route(hosts[route.from]->get_netpoint(), hosts[route.to]->get_netpoint(), nullptr,
                    nullptr, way, false);
  }
  zone->seal();
}

// One run of the graph. SimGrid calls back: when the next timer is due, and when an activity
// completed.
class Execution {
 public:
  Execution(Platform& platform, std::uint64_t run);
  void operator()();

 private:
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
    std::array<std::uint32_t, 2> messages{};  // flowing out, flowing in
    std::array<s4u::ExecPtr, 2> load;         // what they take from compute
    bool stopped = false;
  };

  [[nodiscard]] const JobClass& class_of(TaskId task) const {
    return job_.classes[states_[task].task_class];
  }
  [[nodiscard]] double seconds(TaskId task) const {
    return job_.seconds.empty() ? class_of(task).seconds : seconds_[task];
  }
  // Of a transfer, in the unit of Platform::rate.
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
  void message_starts(size_t host, size_t direction);
  void message_ends(size_t host, size_t direction);
  void load(size_t host, size_t direction);
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
  double share_;
  std::vector<JobTaskState> states_;
  std::vector<TaskId> ready_;        // tasks that wait for nothing more
  JobAgenda agenda_;                 // activities to begin
  std::vector<double> timers_;       // dates of SimGrid timers that are set; the last is due first
  std::deque<Activity> activities_;  // which SimGrid's point to: they stay where they are
  std::vector<SlotId> free_;
  // What SimGrid still uses: an activity while it reports its completion, and a cancelled one until
  // it has reported that a second time.
  s4u::ActivityPtr last_completed_;
  std::vector<s4u::ExecPtr> cancelled_;
  std::vector<std::vector<SlotId>> flows_on_link_;
  std::vector<Gpu> gpus_;
};

Execution::Execution(Platform& platform, std::uint64_t run)
    : platform_(platform),
      job_(platform.job),
      result_(platform.job.runs[run]),
      share_(platform.job.header->settings.message_share),
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
  s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) {
    const auto* const known = activity.get_data<Activity>();
    if (known != nullptr) return completed(known->slot);
    const auto cancelled = std::ranges::find(cancelled_, &activity, &s4u::ExecPtr::get);
    if (cancelled == cancelled_.end()) return;
    last_completed_ = *cancelled;
    cancelled_.erase(cancelled);
  });
  for (const JobSpeedChange& change : job_.speed_changes) {
    const auto host = static_cast<size_t>(change.host);
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
  if (share_ > 0 && way.slows_gpus) {
    message_starts(static_cast<size_t>(way.from), 0);
    message_starts(static_cast<size_t>(way.to), 1);
  }
  s4u::CommPtr comm = s4u::Comm::sendto_init(platform_.hosts[way.from], platform_.hosts[way.to]);
  comm->set_payload_size(static_cast<std::uint64_t>(payload(task)));
  comm->set_data(&activities_[slot]);
  activities_[slot].handle = comm;
  comm->start();
}

void Execution::start_compute(TaskId task) {
  const auto host = static_cast<size_t>(class_of(task).host);
  Gpu& gpu = gpus_[host];
  const SlotId slot = open(task, seconds(task));
  bool alone = !platform_.host_changes_speed[host];
  for (const std::uint32_t messages : gpu.messages) alone = alone && messages == 0;
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
    if (share_ > 0 && way.slows_gpus) {
      message_ends(static_cast<size_t>(way.from), 0);
      message_ends(static_cast<size_t>(way.to), 1);
    }
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
    std::erase(flows, slot);
    if (result_.shared_links) continue;
    for (const SlotId other : flows) {
      const double both = std::max(activities_[slot].began, activities_[other].began);
      if (now - both > kInstant * now) result_.shared_links = true;
    }
  }
}

void Execution::message_starts(size_t host, size_t direction) {
  for (const SlotId slot : gpus_[host].computing) {
    if (!ends_now(activities_[slot])) activities_[slot].disturbed = true;
  }
  if (gpus_[host].messages[direction]++ == 0) load(host, direction);
}

void Execution::message_ends(size_t host, size_t direction) {
  Gpu& gpu = gpus_[host];
  if (--gpu.messages[direction] == 0) cancel(std::move(gpu.load[direction]));
}

// What messages of one direction take from compute: an execution of the cluster's share.
void Execution::load(size_t host, size_t direction) {
  s4u::Host* const at = platform_.hosts[host];
  s4u::ExecPtr load = s4u::Exec::init();
  load->set_flops_amount(kEndless)->set_host(at);
  load->set_bound(share_ * kHostSpeed * at->get_available_speed());
  load->set_priority(kMessagePriority);
  load->start();
  gpus_[host].load[direction] = std::move(load);
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
  for (const size_t direction : {size_t{0}, size_t{1}}) {
    if (share_ == 0 || gpu.messages[direction] == 0) continue;
    cancel(std::move(gpu.load[direction]));
    load(host, direction);
  }
}

// Timers run before SimGrid reports what has completed at the same time.
bool completes_now(const s4u::Activity& activity) {
  for (::simgrid::kernel::resource::Model* model : s4u::Engine::get_instance()->get_all_models()) {
    for (const auto& action : *model->get_finished_action_set()) {
      if (action.get_activity() == activity.get_impl()) return true;
    }
  }
  return false;
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

std::unique_ptr<Platform>& prepared() {
  static std::unique_ptr<Platform> platform;
  return platform;
}

void prepare(const Job& job) { prepared() = std::make_unique<Platform>(job); }

void run(std::uint64_t number) { Execution(*prepared(), number)(); }

}  // namespace
}  // namespace pipesim

extern "C" const pipesim::JobModule* pipesim_simgrid_module() {
  static constexpr pipesim::JobModule kModule{pipesim::prepare, pipesim::run};
  return &kModule;
}
