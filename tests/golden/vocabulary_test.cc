// Pass orders, start times and memory of the public code of Vocabulary Parallelism, instance by
// instance (data/vocabulary/*.json; tokens are <kind><microbatch>.<chunk>).
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "sim/engine/engine.h"
#include "sim/execution/evaluate.h"
#include "sim/graph/build.h"
#include "sim/planning/schedule.h"
#include "tests/golden/data.h"
#include "tests/pipeline/problems.h"

namespace pipesim::vocabulary_test {
namespace {

using golden::data_files;
using golden::read_json;
using nlohmann::json;

Problem problem_of(const json& data) {
  const json& params = data.at("params");
  const json& times = params.at("times");
  const auto seconds = [](const json& map, const char* key) {
    return Seconds(map.at(key).get<double>());
  };
  const Schedule& schedule = *find_schedule(data.at("schedule").get<std::string>());
  const Shape shape{params.at("p").get<int>(), schedule.default_chunks, params.at("m").get<int>(),
                    1};
  Problem problem = testing::make_problem(shape, schedule.place(shape.devices, shape.chunks));
  const bool split = times.contains("W");
  for (StageCost& cost : problem.stages) {
    cost.forward = seconds(times, "F");
    cost.backward_input = split ? seconds(times, "B") : seconds(times, "BW") / 2;
    cost.backward_weight = split ? seconds(times, "W") : cost.backward_input;
  }
  testing::set_transfers(problem, params.at("Tcomm").get<double>());
  const auto placement =
      std::ranges::find(kVocabularyPlacements, data.at("vocabulary").get<std::string>());
  problem.vocabulary = static_cast<VocabularyPlacement>(placement - kVocabularyPlacements.begin());
  problem.vocabulary_costs.assign(shape.devices, {.output_forward = seconds(times, "S"),
                                                  .output_backward = seconds(times, "T"),
                                                  .input_forward = seconds(times, "IF"),
                                                  .input_backward = seconds(times, "IB"),
                                                  .output_activation = Bytes(1)});
  const json& collective = params.at("collective");
  problem.barriers = {seconds(collective, "cif"), seconds(collective, "c0"),
                      seconds(collective, "c1"),  seconds(collective, "c2"),
                      seconds(collective, "cib"), Seconds(0)};
  return problem;
}

std::vector<std::string> written(const Program& program) {
  std::vector<std::string> devices;
  for (int device = 0; device < program.shape().devices; ++device) {
    std::string text;
    for (const Pass& pass : program.passes(device)) {
      text += fmt::format("{}{}{}.{}", text.empty() ? "" : " ", to_text(pass.kind), pass.microbatch,
                          pass.chunk);
    }
    devices.push_back(text);
  }
  return devices;
}

class GoldenVocabulary : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(GoldenVocabulary, HasTheOrderTheTimesAndTheMemoryOfTheReference) {
  const json data = read_json(GetParam());
  const Problem problem = problem_of(data);
  const Schedule& schedule = *find_schedule(data.at("schedule").get<std::string>());
  ASSERT_FALSE(schedule.refusal(problem).has_value());
  const auto program = std::make_shared<const Program>(schedule.plan(problem));
  EXPECT_EQ(written(*program), data.at("order").get<std::vector<std::string>>());

  const json& wanted = data.at("eval");
  const Evaluation result = evaluate(*program, problem);
  EXPECT_EQ(result.makespan.value(), wanted.at("makespan").get<double>());
  EXPECT_EQ(result.cost.value(), wanted.at("cost_max_span").get<double>());
  // The reference counts the collectives that interlaced passes wait for as their own time.
  Seconds waited;
  if (problem.vocabulary == VocabularyPlacement::kInterlaced) {
    for (const Barrier each : {Barrier::kEmbedding, Barrier::kSoftmax, Barrier::kOutputGradient}) {
      waited += problem.shape.microbatches * problem.barriers[each];
    }
  }
  for (size_t d = 0; d < result.devices.size(); ++d) {
    const DeviceEvaluation& device = result.devices[d];
    EXPECT_EQ((device.busy + waited).value(), wanted.at("busy")[d].get<double>());
    EXPECT_EQ(device.peak_in_flight, wanted.at("peak_transformer_activations")[d].get<int>());
    EXPECT_LE(device.peak_activation.value(), device.peak_in_flight + 1) << "one softmax at a time";
  }

  const TaskGraph graph = build_task_graph(program, problem);
  const Timeline timeline = make_replay_engine()->run(graph, {}, {});
  std::vector<std::vector<double>> starts(result.devices.size());
  for (TaskId task = 0; task < graph.size(); ++task) {
    if (graph.task_class(task).kind != TaskKind::kCompute) continue;
    starts[graph.task_class(task).device].push_back(timeline.start[task]);
  }
  if (wanted.contains("start")) {
    EXPECT_EQ(starts, wanted.at("start").get<std::vector<std::vector<double>>>());
  }
}

INSTANTIATE_TEST_SUITE_P(Data, GoldenVocabulary, ::testing::ValuesIn(data_files("vocabulary")),
                         [](const auto& file) { return file.param.stem().string(); });

TEST(GoldenVocabularyData, CoversEveryShardedPlacement) {
  const auto files = [](const char* schedule, const char* placement) {
    return std::ranges::count_if(data_files("vocabulary"), [&](const auto& file) {
      const json data = read_json(file);
      return data.at("schedule") == schedule && data.at("vocabulary") == placement;
    });
  };
  for (const char* placement : {"vocab-1", "vocab-2", "interlaced"}) {
    EXPECT_EQ(files("1f1b", placement), 3) << placement;
  }
  for (const char* placement : {"vocab-1", "vocab-2"}) {
    EXPECT_EQ(files("v-half", placement), 2) << placement;
  }
}

}  // namespace
}  // namespace pipesim::vocabulary_test
