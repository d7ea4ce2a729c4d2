// Pass orders, times and memory of the authors' public code, instance by instance (data/*.json;
// times are per chunk, tokens are <kind><microbatch>.<chunk>).
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/engine/engine.h"
#include "sim/execution/evaluate.h"
#include "sim/graph/build.h"
#include "sim/planning/schedule.h"
#include "tests/golden/data.h"
#include "tests/pipeline/problems.h"

namespace pipesim::golden_test {
namespace {

using golden::data_files;
using golden::of_device;
using golden::read_json;
using nlohmann::json;

void set_times(Problem& problem, const json& times) {
  for (int vs = 0; vs < problem.placement.virtual_stages(); ++vs) {
    StageCost& cost = problem.stages[vs];
    const int device = problem.placement.device(vs);
    cost.forward = Seconds(of_device(times.at("TF"), device));
    cost.backward_input = Seconds(of_device(times.at("TB"), device));
    cost.backward_weight = Seconds(of_device(times.at("TW"), device));
    // Where none is given, an overlapped block takes as long as its passes; null: there are none.
    cost.overlapped = cost.forward + cost.backward_input + cost.backward_weight;
    if (!times.contains("TFB")) continue;
    cost.overlapped = times.at("TFB").is_null()
                          ? std::nullopt
                          : std::optional(Seconds(of_device(times.at("TFB"), device)));
  }
  testing::set_transfers(problem, times.at("Tcomm").get<double>());
}

struct Instance {
  json data;
  const Schedule* schedule = nullptr;
  Problem problem;

  explicit Instance(const std::filesystem::path& file) {
    data = read_json(file);
    schedule = find_schedule(data.at("schedule").get<std::string>());
    if (schedule == nullptr) return;
    const json& params = data.at("params");
    const Shape shape{params.at("p").get<int>(), params.at("v").get<int>(),
                      params.at("m").get<int>(), 1};
    problem = testing::make_problem(shape, schedule->place(shape.devices, shape.chunks));
    set_times(problem, params);
    for (const auto& [name, value] : data.at("options").items()) {
      if (value.is_boolean()) {
        problem.options[name] = value.get<bool>();
      } else {
        problem.options[name] = value.get<long>();
      }
    }
  }
};

// A pass as the data writes it: "BW0.1", "F3.0&BW1.1"; with two directions each counts its own
// microbatches.
std::string written(const Program& program, int device, const Pass& pass) {
  if (pass.kind == PassKind::kFB) {
    const OverlappedPair& pair = program.pair(pass);
    return written(program, device, pair.forward) + "&" + written(program, device, pair.backward);
  }
  const int vs = program.placement().virtual_stage(device, pass.chunk);
  const int first = program.placement().first_unit(vs, program.shape().units());
  return fmt::format("{}{}.{}", to_text(pass.kind), static_cast<int>(pass.microbatch) - first,
                     pass.chunk);
}

// The order as the data writes it: "F0.0 BW0.0 ...", one text per device.
std::vector<std::string> written(const Program& program) {
  std::vector<std::string> devices;
  for (int device = 0; device < program.shape().devices; ++device) {
    std::string text;
    for (const Pass& pass : program.passes(device)) {
      if (!text.empty()) text += ' ';
      text += written(program, device, pass);
    }
    devices.push_back(text);
  }
  return devices;
}

std::vector<double> values(const std::vector<DeviceEvaluation>& devices, auto of) {
  std::vector<double> all;
  for (const DeviceEvaluation& device : devices) all.push_back(of(device));
  return all;
}

double bubble_of_makespan(const Evaluation& result) {
  double idle = 0;
  for (const auto& device : result.devices) idle += (result.makespan - device.busy).value();
  return idle / result.makespan.value() / static_cast<double>(result.devices.size());
}

// The data rounds rates to nine digits; everything else is a whole number and exact.
constexpr double kNineDigits = 0.5000001e-9;

void expect_times(const Evaluation& result, const json& wanted) {
  EXPECT_EQ(result.makespan.value(), wanted.at("makespan").get<double>());
  EXPECT_EQ(result.cost.value(), wanted.at("cost_max_span").get<double>());
  // Left out where the data sets another device's work against the longest span.
  if (wanted.contains("bubble_rate_cost")) {
    EXPECT_NEAR(result.bubble_rate(), wanted.at("bubble_rate_cost").get<double>(), kNineDigits);
  }
  EXPECT_NEAR(bubble_of_makespan(result), wanted.at("bubble_rate_makespan").get<double>(),
              kNineDigits);
  const auto of_devices = [&](const char* key, auto of) {
    if (!wanted.contains(key)) return;
    EXPECT_EQ(values(result.devices, of), wanted.at(key).get<std::vector<double>>()) << key;
  };
  of_devices("busy", [](const DeviceEvaluation& d) { return d.busy.value(); });
  of_devices("span", [](const DeviceEvaluation& d) { return d.span().value(); });
}

void expect_peak(const Program& program, Problem problem, double stash, const json& wanted) {
  for (StageCost& cost : problem.stages) cost.weight_stash = stash * cost.activation;
  const auto peaks = values(evaluate(program, problem).devices,
                            [](const DeviceEvaluation& d) { return d.peak_activation.value(); });
  ASSERT_EQ(peaks.size(), wanted.size());
  for (size_t d = 0; d < peaks.size(); ++d) {
    EXPECT_NEAR(peaks[d], wanted[d].get<double>(), kNineDigits) << "device " << d;
  }
}

// Start times of the compute tasks of every device, in program order, as the replay engine sees
// them.
std::vector<std::vector<double>> replayed_starts(const Program& program, const Problem& problem,
                                                 double& makespan) {
  const TaskGraph graph = build_task_graph(std::make_shared<Program>(program), problem);
  const Timeline timeline = make_replay_engine()->run(graph, {}, {});
  std::vector<std::vector<double>> starts(problem.shape.devices);
  for (TaskId task = 0; task < graph.size(); ++task) {
    if (graph.task_class(task).kind != TaskKind::kCompute) continue;
    starts[graph.task_class(task).device].push_back(timeline.start[task]);
  }
  makespan = std::ranges::max(timeline.end);
  return starts;
}

void expect_equal(const Instance& instance) {
  ASSERT_NE(instance.schedule, nullptr);
  ASSERT_FALSE(instance.schedule->refusal(instance.problem).has_value());
  const json& data = instance.data;
  const Program program = instance.schedule->plan(instance.problem);
  EXPECT_EQ(written(program), data.at("order").get<std::vector<std::string>>());

  const json& wanted = data.at("eval");
  expect_times(evaluate(program, instance.problem), wanted);
  double makespan = 0;
  const auto starts = replayed_starts(program, instance.problem, makespan);
  EXPECT_EQ(makespan, wanted.at("makespan").get<double>());
  if (wanted.contains("start")) {
    EXPECT_EQ(starts, wanted.at("start").get<std::vector<std::vector<double>>>());
  }
  const json& peak = wanted.at("peak_mem");
  expect_peak(program, instance.problem, 0, peak.at("B_frees_all"));
  expect_peak(program, instance.problem, 1, peak.at("B_frees_none"));
  expect_peak(program, instance.problem, peak.at("w_frac").get<double>(), peak.at("with_w_frac"));

  for (const json& times : data.at("alt_eval")) {
    SCOPED_TRACE(fmt::format("same order, F {} B {} W {}", times.at("TF").dump(),
                             times.at("TB").dump(), times.at("TW").dump()));
    Problem other = instance.problem;
    set_times(other, times);
    expect_times(evaluate(program, other), times);
    (void)replayed_starts(program, other, makespan);
    EXPECT_EQ(makespan, times.at("makespan").get<double>());
  }
}

class Golden : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(Golden, HasTheOrderTheTimesAndTheMemoryOfTheReference) {
  expect_equal(Instance(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Data, Golden, ::testing::ValuesIn(data_files()),
                         [](const auto& file) { return file.param.stem().string(); });

TEST(GoldenData, CoversEveryScheduleThatHasAReferenceInFull) {
  size_t equal = 0;
  const auto files = data_files();
  std::vector<std::string> names;
  for (const auto& file : files) {
    const Instance instance(file);
    names.push_back(instance.data.at("schedule").get<std::string>());
    ASSERT_NE(instance.schedule, nullptr) << names.back();
    const auto order = instance.data.at("order").get<std::vector<std::string>>();
    if (written(instance.schedule->plan(instance.problem)) == order) ++equal;
  }
  std::puts(
      fmt::format("{} of {} instances have the reference's order", equal, files.size()).c_str());
  EXPECT_EQ(equal, files.size());
  for (const char* name :
       {"1f1b", "interleaved-1f1b", "zb-h1", "zb-h1-light", "zb-h2", "zb-v-handmade", "dualpipe",
        "dualpipev", "looped-bfs", "hanayo", "chimera", "interleaved-zb", "2bp", "pipedream",
        "pipedream-2bw", "stp"}) {
    EXPECT_GE(std::ranges::count(names, name), 2) << name;
  }
}

}  // namespace
}  // namespace pipesim::golden_test
