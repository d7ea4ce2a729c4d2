#include "sim/report/workbench/workbench.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "models/cluster.h"
#include "sim/engine/engine.h"
#include "sim/execution/evaluate.h"
#include "sim/graph/build.h"
#include "sim/graph/critical_path.h"
#include "sim/planning/schedule.h"
#include "sim/scenario/scenario.h"
#include "tests/app/command.h"
#include "tests/pipeline/problems.h"
#include "tests/sanitized.h"

namespace pipesim::workbench_test {
namespace {

using Json = nlohmann::ordered_json;
using testing::Random;
using testing::RandomCase;

// A registered schedule's order of a random problem; nothing where it takes none of that shape.
std::optional<RandomCase> planned(Random& random) {
  const auto& all = schedules();
  const Schedule& schedule = *all[random.integer(0, static_cast<int>(all.size()) - 1)];
  if (schedule.offloads()) return std::nullopt;
  const Shape shape{.devices = random.integer(1, 6),
                    .chunks = random.integer(schedule.min_chunks, std::min(schedule.max_chunks, 4)),
                    .microbatches = random.integer(1, 12),
                    .splits = schedule.default_splits};
  Problem problem = testing::random_problem(
      random, shape, schedule.place(shape.devices, shape.chunks), random.coin());
  if (schedule.memory_limit && random.coin()) {
    problem.activation_limit =
        random.real(0.5, 1.5) * (shape.devices * problem.device_activation());
  }
  const Problem planning = for_planning(problem);
  if (schedule.refusal(planning)) return std::nullopt;
  Program program = schedule.plan(planning);
  if (program.copies() != nullptr || program.wrap_around() != WrapAround::kEvery) {
    return std::nullopt;
  }
  return RandomCase{std::move(problem), std::move(program)};
}

RandomCase any_case(Random& random) {
  if (random.coin()) return testing::random_case(random, random.coin());
  for (;;) {
    if (auto found = planned(random)) return std::move(*found);
  }
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

Json expected_of(const std::shared_ptr<const Program>& program, const Problem& problem) {
  const Evaluation evaluation = evaluate(*program, problem);
  const TaskGraph graph = build_task_graph(program, problem, BuildOptions{});
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
  Json devices = Json::array();
  for (const DeviceEvaluation& device : evaluation.devices) {
    devices.push_back({{"first_start", device.first_start.value()},
                       {"last_end", device.last_end.value()},
                       {"busy", device.busy.value()},
                       {"peak_activation", device.peak_activation.value()},
                       {"peak_in_flight", device.peak_in_flight}});
  }
  return {{"makespan", evaluation.makespan.value()},
          {"cost", evaluation.cost.value()},
          {"work", evaluation.work.value()},
          {"devices", devices},
          {"critical", critical},
          {"start", start},
          {"end", end}};
}

// The order as it came, with some passes moved, and what is to come of it: numbers, or the cycle
// for which it cannot run ("" where it is no program at all).
Json case_json(Random& random) {
  RandomCase made = any_case(random);
  Problem& problem = made.problem;
  // Blocks that hide little or nearly all of a pass.
  for (StageCost& stage : problem.stages)
    stage.overlapped = random.real(0.05, 1) * *stage.overlapped;
  if (random.coin()) {
    testing::set_factors(problem, testing::random_factors(random, problem.shape.units()));
  }
  PassLists lists;
  for (int device = 0; device < problem.shape.devices; ++device) {
    const auto passes = made.program.passes(device);
    lists.emplace_back(passes.begin(), passes.end());
  }
  const std::vector<OverlappedPair> pairs(made.program.pairs().begin(), made.program.pairs().end());
  move_some(random, lists);
  Json order = Json::array();
  for (int device = 0; device < problem.shape.devices; ++device) {
    std::string text;
    for (const Pass& pass : lists[device]) {
      text += (text.empty() ? "" : " ") + made.program.text(device, pass);
    }
    order.push_back(text);
  }
  Json expected;
  const auto& place = made.program.placement();
  if (Program::find_fault(problem.shape, place, lists, pairs)) {
    expected = {{"refused", ""}};
  } else {
    try {
      const auto program = std::make_shared<const Program>(problem.shape, place, lists, pairs);
      EXPECT_EQ(order_json(*program), order);
      expected = expected_of(program, problem);
    } catch (const InfeasibleError& error) {
      const std::string text = error.what();
      expected = {{"refused", text.substr(text.find("cycle: ") + 7)}};
    }
  }
  return {{"model", evaluated_with(problem)}, {"order", order}, {"expected", expected}};
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
  const testing::Outcome ran =
      shell("node '" + source + "/tests/report/workbench_cases.js' '" + source +
            "/sim/report/html/page/workbench/evaluate.js' '" + source +
            "/sim/report/html/page/workbench/edit.js' cases.json");
  ASSERT_EQ(ran.code, 0) << ran.output;
  const Json found = Json::parse(ran.output);
  EXPECT_EQ(found["differences"], Json::array()) << found["differences"].dump(1);
  EXPECT_EQ(found["cases"], count);
  EXPECT_GE(found["passes"], 30 * count);
  EXPECT_GE(found["refused"], count / 10);
  EXPECT_LE(found["refused"], count / 2);
  EXPECT_GE(found["unequal"], count / 3);
  EXPECT_GE(found["joined"], count / 2);
}

}  // namespace
}  // namespace pipesim::workbench_test
