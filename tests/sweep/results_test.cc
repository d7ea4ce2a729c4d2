// What a sweep writes, as others read it.
#include "sim/sweep/results.h"

#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/scenario/read_scenario.h"
#include "sim/sweep/pareto.h"
#include "sim/sweep/run_sweep.h"
#include "tests/sweep/files.h"

namespace pipesim {
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
  write("results.csv", text([&](std::ostream& out) { write_results_csv(out, sweep_, *store_); }));
  const SweepTable table = read_results_csv(path("results.csv"), {});
  EXPECT_EQ(table.keys, sweep_.keys());
  ASSERT_EQ(table.rows.size(), 10U);
  for (const SweepRow& row : table.rows) {
    const Scenario scenario =
        read_scenario(sweep_.source(sweep_.setting(row.point), sweep_.schedule(row.point)));
    const Simulation alone = simulate(scenario, scenario.schedules.front());
    EXPECT_EQ(row.metrics, metrics_of(scenario, alone)) << row.point;
    EXPECT_EQ(row.values, sweep_.values(sweep_.setting(row.point)));
    EXPECT_EQ(row.schedule, scenario.schedules.front().name);
  }
}

TEST_F(Results, NameEveryPointWithoutThemAndWhy) {
  const std::string failed = text([&](std::ostream& out) {
    write_failed_csv(out, sweep_, *store_, {{4, "its process ended"}});
  });
  std::istringstream lines(failed);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "point,cost.forward,batch.num_microbatches,schedule,reason");
  std::getline(lines, line);
  EXPECT_TRUE(line.starts_with("3,10 ms,3,interleaved-1f1b,")) << line;
  EXPECT_NE(line.find("nearest shape that it accepts"), std::string::npos) << line;
  std::getline(lines, line);
  EXPECT_EQ(line, "4,10 ms,4,1f1b,its process ended");
  std::getline(lines, line);
  EXPECT_TRUE(line.starts_with("9,12.5 ms,3,interleaved-1f1b,")) << line;
}

TEST_F(Results, AreOneJsonDocumentToo) {
  const auto document = nlohmann::json::parse(
      text([&](std::ostream& out) { write_sweep_json(out, sweep_, *store_, {}, "1"); }));
  EXPECT_EQ(document["results"].size(), 10U);
  EXPECT_EQ(document["failed"].size(), 2U);
  EXPECT_EQ(document["results"][0]["values"]["batch.num_microbatches"], 2);
  EXPECT_EQ(document["results"][0]["values"]["cost.forward"], "10 ms");
  EXPECT_TRUE(document["results"][0]["mfu"].is_null());
}

TEST_F(Results, ATableOfSomethingElseIsRefusedWithItsLine) {
  write("a.csv", "x,y\n1,2\n");
  EXPECT_THROW(read_results_csv(path("a.csv"), {}), InputError);
  EXPECT_THROW(read_results_csv(path("missing.csv"), {}), InputError);
  write("b.csv", "point,schedule,mfu\n1,\"a,\"\"b\"\"\",0.5\n2,c,many\n");
  try {
    (void)read_results_csv(path("b.csv"), {});
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("b.csv:3:"), std::string::npos) << error.what();
  }
}

TEST(Pareto, KeepsWhatNothingBeatsInBoth) {
  const std::vector<double> rate{3, 2, 5, 5, 4, 1, std::nan("")};
  const std::vector<double> memory{2, 2, 9, 8, 8, 1, 0};
  EXPECT_EQ(pareto_frontier(rate, memory), (std::vector<size_t>{3, 0, 5}));
  EXPECT_TRUE(pareto_frontier({}, {}).empty());
}

TEST(Pareto, OfEqualResultsTheFirstStandsForAll) {
  const std::vector<double> ones(3, 1.0);
  EXPECT_EQ(pareto_frontier(ones, ones), (std::vector<size_t>{0}));
}

}  // namespace
}  // namespace pipesim
