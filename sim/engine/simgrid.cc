#include "sim/engine/simgrid.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <string>
#include <utility>

#include "sim/core/error.h"
#include "sim/engine/simgrid_meetings.h"
#include "sim/engine/simgrid_module.h"
#include "sim/engine/simgrid_process.h"

namespace pipesim {
namespace {

// Numbers as they come: 0, 1, 2 in the order of first use.
class Numbering {
 public:
  std::int32_t of(int original) {
    const auto [found, added] =
        number_.emplace(original, static_cast<std::int32_t>(number_.size()));
    return found->second;
  }
  [[nodiscard]] const std::map<int, std::int32_t>& all() const { return number_; }
  [[nodiscard]] size_t size() const { return number_.size(); }

 private:
  std::map<int, std::int32_t> number_;
};

// In place of a rank: where copies to the host go.
constexpr int kHostMemory = -1;

// The parts of the cluster that the graph uses, numbered for the module: the hosts of its ranks,
// the routes of its messages and copies and the links on them.
class UsedCluster {
 public:
  UsedCluster(const TaskGraph& graph, const Cluster& cluster, const SimGridOptions& options)
      : graph_(graph), cluster_(cluster), gpus_are_hosts_(options.gpu == GpuModel::kHost) {
    const auto devices = static_cast<std::uint32_t>(graph.devices());
    for (std::uint32_t device = 0; device < devices; ++device) {
      host_of_device_.push_back(hosts_.of(graph.rank(device)));
    }
    const std::vector<int> links = graph.host_links();
    for (std::uint32_t device = 0; device < links.size(); ++device) {
      host_link_of_rank_[graph.rank(device)] = links[device];
    }
    classes_.reserve(graph.classes().size());
    for (const TaskClass& of : graph.classes()) classes_.push_back(job_class(of));
    for (const SpeedChange& change : options.speed_profile) {
      const auto host = hosts_.all().find(change.rank);
      if (host == hosts_.all().end()) continue;
      speed_changes_.push_back({host->second, change.at_seconds, change.factor});
    }
    std::ranges::stable_sort(speed_changes_, [](const JobSpeedChange& a, const JobSpeedChange& b) {
      return std::pair(a.host, a.at_seconds) < std::pair(b.host, b.at_seconds);
    });
  }

  [[nodiscard]] const std::vector<std::int32_t>& host_of_device() const { return host_of_device_; }

  [[nodiscard]] JobWays ways() const {
    return {graph_.class_of(),      classes_,     routes_, route_links_,
            link_bandwidth_.size(), hosts_.size()};
  }
  [[nodiscard]] bool changes_speed() const { return !speed_changes_.empty(); }

  void add_sizes(JobSizes& sizes) const {
    sizes.classes = classes_.size();
    sizes.hosts = hosts_.size();
    sizes.links = link_bandwidth_.size();
    sizes.routes = routes_.size();
    sizes.route_links = route_links_.size();
    sizes.speed_changes = speed_changes_.size();
  }

  void fill(Job& job) const {
    std::ranges::copy(classes_, job.classes.begin());
    std::ranges::copy(link_bandwidth_, job.link_bandwidth.begin());
    std::ranges::copy(routes_, job.routes.begin());
    std::ranges::copy(route_links_, job.route_links.begin());
    std::ranges::copy(speed_changes_, job.speed_changes.begin());
  }

 private:
  // Resources on the ways to the host, numbered apart from those of models/cluster.h.
  enum class HostPart { kEngineOut, kEngineIn, kPortOut, kPortIn, kLinkOut, kLinkIn, kLink };
  static int resource(HostPart part, int number) {
    constexpr int kParts = static_cast<int>(HostPart::kLink) + 1;
    return -1 - (number * kParts + static_cast<int>(part));
  }

  JobClass job_class(const TaskClass& of) {
    JobClass made;
    made.seconds = of.seconds.value();
    if (of.kind == TaskKind::kTransfer) {
      const int from = graph_.rank(of.device);
      const int to = graph_.rank(of.receiver);
      if (from == to) return made;  // stays on its GPU: no way, only time
      made.kind = JobKind::kTransfer;
      made.latency = of.latency.value();
      made.route = job_route(from, to);
    } else if (of.kind == TaskKind::kCopyOut || of.kind == TaskKind::kCopyIn) {
      const bool out = of.kind == TaskKind::kCopyOut;
      const int rank = graph_.rank(of.device);
      made.kind = JobKind::kTransfer;
      made.route = out ? job_route(rank, kHostMemory) : job_route(kHostMemory, rank);
    } else if (gpus_are_hosts_ &&
               (of.kind == TaskKind::kCompute || of.kind == TaskKind::kOptimizer)) {
      made.kind = JobKind::kExecution;
      made.host = host_of_device_[of.device];
    }
    return made;
  }

  std::int32_t job_route(int from, int to) {
    const auto [known, added] =
        route_number_.emplace(std::pair(from, to), static_cast<std::int32_t>(routes_.size()));
    if (!added) return known->second;
    JobRoute made;
    made.from = hosts_.of(from);
    made.to = hosts_.of(to);
    made.first_link = static_cast<std::uint32_t>(route_links_.size());
    if (from == kHostMemory || to == kHostMemory) {
      const bool out = to == kHostMemory;
      made.bandwidth = cluster_.host.alone.value();
      made.copies = true;
      // Copies have engines of their own, which are no faster where messages make the rest of the
      // way wider.
      add_link(resource(out ? HostPart::kEngineOut : HostPart::kEngineIn, out ? from : to),
               made.bandwidth);
      add_port(out ? from : to, out);
      add_host_link(out ? from : to, out);
    } else {
      const Route way = route(cluster_, from, to);
      made.bandwidth = way.bandwidth.value();
      for (const int each : way.resources) add_link(each, made.bandwidth);
      if (way.over_cards && !host_link_of_rank_.empty()) {
        add_way_to_card(from, true, made.bandwidth);
        add_way_to_card(to, false, made.bandwidth);
      }
    }
    made.links = static_cast<std::uint32_t>(route_links_.size()) - made.first_link;
    routes_.push_back(made);
    return known->second;
  }

  // A resource is as wide as it says, or as the widest way over it.
  void add_link(int resource, double bandwidth) {
    const auto link = static_cast<std::uint32_t>(links_.of(resource));
    link_bandwidth_.resize(std::max<size_t>(link_bandwidth_.size(), link + 1), 0.0);
    link_bandwidth_[link] = std::max(link_bandwidth_[link], bandwidth);
    route_links_.push_back(link);
  }
  void add_port(int rank, bool out, double message = 0) {
    add_link(resource(out ? HostPart::kPortOut : HostPart::kPortIn, rank),
             std::max(message, cluster_.host.port.value()));
  }
  void add_host_link(int rank, bool out, double message = 0) {
    const int link = host_link_of_rank_.at(rank);
    const double one = cluster_.host.alone.value();
    add_link(resource(out ? HostPart::kLinkOut : HostPart::kLinkIn, link), std::max(message, one));
    if (cluster_.host.duplex >= 1) return;  // directions do not disturb each other
    add_link(resource(HostPart::kLink, link),
             std::max({message, one, 2 * cluster_.host.duplex * one}));
  }
  void add_way_to_card(int rank, bool out, double message) {
    if (cluster_.host.cards == CardWay::kApart) return;
    add_port(rank, out, message);
    if (cluster_.host.cards == CardWay::kHostLink) add_host_link(rank, out, message);
  }

  const TaskGraph& graph_;
  const Cluster& cluster_;
  bool gpus_are_hosts_;
  Numbering hosts_;
  Numbering links_;
  std::map<int, int> host_link_of_rank_;  // of a graph with copies
  std::map<std::pair<int, int>, std::int32_t> route_number_;
  std::vector<std::int32_t> host_of_device_;
  std::vector<JobClass> classes_;
  std::vector<JobRoute> routes_;
  std::vector<std::uint32_t> route_links_;
  std::vector<double> link_bandwidth_;
  std::vector<JobSpeedChange> speed_changes_;
};

class SimGridEngine final : public Engine {
 public:
  explicit SimGridEngine(SimGridOptions options) : options_(std::move(options)) {}

  [[nodiscard]] std::string_view name() const override { return "simgrid"; }

  [[nodiscard]] Timeline run(const TaskGraph& graph, const Cluster& cluster,
                             std::span<const double> seconds) const override {
    const std::span<const double> all[] = {seconds};
    return std::move(simulate(graph, cluster, all).front());
  }

  [[nodiscard]] std::vector<Timeline> run_all(
      const TaskGraph& graph, const Cluster& cluster,
      std::span<const std::vector<double>> seconds) const override {
    const std::vector<std::span<const double>> all(seconds.begin(), seconds.end());
    return all.empty() ? std::vector<Timeline>() : simulate(graph, cluster, all);
  }

 private:
  [[nodiscard]] bool counts_energy(const Cluster& cluster) const {
    return options_.gpu == GpuModel::kHost && cluster.idle_power && cluster.busy_power;
  }

  [[nodiscard]] std::vector<Timeline> simulate(
      const TaskGraph& graph, const Cluster& cluster,
      std::span<const std::span<const double>> seconds) const {
    check_durations(graph, seconds);
    const UsedCluster used(graph, cluster, options_);
    JobSettings settings;
    fill_settings(settings, cluster);
    std::vector<Timeline> timelines(seconds.size());
    std::vector<size_t> disturbed;
    for (size_t i = 0; i < seconds.size(); ++i) {
      if (!replay_suffices(settings, used, graph, cluster, seconds[i], timelines[i])) {
        disturbed.push_back(i);
      }
    }
    if (!disturbed.empty()) {
      serve(graph, used, settings, pick(seconds, disturbed),
            [&](size_t i, Timeline made) { timelines[disturbed[i]] = std::move(made); });
    }
    return timelines;
  }

  // True if nothing disturbs the run; its result is then `timeline`.
  [[nodiscard]] bool replay_suffices(const JobSettings& settings, const UsedCluster& used,
                                     const TaskGraph& graph, const Cluster& cluster,
                                     std::span<const double> seconds, Timeline& timeline) const {
    const bool shares = settings.message_share > 0 || settings.copy_share > 0;
    if (!options_.replay_undisturbed || shares || settings.energy || used.changes_speed()) {
      return false;
    }
    timeline = replay_->run(graph, cluster, seconds);
    return !anything_meets(used.ways(), timeline);
  }

  static std::vector<std::span<const double>> pick(std::span<const std::span<const double>> all,
                                                   const std::vector<size_t>& which) {
    std::vector<std::span<const double>> picked;
    picked.reserve(which.size());
    for (const size_t i : which) picked.push_back(all[i]);
    return picked;
  }

  // Runs by SimGrid; `take(run, timeline)` gets each.
  template <class Take>
  void serve(const TaskGraph& graph, const UsedCluster& used, const JobSettings& settings,
             std::span<const std::span<const double>> seconds, Take take) const {
    JobSizes sizes;
    used.add_sizes(sizes);
    sizes.tasks = graph.size();
    sizes.edges = graph.edges().size();
    sizes.runs = seconds.size();
    const bool given = std::ranges::any_of(seconds, [](auto each) { return !each.empty(); });
    sizes.seconds = given ? sizes.runs * sizes.tasks : 0;
    SharedJob shared(sizes);
    Job& job = shared.job();
    job.header->settings = settings;
    used.fill(job);
    std::ranges::copy(graph.class_of(), job.class_of.begin());
    std::ranges::copy(graph.row_starts(), job.row.begin());
    std::ranges::copy(graph.edges(), job.waits_for.begin());
    if (given) fill_seconds(job, graph, seconds);
    server_.serve(shared);
    check(job.header->setup);
    for (size_t i = 0; i < seconds.size(); ++i) {
      take(i, timeline(job, i, graph, used.host_of_device()));
    }
  }

  void fill_settings(JobSettings& settings, const Cluster& cluster) const {
    settings.processes = static_cast<std::uint32_t>(options_.processes);
    if (options_.gpu == GpuModel::kHost) {
      settings.message_share = cluster.message_share.value_or(0);
      settings.copy_share = cluster.copy_share.value_or(0);
    }
    settings.energy = counts_energy(cluster);
    if (!settings.energy) return;
    settings.idle_power = cluster.idle_power->value();
    settings.busy_power = cluster.busy_power->value();
  }

  static void check_durations(const TaskGraph& graph,
                              std::span<const std::span<const double>> seconds) {
    const auto is_time = [](double value) { return std::isfinite(value) && value >= 0; };
    for (const auto& run : seconds) {
      if (!run.empty() && run.size() != graph.size()) {
        throw LogicError(fmt::format("simgrid: durations of {} tasks for a graph of {}", run.size(),
                                     graph.size()));
      }
      const auto wrong = std::ranges::find_if_not(run, is_time);
      if (wrong == run.end()) continue;
      throw LogicError(fmt::format("simgrid: {} takes {} s",
                                   graph.name(static_cast<TaskId>(wrong - run.begin())), *wrong));
    }
  }

  static void fill_seconds(Job& job, const TaskGraph& graph,
                           std::span<const std::span<const double>> seconds) {
    const size_t tasks = graph.size();
    for (size_t run = 0; run < seconds.size(); ++run) {
      const std::span<double> to = job.seconds.subspan(run * tasks, tasks);
      if (!seconds[run].empty()) {
        std::ranges::copy(seconds[run], to.begin());
        continue;
      }
      for (TaskId i = 0; i < tasks; ++i) to[i] = graph.task_class(i).seconds.value();
    }
  }

  static void check(const JobRun& run) {
    if (run.state == JobState::kDone) return;
    if (run.state == JobState::kRefused) {
      throw InfeasibleError(fmt::format("engine: simgrid: {}", run.message));
    }
    throw LogicError(fmt::format("simgrid: {}", run.message));
  }

  [[nodiscard]] Timeline timeline(const Job& job, size_t run, const TaskGraph& graph,
                                  const std::vector<std::int32_t>& host_of_device) const {
    check(job.runs[run]);
    const size_t tasks = graph.size();
    const auto times = job.times.subspan(run * tasks, tasks);
    Timeline made;
    made.start.reserve(tasks);
    made.end.reserve(tasks);
    for (const JobTimes& each : times) {
      made.start.push_back(each.start);
      made.end.push_back(each.end);
    }
    check_finished(graph, made.end);
    made.shared_links = job.runs[run].shared_links;
    if (job.header->settings.energy) {
      const auto energy = job.energy.subspan(run * job.header->sizes.hosts);
      for (const std::int32_t host : host_of_device) {
        made.energy_joules.push_back(energy[host]);
      }
    }
    return made;
  }

  void check_finished(const TaskGraph& graph, std::span<const double> end) const {
    std::string first;
    size_t unfinished = 0;
    for (TaskId task = 0; task < end.size(); ++task) {
      if (!std::isnan(end[task])) continue;
      if (unfinished < 3) first += (unfinished == 0 ? "" : ", ") + graph.name(task);
      ++unfinished;
    }
    if (unfinished == 0) return;
    const bool stands_still = std::ranges::any_of(
        options_.speed_profile, [](const SpeedChange& change) { return change.factor == 0; });
    const std::string message =
        fmt::format("{} of {} tasks never end, first {}", unfinished, end.size(), first);
    if (stands_still) {
      throw InfeasibleError(message + ": the speed profile has a GPU stand still for good");
    }
    throw LogicError("simgrid: " + message);
  }

  SimGridOptions options_;
  std::unique_ptr<Engine> replay_ = make_replay_engine();
  mutable ServerProcess server_;  // what a run leaves in it is only that it has been started
};

}  // namespace

bool has_simgrid() {
  std::error_code ignored;
  return std::filesystem::exists(simgrid_module(), ignored);
}

std::unique_ptr<Engine> make_simgrid_engine(SimGridOptions options) {
  if (options.gpu == GpuModel::kTimer && !options.speed_profile.empty()) {
    throw LogicError("simgrid: a speed profile needs GPUs that are hosts");
  }
  if (options.processes < 1) throw LogicError("simgrid: fewer than one process");
  for (const SpeedChange& change : options.speed_profile) {
    if (!(change.factor >= 0) || !(change.at_seconds >= 0)) {
      throw LogicError("simgrid: a speed profile with a negative time or factor");
    }
  }
  if (!has_simgrid()) {
    throw InfeasibleError(
        "engine: simgrid: this pipesim was built without SimGrid (-DPIPESIM_SIMGRID=OFF), its only "
        "engine is replay");
  }
  return std::make_unique<SimGridEngine>(std::move(options));
}

}  // namespace pipesim
