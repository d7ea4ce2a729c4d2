#include "validate/papers/expected.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "sim/core/error.h"
#include "tests/folder.h"
#include "validate/papers/validation_page.h"

namespace pipesim::expected_test {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Cell share(const std::string& table, double published, double simulated) {
  Cell cell;
  cell.table = table;
  cell.cell = std::string("a");
  cell.published = published;
  cell.simulated = simulated;
  cell.relative = true;
  return cell;
}

// A folder with an expected.yaml of this text.
class Expected : public testing::Folder {
 protected:
  std::optional<ExpectedErrors> read(const std::string& text) {
    write("expected.yaml", text);
    return read_expected(folder_.string());
  }
};

TEST_F(Expected, AFolderWithoutTheFileExpectsNothing) {
  EXPECT_FALSE(read_expected(folder_.string()));
}

TEST_F(Expected, ATableMayBeTwoTenthsOfAPointWorse) {
  const auto expected = read("paper:\n  Table 1: {median: 0.05, worst: 0.05, goal: 0.1}\n");
  ASSERT_TRUE(expected);
  EXPECT_TRUE(unexpected("paper", table_errors({share("Table 1", 100, 105.1)}), *expected).empty());
  const auto worse = unexpected("paper", table_errors({share("Table 1", 100, 94.7)}), *expected);
  ASSERT_EQ(worse.size(), 2U);
  EXPECT_EQ(worse[0], "paper, Table 1: median error 0.0530, recorded 0.0500");
  EXPECT_EQ(worse[1], "paper, Table 1: worst error 0.0530, recorded 0.0500");
}

TEST_F(Expected, ATableOfWhichNothingIsRecordedIsNamed) {
  const auto expected = read("paper:\n  Table 1: {median: 0, worst: 0, goal: 0.1}\n");
  const auto sentences = unexpected(
      "paper", table_errors({share("Table 1", 1, 1), share("Table 2", 1, 1)}), *expected);
  ASSERT_EQ(sentences.size(), 1U);
  EXPECT_TRUE(has(sentences[0], "paper, Table 2: no error is recorded")) << sentences[0];
}

TEST_F(Expected, ARecordedTableWithoutCellsIsNamed) {
  const auto expected = read("paper:\n  Table 9: {median: 0, worst: 0, goal: 0.1}\n");
  EXPECT_EQ(unexpected("paper", {}, *expected),
            std::vector<std::string>{"paper, Table 9: recorded, but it has no cells"});
}

TEST_F(Expected, AnUnknownKeyIsRefusedWithItsPlace) {
  try {
    (void)read("paper:\n  Table 1: {median: 0, wurst: 0}\n");
    FAIL() << "nothing was thrown";
  } catch (const InputError& error) {
    EXPECT_TRUE(has(error.what(), "expected.yaml:2"));
    EXPECT_TRUE(has(error.what(), "worst"));
  }
}

TEST(TableErrors, AreInTheOrderInWhichTablesAppear) {
  const auto errors =
      table_errors({share("Table 10", 1, 1), share("Table 4", 1, 1.2), share("Table 10", 1, 0.9)});
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_EQ(errors[0].table, "Table 10");
  EXPECT_EQ(errors[0].simulated, 2);
  EXPECT_NEAR(errors[0].worst, 0.1, 1e-12);
  EXPECT_NEAR(errors[0].median, 0.05, 1e-12);
  EXPECT_EQ(errors[1].within_15, 0);
}

TEST(TableErrors, ABubbleLowerThanPublishedIsNotOff) {
  Cell cell = share("Figure 9", 0.2, 0.1);
  cell.relative = false;
  cell.must_agree = cell.may_be_lower = true;
  EXPECT_EQ(table_errors({cell})[0].worst, 0);
  EXPECT_EQ(table_errors({cell})[0].lower, 1);
}

TEST(ValidationPage, NamesEveryCellAndWhatIsNotModelled) {
  const Validation validation{"paper", "A paper", nullptr};
  Cell absent = share("Table 2", 3, 0);
  absent.cell = std::string("b|c");
  absent.simulated.reset();
  absent.note = std::string("no such schedule");
  const std::vector<Compared> all{{&validation, {share("Table 1", 100, 95), absent}}};
  const std::string page = validation_page(all, ExpectedErrors{}, "## Of one's own\n");
  EXPECT_TRUE(has(page, "| paper | Table 1 | 1 | 1 | 5.0% | 5.0% |"));
  EXPECT_TRUE(has(page, "- paper, Table 2 (1 cell): no such schedule"));
  EXPECT_TRUE(has(page, "b\\|c"));
  EXPECT_TRUE(has(page, "## Of one's own"));
  EXPECT_TRUE(has(page, "| -5.0% |"));
}

TEST(ValidationDrawing, HasAMarkPerCellAndEscapesNames) {
  const Validation validation{"paper", "R & D", nullptr};
  const std::vector<Compared> all{{&validation, {share("T<1>", 100, 95)}}};
  const std::string svg = validation_drawing(all);
  EXPECT_TRUE(has(svg, "R &amp; D"));
  EXPECT_TRUE(has(svg, "T&lt;1&gt;, a: published 100.0000, simulated 95.0000"));
  EXPECT_FALSE(has(svg, "T<1>"));
}

TEST_F(Expected, ATableThatCouldHardlyFailNeedsAReason) {
  const auto refusal = [this](const std::string& text) -> std::string {
    try {
      (void)read(text);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_TRUE(has(refusal("paper:\n  Table 1: {median: 0.6, worst: 0.7, goal: 0.1}\n"),
                  "expected a 'reason'"));
  EXPECT_TRUE(has(refusal("paper:\n  Table 1: {median: 0.1, worst: 1, goal: 0.1}\n"), "'reason'"));
  EXPECT_EQ(refusal("paper:\n  Table 1: {median: 3, worst: 7, goal: 0.1, reason: not modelled}\n"),
            "");
  EXPECT_TRUE(has(refusal("paper:\n  Table 1: {median: 0.1, worst: 0.2}\n"), "goal"));
}

TEST_F(Expected, GoalsAreMetByHalfOfTheCells) {
  const auto expected =
      read("paper:\n  Table 1: {median: 0.05, worst: 0.2, goal: 0.02, reason: noise}\n");
  const auto far = table_errors(
      {share("Table 1", 100, 101), share("Table 1", 100, 104), share("Table 1", 100, 90)});
  const ExpectedError* recorded = recorded_of(expected, "paper", "Table 1");
  ASSERT_NE(recorded, nullptr);
  EXPECT_EQ(recorded_of(expected, "paper", "Table 2"), nullptr);
  EXPECT_EQ(goal_text(far[0], *recorded),
            "recorded 5%, worst 20%; goal 2%: not met, 1 of 3 cells within it; noise");
  GoalsMet goals;
  goals.add(far[0], *recorded);
  goals.add(table_errors({share("Table 1", 100, 101), share("Table 1", 100, 110)})[0], *recorded);
  EXPECT_EQ(goals.text(),
            "goals: 1 of 2 tables have half of their cells within theirs; 2 of 5 cells are\n");
}

}  // namespace
}  // namespace pipesim::expected_test
