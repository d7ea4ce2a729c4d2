// The block of shared memory through which the engine and the module that loads SimGrid talk.
//
// The caller writes a job (sizes, settings, the graph as flat arrays) into a mapping. Serving
// processes read it in place and write start and end of every task behind it. Only plain values
// cross, so neither side sees a type of the other: the module needs no part of pipesim, the caller
// none of SimGrid. Seconds, bytes and watts throughout; hosts, links and routes are numbered from
// 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pipesim {

// Clock readings nearer than this, relative to the clock, are one instant. Sums of the same
// durations in another order differ by less, durations that differ on purpose by more.
inline constexpr double kInstant = 1e-12;

enum class JobKind : std::uint32_t { kTimer, kExecution, kTransfer };

struct JobClass {
  double seconds = 0;
  double latency = 0;
  JobKind kind = JobKind::kTimer;
  std::int32_t host = 0;   // of an execution
  std::int32_t route = 0;  // of a transfer
};

struct JobRoute {
  std::int32_t from = 0;  // hosts
  std::int32_t to = 0;
  std::uint32_t first_link = 0;  // in Job::route_links
  std::uint32_t links = 0;
  double bandwidth = 0;
  bool copies = false;  // to or from a host's memory, which is no GPU
};

struct JobSpeedChange {
  std::int32_t host = 0;
  double at_seconds = 0;
  double factor = 1;
};

// A run's answer for one task. An end that is not a number: the task did not finish.
struct JobTimes {
  double start;
  double end;
};

struct JobSizes {
  std::uint64_t tasks = 0;
  std::uint64_t edges = 0;
  std::uint64_t classes = 0;
  std::uint64_t hosts = 0;
  std::uint64_t links = 0;
  std::uint64_t routes = 0;
  std::uint64_t route_links = 0;
  std::uint64_t speed_changes = 0;
  std::uint64_t runs = 0;
  std::uint64_t seconds = 0;  // runs * tasks when every task has its own duration, else 0
};

struct JobSettings {
  double message_share = 0;  // of a GPU, taken by what flows from it, and to it
  double copy_share = 0;     // likewise, by copies
  double idle_power = 0;
  double busy_power = 0;
  bool energy = false;
  std::uint32_t processes = 1;  // runs at the same time
};

enum class JobState : std::uint32_t {
  kPending,
  kDone,
  kFailed,   // by a fault of the module
  kRefused,  // by the system: no process, no memory, or a process that somebody ended
};

struct JobRun {
  JobState state = JobState::kPending;
  bool shared_links = false;
  char message[500] = {};  // of kFailed and kRefused
};

struct JobHeader {
  JobSizes sizes;
  JobSettings settings;
  JobRun setup;  // loading SimGrid and building the platform, before the runs
};

// The arrays of a job, in a mapping of `job_bytes(sizes)` bytes.
struct Job {
  JobHeader* header = nullptr;
  std::span<JobClass> classes;
  std::span<JobRoute> routes;
  std::span<JobSpeedChange> speed_changes;  // by host, in order of time
  std::span<double> link_bandwidth;
  std::span<double> seconds;  // run after run
  std::span<JobTimes> times;  // run after run
  std::span<double> energy;   // joules, by host
  std::span<JobRun> runs;
  std::span<std::uint32_t> route_links;
  std::span<std::uint32_t> class_of;
  std::span<std::uint32_t> row;
  std::span<std::uint32_t> waits_for;
};

// Hands out consecutive arrays; with `base` null it only measures.
class JobLayout {
 public:
  explicit JobLayout(std::byte* base) : base_(base) {}

  template <class T>
  std::span<T> take(std::uint64_t count) {
    used_ = (used_ + alignof(T) - 1) / alignof(T) * alignof(T);
    auto* const at = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += count * sizeof(T);
    return {at, at == nullptr ? 0 : count};
  }
  [[nodiscard]] std::uint64_t used() const { return used_; }

 private:
  std::byte* base_;
  std::uint64_t used_ = 0;
};

inline Job lay_out(JobLayout& layout, const JobSizes& sizes) {
  Job job;
  job.header = layout.take<JobHeader>(1).data();
  job.classes = layout.take<JobClass>(sizes.classes);
  job.routes = layout.take<JobRoute>(sizes.routes);
  job.speed_changes = layout.take<JobSpeedChange>(sizes.speed_changes);
  job.link_bandwidth = layout.take<double>(sizes.links);
  job.seconds = layout.take<double>(sizes.seconds);
  job.times = layout.take<JobTimes>(sizes.runs * sizes.tasks);
  job.energy = layout.take<double>(sizes.runs * sizes.hosts);
  job.runs = layout.take<JobRun>(sizes.runs);
  job.route_links = layout.take<std::uint32_t>(sizes.route_links);
  job.class_of = layout.take<std::uint32_t>(sizes.tasks);
  job.row = layout.take<std::uint32_t>(sizes.tasks + 1);
  job.waits_for = layout.take<std::uint32_t>(sizes.edges);
  return job;
}

inline std::uint64_t job_bytes(const JobSizes& sizes) {
  JobLayout layout(nullptr);
  lay_out(layout, sizes);
  return layout.used();
}

// `mapping` is zero-filled or holds a job of these sizes.
inline Job job_view(void* mapping, const JobSizes& sizes) {
  JobLayout layout(static_cast<std::byte*>(mapping));
  return lay_out(layout, sizes);
}

// The module's functions, once per process: `prepare` builds the platform of a job, `run` executes
// one of its runs. A process can prepare one job and execute one run, because SimGrid's engine
// lives once; a fork after `prepare` may execute another. Both throw std::exception.
struct JobModule {
  void (*prepare)(const Job& job);
  void (*run)(std::uint64_t run);
};

// The module exports this function, with C linkage, under this name.
using JobModuleEntry = const JobModule*();
inline constexpr const char* kJobModuleEntry = "pipesim_simgrid_module";

}  // namespace pipesim
