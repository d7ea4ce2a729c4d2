#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "models/cluster.h"
#include "sim/engine/engine.h"
#include "sim/execution/evaluate.h"
#include "sim/execution/published_offload.h"
#include "sim/execution/walk.h"
#include "sim/execution/with_offload.h"
#include "sim/graph/build.h"
#include "sim/graph/critical_path.h"
#include "sim/planning/schedule.h"
#include "sim/report/workbench/lowered.h"
#include "sim/scenario/scenario.h"
#include "tests/app/command.h"
#include "tests/pipeline/problems.h"
#include "tests/sanitized.h"

namespace pipesim::workbench_test {
namespace {

using Json = nlohmann::ordered_json;
using testing::Random;
using testing::RandomCase;

constexpr std::array kSharded{VocabularyPlacement::kVocab1, VocabularyPlacement::kVocab2,
                              VocabularyPlacement::kInterlaced};

// Copies over links of one to three devices, now and then faster alone and of a part.
void draw_copies(Random& random, Problem& problem) {
  for (StageCost& stage : problem.stages) {
    stage.copy_out = Seconds(random.real(0.1, 8));
    stage.copy_in = Seconds(random.real(0.1, 8));
  }
  problem.devices_per_host_link = random.integer(1, 3);
  problem.copy_alone_factor = random.coin() ? 0.5 : 0.9;
  problem.offload_ratio = random.coin() ? 1 : 0.7;
}

void draw_vocabulary(Random& random, Problem& problem) {
  problem.vocabulary = kSharded[random.integer(0, 2)];
  const auto seconds = [&random] { return Seconds(random.real(0, 9)); };
  for (int d = 0; d < problem.shape.devices; ++d) {
    problem.vocabulary_costs.push_back(
        {seconds(), seconds(), seconds(), seconds(), Bytes(random.integer(0, 5))});
  }
  for (Seconds& each : problem.barriers) each = seconds();
  problem.barriers[Barrier::kRendezvous] = Seconds(0);
}

// The schedule's order of a random problem; nothing where it takes none of that shape.
std::optional<RandomCase> planned(Random& random, const Schedule& schedule) {
  const Shape shape{.devices = random.integer(1, 6),
                    .chunks = random.integer(schedule.min_chunks, std::min(schedule.max_chunks, 4)),
                    .microbatches = random.integer(1, 12),
                    .splits = schedule.default_splits};
  Problem problem = testing::random_problem(
      random, shape, schedule.place(shape.devices, shape.chunks), random.coin());
  draw_copies(random, problem);
  if (!schedule.vocabulary.empty() && random.integer(0, 3) > 0) draw_vocabulary(random, problem);
  if (schedule.name == "interleaved-1f1b" && random.coin()) {
    problem.options["zero_bubble_table5_dependencies"] = true;
  }
  if (schedule.memory_limit && random.coin()) {
    problem.activation_limit =
        random.real(0.5, 1.5) * (shape.devices * problem.device_activation());
  }
  const Problem planning = for_planning(problem);
  if (schedule.refusal(planning)) return std::nullopt;
  try {
    return RandomCase{std::move(problem), schedule.plan(planning)};
  } catch (const InfeasibleError&) {
    return std::nullopt;  // PipeOffload's rules find no slot for a copy
  }
}

// A registered schedule's order, or any; some copy to the host.
RandomCase any_case(Random& random) {
  std::optional<RandomCase> found;
  const auto& all = schedules();
  const int kind = random.integer(0, 9);
  if (kind < 4) {
    found = testing::random_case(random, random.coin());
    draw_copies(random, found->problem);
  }
  while (!found) {
    const int number = random.integer(0, static_cast<int>(all.size()) - 1);
    constexpr std::array kNamed{"1f1b", "v-half", "interleaved-1f1b"};
    found = planned(random, kind < 7 ? *find_schedule(kNamed[kind - 4]) : *all[number]);
  }
  if (found->program.copies() == nullptr && random.integer(0, 2) == 0) {
    found->program = with_offload(found->program, found->problem, found->problem.shape.chunks);
  }
  return std::move(*found);
}

// None, or up to three passes of the lists moved, by one place or to any other.
void move_some(Random& random, PassLists& lists) {
  for (int moves = random.coin() ? 0 : random.integer(1, 3); moves > 0; --moves) {
    auto& list = lists[random.integer(0, static_cast<int>(lists.size()) - 1)];
    const int last = static_cast<int>(list.size()) - 1;
    const int from = random.integer(0, last);
    const int to = random.coin() ? std::min(from + 1, last) : random.integer(0, last);
    const Pass moved = list[from];
    list.erase(list.begin() + from);
    list.insert(list.begin() + to, moved);
  }
}

// The same program with its passes in another order. Copies stay with the passes beside which they
// are planned.
Program reordered(const Program& program, const PassLists& lists) {
  const auto where = [&](int device, std::uint32_t position) {
    const Pass& pass = program.passes(device)[position];
    return static_cast<std::uint32_t>(std::ranges::find(lists[device], pass) -
                                      lists[device].begin());
  };
  Program other(program.shape(), program.placement(), lists,
                {program.pairs().begin(), program.pairs().end()}, program.wrap_around(),
                program.vocabulary());
  if (program.copies() == nullptr) return other;
  CopyPlan plan = *program.copies();
  for (LinkCopies& link : plan.links) {
    for (Copy& copy : link.in) {
      if (copy.after == Copy::kAnyTime) continue;
      copy.after = where(static_cast<int>(copy.device), copy.after);
    }
  }
  for (size_t device = 0; device < plan.gates.size(); ++device) {
    for (Gate& gate : plan.gates[device]) {
      gate.position = where(static_cast<int>(device), gate.position);
    }
    std::ranges::sort(plan.gates[device], {}, &Gate::position);
  }
  return other.with_copies(std::move(plan));
}

// Devices slower or faster by powers of two, which round nothing; links that differ by direction.
OnRanks disturbed(Random& random, const Problem& problem) {
  OnRanks on;
  on.ranks.resize(problem.shape.devices);
  std::iota(on.ranks.begin(), on.ranks.end(), 0);
  if (random.coin()) return on;
  for (int device = 0; device < problem.shape.devices; ++device) {
    on.options.slowdown_of_rank.push_back(random.coin() ? 1 : random.coin() ? 2 : 0.5);
  }
  return on;
}

void degrade_links(Random& random, const Problem& problem, OnRanks& on) {
  const double down = random.real(1, 3);
  const double up = random.real(1, 3);
  on.options.message = [&problem, down, up](int from, int to, int, int, std::uint32_t unit) {
    const Seconds seconds = (from < to ? down : up) * problem.transfer(from, to, unit);
    return MessageCost{seconds, Seconds(0)};
  };
}

// Costs as slow devices have them.
Problem slowed(Problem problem, const OnRanks& on) {
  if (on.options.slowdown_of_rank.empty()) return problem;
  const Placement& place = problem.placement;
  const auto slow = [&](std::vector<StageCost>& stages) {
    for (int vs = 0; vs < place.virtual_stages(); ++vs) {
      const double factor = on.options.slowdown_of_rank[place.device(vs)];
      StageCost& stage = stages[vs];
      for (Seconds* each : {&stage.forward, &stage.backward_input, &stage.backward_weight}) {
        *each = factor * *each;
      }
      if (stage.overlapped) stage.overlapped = factor * *stage.overlapped;
      if (stage.recompute) stage.recompute = factor * *stage.recompute;
    }
  };
  slow(problem.stages);
  for (UnitKind& kind : problem.kinds) slow(kind.stages);
  for (size_t d = 0; d < problem.vocabulary_costs.size(); ++d) {
    const double factor = on.options.slowdown_of_rank[d];
    VocabularyCost& cost = problem.vocabulary_costs[d];
    for (Seconds* each :
         {&cost.output_forward, &cost.output_backward, &cost.input_forward, &cost.input_backward}) {
      *each = factor * *each;
    }
  }
  return problem;
}

Json devices_json(const Evaluation& evaluation) {
  Json devices = Json::array();
  for (const DeviceEvaluation& device : evaluation.devices) {
    devices.push_back({{"first_start", device.first_start.value()},
                       {"last_end", device.last_end.value()},
                       {"busy", device.busy.value()},
                       {"peak_activation", device.peak_activation.value()},
                       {"peak_in_flight", device.peak_in_flight}});
  }
  return devices;
}

// Numbers are those of `evaluate`, left out where links differ by direction, which it does not
// know.
Json expected_of(const std::shared_ptr<const Program>& program, const Problem& problem,
                 const OnRanks& on, bool ordered) {
  const TaskGraph graph = build_task_graph(program, problem, {on.ranks}, on.options);
  const Timeline timeline = make_replay_engine()->run(graph, Cluster{}, {});
  const auto lists = std::vector<Json>(program->shape().devices, Json::array());
  std::vector<Json> start = lists;
  std::vector<Json> end = lists;
  std::vector<size_t> place(graph.size());
  for (TaskId task = 0; task < graph.size(); ++task) {
    const TaskClass& of = graph.task_class(task);
    if (of.kind != TaskKind::kCompute) continue;
    place[task] = start[of.device].size();
    start[of.device].push_back(timeline.start[task]);
    end[of.device].push_back(timeline.end[task]);
  }
  Json critical = Json::array();
  for (const TaskId task : critical_path(graph, timeline)) {
    const TaskClass& of = graph.task_class(task);
    if (of.kind == TaskKind::kCompute) critical.push_back({of.device, place[task]});
  }
  Json expected{{"critical", critical}, {"start", start}, {"end", end}};
  if (on.options.message) return expected;
  Evaluation evaluation = evaluate(*program, slowed(problem, on));
  if (ordered) {
    const auto peaks = peaks_by_order(*program, problem);
    for (size_t d = 0; d < peaks.size(); ++d) evaluation.devices[d].peak_activation = peaks[d];
  }
  expected["devices"] = devices_json(evaluation);
  expected["makespan"] = evaluation.makespan.value();
  expected["cost"] = evaluation.cost.value();
  expected["work"] = evaluation.work.value();
  return expected;
}

// How the page says it: a cycle, or the pass that waits for a copy.
Json refused(const DeadlockError& error, const Program& program) {
  const std::string text = error.first(program, {}).text;
  const size_t waits = text.find(" waits for its turn, or a copy");
  if (waits == std::string::npos) return {{"refused", text}};
  return {{"refused", text.substr(0, waits) + " needs the copy "}, {"begins", true}};
}

Json texts_of(const Program& program, const PassLists& lists) {
  Json order = Json::array();
  for (int device = 0; device < program.shape().devices; ++device) {
    std::string text;
    for (const Pass& pass : lists[device]) {
      text += (text.empty() ? "" : " ") + program.text(device, pass);
    }
    order.push_back(text);
  }
  return order;
}

// The order as it came, with some passes moved, and what is to come of it: numbers, or the cycle
// for which it cannot run ("" where it is no program at all).
Json case_json(Random& random) {
  RandomCase made = any_case(random);
  Problem& problem = made.problem;
  const Program& given = made.program;
  // Blocks that hide little or nearly all of a pass.
  for (StageCost& stage : problem.stages)
    stage.overlapped = random.real(0.05, 1) * *stage.overlapped;
  if (random.coin()) {
    testing::set_factors(problem, testing::random_factors(random, problem.shape.units()));
  }
  OnRanks on = disturbed(random, problem);
  if (random.integer(0, 9) == 0) degrade_links(random, problem, on);
  const bool ordered = given.copies() != nullptr && random.coin();
  PassLists lists = given.lists();
  move_some(random, lists);
  const Json order = texts_of(given, lists);
  Json expected;
  if (Program::find_fault(problem.shape, given.placement(), lists, given.pairs(),
                          given.vocabulary())) {
    expected = {{"refused", ""}};
  } else {
    const auto program = std::make_shared<const Program>(reordered(given, lists));
    EXPECT_EQ(order_json(*program), order);
    try {
      expected = expected_of(program, problem, on, ordered);
    } catch (const DeadlockError& error) {
      expected = refused(error, *program);
    }
  }
  Json model = evaluated_with(given, problem, on);
  model["copies"] = copies_json(given, problem, ordered);
  return {{"model", model}, {"order", order}, {"expected", expected}};
}

class WorkbenchEvaluator : public testing::Command {};

TEST_F(WorkbenchEvaluator, EqualsOursOnAThousandOrdersToTheLastBit) {
  if (shell("command -v node").code != 0) {
    GTEST_SKIP() << "no node on this machine; tools/install_dependencies full installs it";
  }
  Random random(21);
  Json cases = Json::array();
  const int count = testing::rounds(1000);
  for (int i = 0; i < count; ++i) cases.push_back(case_json(random));
  write("cases.json", cases.dump());
  const std::string source = PIPESIM_SOURCE_DIR;
  const testing::Outcome ran = shell("node '" + source + "/tests/report/workbench_cases.js' '" +
                                     source + "/sim/report/html/page/workbench' cases.json");
  ASSERT_EQ(ran.code, 0) << ran.output;
  const Json found = Json::parse(ran.output);
  EXPECT_EQ(found["differences"], Json::array()) << found["differences"].dump(1);
  EXPECT_EQ(found["cases"], count);
  EXPECT_GE(found["passes"], 30 * count);
  EXPECT_GE(found["refused"], count / 10);
  EXPECT_LE(found["refused"], count / 2);
  EXPECT_GE(found["unequal"], count / 3);
  EXPECT_GE(found["joined"], count / 2);
  EXPECT_GE(found["copying"], count / 10);
  EXPECT_GE(found["sharded"], count / 15);
  EXPECT_GE(found["wrapping"], count / 100);
  EXPECT_GE(found["slowed"], count / 8);
  EXPECT_GE(found["stuck"], count / 100);
}

}  // namespace
}  // namespace pipesim::workbench_test
