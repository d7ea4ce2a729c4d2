#include "validate/papers/validation.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/memory.h"
#include "sim/read/model.h"
#include "tests/sanitized.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/peak_memory.h"

namespace pipesim::validation_test {
namespace {

const std::string kPapers = PIPESIM_SOURCE_DIR "/validate/papers";

Cell measured(double published, double simulated, double worst, double median) {
  Cell cell;
  cell.table = "Table";
  cell.published = published;
  cell.simulated = simulated;
  cell.must_agree = true;
  cell.relative = true;
  cell.worst = worst;
  cell.median = median;
  return cell;
}

TEST(Validation, AMeasuredCellAgreesWithinItsWorst) {
  EXPECT_TRUE(measured(100, 109, 0.1, 0).agrees());
  EXPECT_FALSE(measured(100, 111, 0.1, 0).agrees());
  EXPECT_FALSE(measured(100, 89, 0.1, 0).agrees());
  EXPECT_NEAR(*measured(100, 89, 0.1, 0).relative_error(), -0.11, 1e-12);
  EXPECT_TRUE(missed({measured(100, 111, 0.1, 0)}));
}

TEST(Validation, AMeasuredCellAgreesWithinAShareOrADifference) {
  Cell cell = measured(10, 10.9, 0, 0);
  cell.within = 1;
  EXPECT_TRUE(cell.agrees());
  cell.simulated = 11.1;
  EXPECT_FALSE(cell.agrees());
  cell.worst = 0.15;
  EXPECT_TRUE(cell.agrees());
}

TEST(Validation, ATableIsMissedBeyondItsMedian) {
  const auto cells = [](double middle) {
    return std::vector<Cell>{measured(100, 99, 0.1, 0.06), measured(100, middle, 0.1, 0.06),
                             measured(100, 108, 0.1, 0.06)};
  };
  EXPECT_FALSE(missed(cells(105)));
  EXPECT_TRUE(missed(cells(107)));
  const Validation validation{"name", "title", nullptr};
  EXPECT_NE(validation_table(validation, cells(105), {})
                .find("Table: 3 of 3 cells simulated, median error 5.0% (target 6%), worst 8.0% "
                      "(target 10%)\n"),
            std::string::npos);
  EXPECT_NE(validation_table(validation, cells(107), {}).find("MISSED"), std::string::npos);
}

TEST(Validation, WritesSharesWhereErrorsAreShares) {
  const Validation paper{"name", "title", nullptr};
  const auto json =
      nlohmann::json::parse(validation_json({{&paper, {measured(100, 105, 0.1, 0)}}}));
  EXPECT_EQ(json[0]["paper"], "name");
  EXPECT_NEAR(json[0]["error"].get<double>(), 5, 1e-9);
  EXPECT_NEAR(json[0]["relative_error"].get<double>(), 0.05, 1e-12);
}

TEST(Validation, EveryPaperWithinItsTargets) {
  for (const Validation& validation : testing::some(validations())) {
    if (validation.name == "search") continue;  // minutes, on the data of zero_bubble
    ASSERT_TRUE(has_paper(kPapers, validation.name)) << validation.name;
    const auto cells = validation.compare(kPapers, {});
    EXPECT_FALSE(cells.empty());
    EXPECT_FALSE(missed(cells)) << validation_table(validation, cells, {});
  }
}

TEST(PeakMemory, LeavesOutWhatTheFrameworkTakesForItself) {
  MeasuredRun run;
  run.model = find_model("zb-1.5b", {});
  run.context.seq_length = 1024;
  run.schedule = "1f1b";
  run.microbatches = 1;
  const Placement place = Placement::looped(1, 1);
  const MemoryEstimate memory =
      estimate_memory(run.model, run.context, even_layout(run.model, place, {}), place, run.state);
  EXPECT_DOUBLE_EQ(
      allocated_at_peak(run).value(),
      (memory.devices[0].total() - kFrameworkOverhead + memory.stages[0].activation).value());
}

// The order that a plan finds depends on times; what 1F1B holds does not.
TEST(PeakMemory, OfOneFOneBDependsOnNoTimes) {
  MeasuredRun run;
  run.model = find_model("zb-1.5b", {});
  run.context.seq_length = 1024;
  run.split = {.count_embedding = true, .count_loss = true};
  run.schedule = "1f1b";
  run.devices = 8;
  run.microbatches = 24;
  const Bytes by_work = allocated_at_peak(run);
  run.seconds = DeviceSeconds{Seconds(1), Seconds(3), Seconds(2), Seconds(0.1)};
  EXPECT_EQ(allocated_at_peak(run), by_work);
}

}  // namespace
}  // namespace pipesim::validation_test
