// Where devices step, and which weights passes see, in the runtimes whose iterations run into each
// other: `stream` in data/pipedream*.json. There `units` are an iteration's, `versions` are kept by
// each device, steps_before_forward and version_of_backward count a device's steps before the
// weights of each microbatch, steps_before_op says before which pass of a device each step comes
// (2BW), and `version` is what F and BW of a microbatch see on every device.
#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "sim/graph/build.h"
#include "sim/planning/schedule.h"
#include "tests/golden/data.h"
#include "tests/pipeline/problems.h"

namespace pipesim::stream_test {
namespace {

using nlohmann::json;

// A device's steps, in order.
struct Steps {
  std::vector<int> before_forward, before_backward;  // by microbatch: steps until then
  std::vector<int> before_op;                        // of each step: passes until then
};

std::vector<Steps> steps_of(const TaskGraph& graph) {
  std::vector<Steps> devices(graph.devices());
  std::vector<int> passes(devices.size());
  for (TaskId task = 0; task < graph.size(); ++task) {
    const TaskClass& of = graph.task_class(task);
    Steps& device = devices[of.device];
    if (of.kind == TaskKind::kOptimizer) device.before_op.push_back(passes[of.device]);
    if (of.kind != TaskKind::kCompute) continue;
    ++passes[of.device];
    const bool forward = of.pass == PassKind::kF;
    (forward ? device.before_forward : device.before_backward)
        .push_back(static_cast<int>(device.before_op.size()));
  }
  return devices;
}

// The newest weights less the oldest that a backward to come began with, both kept.
int kept(const Steps& device, const std::vector<int>& version) {
  int most = 0;
  for (size_t i = 0; i < version.size(); ++i) {
    most = std::max(most, device.before_backward[i] - version[i] + 1);
  }
  return most;
}

class StreamGolden : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(StreamGolden, StepsWhereTheReferenceDoes) {
  const json data = golden::read_json(GetParam());
  const json& wanted = data.at("stream");
  const Schedule& schedule = *find_schedule(data.at("schedule").get<std::string>());
  const Shape shape{data.at("params").at("p").get<int>(), 1, data.at("params").at("m").get<int>(),
                    1};
  const Problem problem = testing::make_problem(shape);
  BuildOptions options;
  options.sync = OptimizerSync::kAsynchronous;
  options.optimizer = Seconds(0.5);
  options.stream = {wanted.at("units").get<std::uint32_t>(),
                    wanted.at("units_per_step").get<std::uint32_t>()};
  EXPECT_EQ(schedule.versions->every_microbatch, options.stream->units_per_step == 1);
  options.iterations = shape.microbatches / static_cast<int>(options.stream->units);
  const auto devices = steps_of(
      build_task_graph(std::make_shared<const Program>(schedule.plan(problem)), problem, options));
  for (size_t d = 0; d < devices.size(); ++d) {
    SCOPED_TRACE(d);
    std::vector<int> version;
    if (wanted.contains("steps_before_op")) {
      EXPECT_EQ(devices[d].before_op, wanted.at("steps_before_op")[d].get<std::vector<int>>());
      version = wanted.at("version").get<std::vector<int>>();
    } else {
      version = wanted.at("steps_before_forward")[d].get<std::vector<int>>();
      EXPECT_EQ(devices[d].before_forward, version);
      EXPECT_EQ(wanted.at("version_of_backward")[d].get<std::vector<int>>(), version);
    }
    EXPECT_EQ(kept(devices[d], version), wanted.at("versions")[d].get<int>());
    EXPECT_EQ(schedule.versions->kept(shape.devices, static_cast<int>(d)),
              wanted.at("versions")[d].get<int>());
  }
}

std::vector<std::filesystem::path> stream_files() {
  auto files = golden::data_files();
  std::erase_if(files,
                [](const auto& file) { return !golden::read_json(file).contains("stream"); });
  return files;
}

INSTANTIATE_TEST_SUITE_P(Data, StreamGolden, ::testing::ValuesIn(stream_files()),
                         [](const auto& file) { return file.param.stem().string(); });

}  // namespace
}  // namespace pipesim::stream_test
