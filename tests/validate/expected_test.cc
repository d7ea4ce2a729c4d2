#include "validate/papers/expected.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/error.h"
#include "validate/papers/validation_page.h"

namespace pipesim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Cell share(const std::string& table, double published, double simulated) {
  Cell cell;
  cell.table = table;
  cell.cell = "a";
  cell.published = published;
  cell.simulated = simulated;
  cell.relative = true;
  return cell;
}

// A folder with an expected.yaml of this text.
class Expected : public ::testing::Test {
 protected:
  Expected() : folder_(std::filesystem::path(::testing::TempDir()) / "pipesim_expected") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  std::optional<ExpectedErrors> read(const std::string& text) {
    std::ofstream(folder_ / "expected.yaml") << text;
    return read_expected(folder_.string());
  }
  std::filesystem::path folder_;
};

TEST_F(Expected, AFolderWithoutTheFileExpectsNothing) {
  EXPECT_FALSE(read_expected(folder_.string()));
}

TEST_F(Expected, ATableMayBeTwoTenthsOfAPointWorse) {
  const auto expected = read("paper:\n  Table 1: {median: 0.05, worst: 0.05}\n");
  ASSERT_TRUE(expected);
  EXPECT_THAT(unexpected("paper", table_errors({share("Table 1", 100, 105.1)}), *expected),
              IsEmpty());
  EXPECT_THAT(unexpected("paper", table_errors({share("Table 1", 100, 94.7)}), *expected),
              ElementsAre(HasSubstr("paper, Table 1: median error 0.0530, recorded 0.0500"),
                          HasSubstr("worst error 0.0530")));
}

TEST_F(Expected, ATableOfWhichNothingIsRecordedIsNamed) {
  const auto expected = read("paper:\n  Table 1: {median: 0, worst: 0}\n");
  const auto sentences = unexpected(
      "paper", table_errors({share("Table 1", 1, 1), share("Table 2", 1, 1)}), *expected);
  EXPECT_THAT(sentences, ElementsAre(HasSubstr("paper, Table 2: no error is recorded")));
}

TEST_F(Expected, ARecordedTableWithoutCellsIsNamed) {
  const auto expected = read("paper:\n  Table 9: {median: 0, worst: 0}\n");
  EXPECT_THAT(unexpected("paper", {}, *expected),
              ElementsAre(HasSubstr("paper, Table 9: recorded, but it has no cells")));
}

TEST_F(Expected, AnUnknownKeyIsRefusedWithItsPlace) {
  try {
    (void)read("paper:\n  Table 1: {median: 0, wurst: 0}\n");
    FAIL() << "nothing was thrown";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected.yaml:2"));
    EXPECT_THAT(error.what(), HasSubstr("worst"));
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
  absent.cell = "b|c";
  absent.simulated.reset();
  absent.note = "no such schedule";
  const std::vector<Compared> all{{&validation, {share("Table 1", 100, 95), absent}}};
  const std::string page = validation_page(all, ExpectedErrors{}, "## Of one's own\n");
  EXPECT_THAT(page, HasSubstr("| paper | Table 1 | 1 | 1 | 5.0% | 5.0% |"));
  EXPECT_THAT(page, HasSubstr("- paper, Table 2 (1 cell): no such schedule"));
  EXPECT_THAT(page, HasSubstr("b\\|c"));
  EXPECT_THAT(page, HasSubstr("## Of one's own"));
  EXPECT_THAT(page, HasSubstr("| -5.0% |"));
}

TEST(ValidationDrawing, HasAMarkPerCellAndEscapesNames) {
  const Validation validation{"paper", "R & D", nullptr};
  const std::vector<Compared> all{{&validation, {share("T<1>", 100, 95)}}};
  const std::string svg = validation_drawing(all);
  EXPECT_THAT(svg, HasSubstr("R &amp; D"));
  EXPECT_THAT(svg, HasSubstr("T&lt;1&gt;, a: published 100.0000, simulated 95.0000"));
  EXPECT_THAT(svg, Not(HasSubstr("T<1>")));
}

}  // namespace
}  // namespace pipesim
