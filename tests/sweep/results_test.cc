// The files of a sweep, as others read them.
#include "sim/sweep/results.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/case/simulate.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "sim/report/metrics/row.h"
#include "sim/sweep/run_sweep.h"
#include "tests/folder.h"
#include "tests/sweep/files.h"

namespace pipesim::results_test {
namespace {

using testing::kSmallSweep;

class Results : public testing::Folder {
 protected:
  void SetUp() override {
    Folder::SetUp();
    LocalWorkers workers(1, [this](std::uint32_t point) { return to_bytes(evaluator_(point)); });
    store_ = std::make_unique<ResultStore>(folder_.string(), sweep_, "1", Location{});
    (void)run_sweep(sweep_, *store_, workers, {});
  }
  template <class Write>
  [[nodiscard]] std::string text(Write write) const {
    std::ostringstream out;
    write(out);
    return out.str();
  }
  const Sweep sweep_{"s.yaml", kSmallSweep};
  Evaluator evaluator_{sweep_};
  std::unique_ptr<ResultStore> store_;
};

TEST_F(Results, HaveTheNumbersOfASingleRunToTheLastBit) {
  std::istringstream lines(
      text([&](std::ostream& out) { write_results_csv(out, sweep_, *store_); }));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "point,cost.forward,batch.num_microbatches," + choice_header() + metric_header());
  int rows = 0;
  for (; std::getline(lines, line); ++rows) {
    const auto point = static_cast<std::uint32_t>(std::stoul(line));
    const Scenario scenario =
        read_scenario(sweep_.source(sweep_.setting(point), sweep_.schedule(point)));
    const auto values = sweep_.values(sweep_.setting(point));
    const Result alone = simulate(prepare_first(scenario));
    EXPECT_EQ(line, std::to_string(point) + "," + values[0] + "," + values[1] + "," +
                        choice_fields(columns_of(scenario.schedules.front())) +
                        metric_fields(metrics_of(scenario, alone)));
  }
  EXPECT_EQ(rows, 10);
}

TEST_F(Results, NameEveryPointWithoutThemAndWhy) {
  const std::string failed = text([&](std::ostream& out) {
    write_failed_csv(out, sweep_, *store_, {{4, "its process ended"}});
  });
  std::istringstream lines(failed);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "point,cost.forward,batch.num_microbatches," + choice_header() + ",reason");
  std::getline(lines, line);
  EXPECT_TRUE(line.starts_with("3,10 ms,3,interleaved-1f1b,")) << line;
  EXPECT_NE(line.find("nearest shape that it accepts"), std::string::npos) << line;
  std::getline(lines, line);
  EXPECT_EQ(line, "4,10 ms,4,1f1b,,,,,its process ended");
  std::getline(lines, line);
  EXPECT_TRUE(line.starts_with("9,12.5 ms,3,interleaved-1f1b,")) << line;
}

// A swept value is no part of a schedule's name; its outcome stands beside what was asked.
TEST(ResultsOfChoices, CallAScheduleByItsNameAlone) {
  const Sweep sweep(
      "s.yaml",
      "schedule: [1f1b, {name: interleaved-1f1b, virtual_pipeline_model_parallel_size: "
      "2}, {name: zb, memory_limit: 1.5}]\n"
      "parallel: {pipeline_model_parallel_size: 2, world_size: 8}\n"
      "batch: {num_microbatches: 4}\n"
      "cost: {kind: given, forward: 10 ms, backward_input: 10 ms, backward_weight: 10 "
      "ms}\n"
      "sweep: {grid: {recompute: [none, full]}}\n");
  Evaluator evaluator(sweep);
  const auto columns = [&](std::uint32_t point) {
    const PointResult result = evaluator(point);
    EXPECT_EQ(metric(result.metrics, "gpus"), 8) << result.reason;
    return result.choice;
  };
  EXPECT_EQ(columns(0), (ChoiceColumns{"1f1b", "", "none", "none", ""}));
  EXPECT_EQ(columns(1), (ChoiceColumns{"interleaved-1f1b", "2 chunks", "none", "none", ""}));
  EXPECT_EQ(columns(3), (ChoiceColumns{"1f1b", "", "full", "none", ""}));
  EXPECT_EQ(columns(5), (ChoiceColumns{"zb", "", "full", "none", "1.5"}));
  EXPECT_EQ(key_columns(sweep), std::vector<std::string>{"sweep.recompute"});
}

TEST_F(Results, AreOneJsonDocumentToo) {
  const auto document = nlohmann::json::parse(
      text([&](std::ostream& out) { write_sweep_json(out, sweep_, *store_, {}, "1"); }));
  EXPECT_EQ(document["results"].size(), 10U);
  EXPECT_EQ(document["failed"].size(), 2U);
  EXPECT_EQ(document["results"][0]["values"]["batch.num_microbatches"], 2);
  EXPECT_EQ(document["results"][0]["values"]["cost.forward"], "10 ms");
  EXPECT_TRUE(document["results"][0]["mfu"].is_null());
  EXPECT_EQ(document["sweep"]["points"], 12);
  EXPECT_FALSE(document["sweep"]["stopped"].get<bool>());
}

}  // namespace
}  // namespace pipesim::results_test
