// Where no two messages or copies share a resource, SimGrid and replay are the same function of a
// graph.
//
// Cases are drawn at random; the replay timeline decides which of them share: a flow occupies the
// resources of its route from the end of its latency to its end. A copy occupies its GPU's port and
// the link of its switch, in its direction and, where directions disturb each other, in both.
#include <algorithm>
#include <boost/random/mersenne_twister.hpp>
#include <boost/random/uniform_01.hpp>
#include <boost/random/uniform_int_distribution.hpp>
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/cluster.h"
#include "sim/core/error.h"
#include "sim/engine/simgrid.h"
#include "sim/execution/with_offload.h"
#include "sim/graph/build.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::engines_agree_test {
namespace {

constexpr double kAgreement = 1e-11;
constexpr int kCases = 2000;
constexpr std::uint64_t kMostSeeds = 40000;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : generator_(seed) {}

  int whole(int low, int high) {
    return boost::random::uniform_int_distribution<int>(low, high)(generator_);
  }
  double between(double low, double high) { return low + (high - low) * uniform_(generator_); }
  // Evenly over orders of magnitude.
  double scale(double low, double high) { return low * std::pow(high / low, between(0, 1)); }
  bool chance(double of) { return between(0, 1) < of; }
  template <class T>
  const T& one_of(const std::vector<T>& choices) {
    return choices[whole(0, static_cast<int>(choices.size()) - 1)];
  }

 private:
  boost::random::mt19937_64 generator_;
  boost::random::uniform_01<double> uniform_;
};

struct Case {
  std::string description;
  Cluster cluster;
  std::unique_ptr<TaskGraph> graph;
  std::vector<double> seconds;  // by task, or empty
};

Problem draw_problem(Draw& draw, const Schedule& schedule) {
  Problem problem;
  const int devices = draw.whole(2, 8);
  problem.shape = {devices, schedule.default_chunks, devices * draw.whole(1, 3), 1};
  problem.placement = schedule.place(devices, problem.shape.chunks);
  const double unit = draw.scale(1e-4, 10);
  StageCost equal;
  for (int vs = 0; vs < problem.placement.virtual_stages(); ++vs) {
    StageCost cost;
    cost.forward = Seconds(unit * draw.between(0.5, 1.5));
    cost.backward_input = Seconds(unit * draw.between(0.5, 1.5));
    cost.backward_weight = Seconds(unit * draw.between(0.3, 1.0));
    cost.overlapped = cost.forward + cost.backward_input + cost.backward_weight;
    cost.activation = Bytes(1);
    if (vs == 0) equal = cost;
    problem.stages.push_back(cost);
  }
  // Equal stages make many things happen at the very same time.
  if (draw.chance(0.3)) std::ranges::fill(problem.stages, equal);
  return problem;
}

// Every microbatch costs something else.
void set_random_factors(Problem& problem, std::uint64_t seed) {
  Draw draw(seed + 1);
  std::vector<double> factors(static_cast<size_t>(problem.shape.units()));
  for (double& factor : factors) factor = draw.between(0.5, 2);
  testing::set_factors(problem, factors);
}

// Copies of any length, most of them short, so that some cases have none that meet.
void draw_copies(Draw& draw, Problem& problem, Cluster& cluster) {
  const double share = draw.scale(1e-4, 0.5);
  for (StageCost& cost : problem.stages) {
    cost.copy_out = draw.between(0.5, 1) * share * cost.forward;
    cost.copy_in = draw.between(0.5, 1) * share * cost.forward;
  }
  problem.devices_per_host_link = draw.whole(1, 3);
  cluster.host.duplex = draw.one_of<double>({1, 1, 0.6, 0.8});
  cluster.host.alone = BytesPerSecond(draw.scale(1e9, 1e11));
  cluster.host.port = draw.one_of<double>({1, 2}) * cluster.host.alone;
  cluster.host.cards = draw.one_of<CardWay>({CardWay::kApart, CardWay::kPort, CardWay::kHostLink});
}

Cluster draw_cluster(Draw& draw) {
  Cluster cluster;
  cluster.gpus_per_node = draw.one_of<int>({1, 1, 2, 4, 8});
  cluster.nics_per_node = draw.chance(0.5) ? cluster.gpus_per_node : 1;
  cluster.link_bandwidth = BytesPerSecond(draw.scale(1e10, 1e12));
  cluster.nic_bandwidth = BytesPerSecond(draw.scale(1e9, 1e11));
  if (draw.chance(0.7)) cluster.link_latency = Seconds(draw.scale(1e-7, 1e-4));
  if (draw.chance(0.7)) cluster.nic_latency = Seconds(draw.scale(1e-7, 1e-4));
  return cluster;
}

BuildOptions draw_build_options(Draw& draw, const Cluster& cluster, double unit) {
  BuildOptions options;
  options.iterations = draw.whole(1, 2);
  options.sync = draw.one_of<OptimizerSync>(
      {OptimizerSync::kNone, OptimizerSync::kAllReduce, OptimizerSync::kPostValidation});
  options.collective = Seconds(unit * draw.between(0, 0.2));
  options.optimizer = Seconds(unit * draw.between(0, 0.2));
  // A message takes this share of a pass over a card; some are empty.
  const double share = draw.chance(0.1) ? 0 : draw.scale(1e-4, 0.1);
  const Bytes size = Seconds(share * unit) * cluster.nic_bandwidth;
  options.message = [&cluster, size](int, int, int from, int to, std::uint32_t) {
    return MessageCost{message_seconds(cluster, from, to, size), route(cluster, from, to).latency};
  };
  return options;
}

Case draw_case(std::uint64_t seed) {
  Draw draw(seed);
  Case made;
  const Schedule& schedule = *draw.one_of(schedules());
  Problem problem = draw_problem(draw, schedule);
  made.cluster = draw_cluster(draw);
  const bool copies = draw.chance(0.4);
  if (copies) draw_copies(draw, problem, made.cluster);
  if (schedule.refusal(problem)) return made;
  std::shared_ptr<Program> program;
  try {
    program = std::make_shared<Program>(schedule.plan(problem));
  } catch (const InfeasibleError&) {
    return made;  // PipeOffload's rules find no slot for a copy
  }
  const bool unequal = seed % 3 == 0;
  if (unequal) set_random_factors(problem, seed);
  if (copies && program->copies() == nullptr) {
    program = std::make_shared<Program>(with_offload(*program, problem, problem.shape.chunks));
  }
  const int pipelines = draw.chance(0.2) ? 2 : 1;
  const bool side_by_side = draw.chance(0.5);
  std::vector<std::vector<int>> ranks(pipelines);
  for (int i = 0; i < pipelines; ++i) {
    for (int device = 0; device < problem.shape.devices; ++device) {
      ranks[i].push_back(side_by_side ? device * pipelines + i
                                      : i * problem.shape.devices + device);
    }
  }
  BuildOptions options = draw_build_options(draw, made.cluster, problem.stage(0).forward.value());
  if (unequal) {
    options.message = [&problem, equal = options.message](int from, int to, int rank_from,
                                                          int rank_to, std::uint32_t unit) {
      const MessageCost cost = equal(from, to, rank_from, rank_to, unit);
      return MessageCost{cost.latency + problem.size(unit) * (cost.seconds - cost.latency),
                         cost.latency};
    };
  }
  if (copies) {
    options.contending_copies = made.cluster.host.duplex;
  } else if (draw.chance(0.3)) {
    options.blocking = schedule.calls;
  }
  made.graph = std::make_unique<TaskGraph>(build_task_graph(program, problem, ranks, options));
  if (draw.chance(0.3)) {
    for (TaskId task = 0; task < made.graph->size(); ++task) {
      const TaskClass& of = made.graph->task_class(task);
      const double factor = of.kind == TaskKind::kCompute ? draw.between(0.8, 1.2) : 1.0;
      made.seconds.push_back(of.seconds.value() * factor);
    }
  }
  made.description = fmt::format(
      "seed {}: {} p={} v={} m={}{}, {} pipelines, {} GPUs and {} cards per node{}", seed,
      schedule.name, problem.shape.devices, problem.shape.chunks, problem.shape.microbatches,
      unequal ? " unequal" : "", pipelines, made.cluster.gpus_per_node, made.cluster.nics_per_node,
      copies ? fmt::format(", copies with {} devices per link", problem.devices_per_host_link)
             : "");
  return made;
}

// A resource of a flow: one of models/cluster.h, or a part of the way to the host.
using Resource = std::pair<std::string, int>;

// A device's way to the host: its port, and the link of its switch, in one direction.
std::vector<Resource> way_to_host(const Case& of, std::uint32_t device, bool out, bool link) {
  const TaskGraph& graph = *of.graph;
  const PipelineInstance& pipeline = graph.pipelines().front();
  const CopyPlan& plan = *pipeline.program->copies();
  const auto devices = static_cast<std::uint32_t>(pipeline.rank_of_device.size());
  const int number =
      static_cast<int>(device / devices * plan.links.size() + plan.link_of(device % devices));
  std::vector<Resource> way{{out ? "port out" : "port in", graph.rank(device)}};
  if (!link) return way;
  way.emplace_back(out ? "link out" : "link in", number);
  if (of.cluster.host.duplex < 1) way.emplace_back("link", number);
  return way;
}

std::vector<Resource> way_of(const Case& of, const TaskClass& flow) {
  if (flow.kind != TaskKind::kTransfer) {
    return way_to_host(of, flow.device, flow.kind == TaskKind::kCopyOut, true);
  }
  const Route taken = route(of.cluster, of.graph->rank(flow.device), of.graph->rank(flow.receiver));
  std::vector<Resource> way;
  for (const int resource : taken.resources) way.emplace_back("message", resource);
  const CardWay cards = of.cluster.host.cards;
  const bool copies = of.graph->pipelines().front().program->copies() != nullptr;
  if (!taken.over_cards || !copies || cards == CardWay::kApart) return way;
  for (const bool out : {true, false}) {
    const std::uint32_t device = out ? flow.device : flow.receiver;
    const auto more = way_to_host(of, device, out, cards == CardWay::kHostLink);
    way.insert(way.end(), more.begin(), more.end());
  }
  return way;
}

bool flows(const TaskClass& of) {
  const bool moves = of.kind == TaskKind::kTransfer || of.kind == TaskKind::kCopyOut ||
                     of.kind == TaskKind::kCopyIn;
  return moves && of.seconds > of.latency;
}

enum class Sharing { kNone, kSome, kCannotTell };

// From the longest overlap of two flows on one resource, relative to when it ends. Between "the
// same instant but for rounding" and "certainly longer" the engine may see it either way.
Sharing sharing(const Case& of, const Timeline& timeline) {
  struct Flow {
    double begin;
    double end;
  };
  std::map<Resource, std::vector<Flow>> on_resource;
  for (TaskId task = 0; task < of.graph->size(); ++task) {
    const TaskClass& flow = of.graph->task_class(task);
    if (!flows(flow)) continue;
    for (const Resource& resource : way_of(of, flow)) {
      on_resource[resource].push_back(
          {timeline.start[task] + flow.latency.value(), timeline.end[task]});
    }
  }
  double longest = 0;
  for (auto& [resource, on] : on_resource) {
    std::ranges::sort(on, {}, &Flow::begin);
    double last_end = 0;
    for (const Flow& flow : on) {
      const double until = std::min(last_end, flow.end);
      if (until > flow.begin) longest = std::max(longest, (until - flow.begin) / until);
      last_end = std::max(last_end, flow.end);
    }
  }
  if (longest < 1e-13) return Sharing::kNone;
  return longest > 1e-10 ? Sharing::kSome : Sharing::kCannotTell;
}

double difference(double a, double b) {
  return a == b ? 0 : std::abs(a - b) / std::max(std::abs(a), std::abs(b));
}

// The worst relative difference of any task's start or end.
double difference(const Timeline& a, const Timeline& b) {
  double worst = 0;
  for (size_t i = 0; i < a.start.size(); ++i) {
    worst = std::max({worst, difference(a.start[i], b.start[i]), difference(a.end[i], b.end[i])});
  }
  return worst;
}

bool nowhere_earlier(const Timeline& timeline, const Timeline& than) {
  for (size_t i = 0; i < timeline.end.size(); ++i) {
    if (timeline.end[i] < than.end[i] * (1 - kAgreement)) return false;
  }
  return true;
}

TEST(Engines, AgreeOnEveryTaskWhereNoTwoMessagesOrCopiesShareAResource) {
  const auto replay = make_replay_engine();
  // For each kind of GPU: SimGrid itself, and the engine that replays what nothing meets in.
  struct Ways {
    std::unique_ptr<Engine> simgrid;
    std::unique_ptr<Engine> usual;
  };
  std::vector<Ways> engines;
  for (const GpuModel gpu : {GpuModel::kTimer, GpuModel::kHost}) {
    engines.push_back({make_simgrid_engine({.gpu = gpu, .replay_undisturbed = false}),
                       make_simgrid_engine({.gpu = gpu})});
  }
  int alone = 0;
  int alone_with_copies = 0;
  int shared = 0;
  for (std::uint64_t seed = 1; alone < kCases && seed < kMostSeeds; ++seed) {
    const Case drawn = draw_case(seed);
    if (!drawn.graph) continue;
    SCOPED_TRACE(drawn.description);
    const Timeline expected = replay->run(*drawn.graph, drawn.cluster, drawn.seconds);
    const Sharing expected_sharing = sharing(drawn, expected);
    if (expected_sharing == Sharing::kCannotTell) continue;
    // Every case that shares tests the same few lines: one in eight is plenty.
    if (expected_sharing == Sharing::kSome && ++shared % 8 != 0) continue;
    if (expected_sharing == Sharing::kNone) ++alone;
    const auto is_copy = [](const TaskClass& of) { return of.kind == TaskKind::kCopyOut; };
    if (expected_sharing == Sharing::kNone &&
        std::ranges::any_of(drawn.graph->classes(), is_copy)) {
      ++alone_with_copies;
    }
    for (const auto& [simgrid, usual] : engines) {
      const Timeline timeline = simgrid->run(*drawn.graph, drawn.cluster, drawn.seconds);
      const Timeline same = usual->run(*drawn.graph, drawn.cluster, drawn.seconds);
      ASSERT_EQ(same.start, timeline.start);
      ASSERT_EQ(same.end, timeline.end);
      ASSERT_EQ(same.shared_links, timeline.shared_links);
      ASSERT_EQ(timeline.shared_links, expected_sharing == Sharing::kSome);
      if (expected_sharing == Sharing::kNone) {
        ASSERT_LE(difference(timeline, expected), kAgreement);
      } else {
        ASSERT_TRUE(nowhere_earlier(timeline, expected));
      }
    }
  }
  EXPECT_GE(alone, kCases);
  EXPECT_GE(alone_with_copies, 100);
  EXPECT_GE(shared, 100);
  RecordProperty("cases", alone);
  RecordProperty("cases_that_share", shared / 8);
}

}  // namespace
}  // namespace pipesim::engines_agree_test
