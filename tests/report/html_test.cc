#include "sim/report/html/html.h"

#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/case/simulate.h"
#include "sim/graph/critical_path.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "sim/read/sweep_text.h"
#include "sim/report/html/timeline.h"

namespace pipesim::html_test {
namespace {

using nlohmann::json;

const std::string kPageScenario =
    "schedule: zb-h1\nparallel: {pipeline_model_parallel_size: 4}\nbatch: {num_microbatches: 6}\n"
    "cost: {kind: given, forward: 1.37 ms, backward_input: 1.21 ms, backward_weight: 0.77 ms, "
    "transfer: 0.11 ms}\nmemory: {kind: given, activation: 3 GiB, weight_stash: 1 GiB}\n";

template <class T>
std::vector<T> words(const std::string& text) {
  static const std::string kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string raw;
  unsigned bits = 0;
  int held = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6U | static_cast<unsigned>(kLetters.find(c));
    held += 6;
    if (held < 8) continue;
    held -= 8;
    raw += static_cast<char>((bits >> static_cast<unsigned>(held)) & 255U);
  }
  std::vector<T> values(raw.size() / sizeof(T));
  std::memcpy(values.data(), raw.data(), values.size() * sizeof(T));
  return values;
}

TEST(HtmlTimeline, HoldsEveryPassWithItsTimesToOnePartIn2To32) {
  const Scenario scenario = read_scenario(YamlSource("s.yaml", kPageScenario));
  const Result simulation = simulate(prepare_first(scenario));
  const json timeline = timeline_json(simulation, true);
  const auto start = words<std::uint32_t>(timeline["start"]);
  const auto length = words<std::uint32_t>(timeline["length"]);
  const auto microbatch = words<std::uint32_t>(timeline["microbatch"]);
  const auto of_class = words<std::uint32_t>(timeline["class"]);
  ASSERT_EQ(start.size(), passes_of_iteration(simulation));
  EXPECT_EQ(timeline["first"], (json{0, 18, 36, 54, 72}));
  const double seconds = timeline["seconds"];
  EXPECT_DOUBLE_EQ(seconds, simulation.report.makespan.value());
  const TaskGraph& graph = *simulation.graph;
  std::vector<size_t> next{0, 18, 36, 54};
  for (TaskId task = 0; task < graph.size(); ++task) {
    const TaskClass& of = graph.task_class(task);
    if (of.kind != TaskKind::kCompute) continue;
    const size_t pass = next[of.device]++;
    EXPECT_NEAR(start[pass] / 4294967295.0 * seconds, simulation.timeline.start[task], 1e-11);
    EXPECT_NEAR((start[pass] + length[pass]) / 4294967295.0 * seconds,
                simulation.timeline.end[task], 1e-11);
    EXPECT_EQ(static_cast<int>(microbatch[pass]), graph.microbatch(task));
    const json& part = timeline["classes"][of_class[pass]][0];
    EXPECT_EQ(part["kind"], to_text(of.pass));
    EXPECT_EQ(part["stage"], of.device);
  }
  size_t on_path = 0;
  for (const TaskId task : critical_path(graph, simulation.timeline)) {
    on_path += graph.task_class(task).kind == TaskKind::kCompute ? 1 : 0;
  }
  EXPECT_EQ(words<std::uint32_t>(timeline["critical"]).size(), on_path);
  const auto level = words<float>(timeline["memory"]["bytes"]);
  EXPECT_EQ(*std::ranges::max_element(level), simulation.report.peak_activation.value());
  EXPECT_EQ(level.back(), 0);
}

// Where model and machine are known, an iteration ends with collectives and the optimizer's step.
TEST(HtmlTimeline, HoldsWhatRunsBesideThePasses) {
  const Scenario scenario = read_scenario(YamlSource("s.yaml", R"(
schedule: 1f1b
parallel: {pipeline_model_parallel_size: 3}
batch: {num_microbatches: 4}
cost: {kind: given, forward: 2 ms, backward_input: 2 ms, backward_weight: 1 ms, transfer: 0.5 ms,
       optimizer: 1.5 ms, collective: 0.75 ms}
optimizer: {sync: all_reduce}
)"));
  const Result simulation = simulate(prepare_first(scenario));
  const json timeline = timeline_json(simulation, false);
  const json& beside = timeline["beside"];
  const auto start = words<std::uint32_t>(beside["start"]);
  const auto length = words<std::uint32_t>(beside["length"]);
  const auto of_class = words<std::uint32_t>(beside["class"]);
  const double seconds = timeline["seconds"];
  std::map<std::string, int> kinds;
  for (size_t i = 0; i < start.size(); ++i) {
    const json& each = beside["classes"][of_class[i]];
    ++kinds[each["kind"]];
    const double wanted = each["kind"] == "message" ? 0.5e-3 : 0.75e-3;
    EXPECT_NEAR(length[i] / 4294967295.0 * seconds, wanted, 1e-9);
  }
  // Forward and backward over two borders, and the collective on each device.
  EXPECT_EQ(kinds, (std::map<std::string, int>{{"message", 2 * 2 * 4}, {"collective", 3}}));
  EXPECT_EQ(beside["first"], (json{0, 5, 14, 19}));
  const auto pass_class = words<std::uint32_t>(timeline["class"]);
  const auto pass_length = words<std::uint32_t>(timeline["length"]);
  int steps = 0;
  for (size_t i = 0; i < pass_class.size(); ++i) {
    if (timeline["classes"][pass_class[i]][0]["kind"] != "optimizer") continue;
    ++steps;
    EXPECT_NEAR(pass_length[i] / 4294967295.0 * seconds, 1.5e-3, 1e-9);
  }
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(pass_class.size(), passes_of_iteration(simulation) + 3);
}

TEST(SweepText, IsTheScenarioAsItWasWrittenWithoutItsSweep) {
  const SweepText read = read_sweep_text("sweep.yaml",
                                         "# top\nschedule:\n  - 1f1b\n  - {name: zb, memory_limit: "
                                         "1.5}\n\nsweep:  # all\n  grid:\n\n    a.b: [1, 2]\n"
                                         "# inside\n  zip: {c: [1]}\n# of costs\ncost:\n  kind: "
                                         "measured\n");
  EXPECT_EQ(read.scenario,
            "# top\nschedule:\n  - 1f1b\n  - {name: zb, memory_limit: 1.5}\n\n# of costs\ncost:\n  "
            "kind: measured\n");
  EXPECT_EQ(read.cost, "measured");
  ASSERT_EQ(read.schedules.size(), 2U);
  EXPECT_EQ(read.schedules[0], (std::pair<std::string, std::string>("1f1b", "1f1b")));
  EXPECT_EQ(read.schedules[1].first, "zb");
  EXPECT_EQ(read.schedules[1].second, "{memory_limit: 1.5, name: zb}");
  EXPECT_EQ(read_sweep_text("s.yaml", "schedule: zb\n").cost, "roofline");
  // A flow map may end in the first column.
  EXPECT_EQ(read_sweep_text("s.yaml", "sweep: {\n  grid: {a.b: [1]}\n}\nschedule: zb\n").scenario,
            "schedule: zb\n");
}

}  // namespace
}  // namespace pipesim::html_test
