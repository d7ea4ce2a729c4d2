// `pipesim reproduce` as a user runs it.
#include <gtest/gtest.h>

#include "tests/app/command.h"

namespace pipesim::reproduce_test {
namespace {

using Reproduce = testing::Command;

TEST_F(Reproduce, ListsEveryFigureByName) {
  const testing::Outcome outcome = run("reproduce");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_GT(std::ranges::count(outcome.output, '\n'), 30);
  for (const char* name : {"controllable-memory/figure7 ", "slides/memory-by-devices ",
                           "pipeoffload/headline ", "zero-bubble/figure9 "}) {
    EXPECT_NE(outcome.output.find(name), std::string::npos) << name;
  }
}

TEST_F(Reproduce, NamesTheNearestFigure) {
  const testing::Outcome part = run("reproduce figure7 -o out");
  EXPECT_EQ(part.code, 2);
  EXPECT_NE(
      part.output.find("did you mean 'zero-bubble/figure7' or 'controllable-memory/figure7'?"),
      std::string::npos)
      << part.output;
  const testing::Outcome slip = run("reproduce zero-buble/table4 -o out");
  EXPECT_EQ(slip.code, 2);
  EXPECT_NE(slip.output.find("did you mean 'zero-bubble/table4'?"), std::string::npos);
  EXPECT_EQ(run("reproduce zero-bubble/table4").code, 2);  // no folder
  EXPECT_EQ(run("reproduce zero-bubble/table4 --all -o out").code, 2);
  EXPECT_EQ(run("reproduce zero-bubble/table4 -o out --format gif").code, 2);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

TEST_F(Reproduce, WritesAFigureATableAndASentence) {
  const testing::Outcome outcome = run("reproduce zero-bubble/table8 -o out");
  if (outcome.output.find("with matplotlib") != std::string::npos) GTEST_SKIP() << outcome.output;
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(outcome.output.starts_with("zero-bubble/table8: bubble rate ")) << outcome.output;
  EXPECT_EQ(std::ranges::count(outcome.output, '\n'), 1);
  const std::string figure = read("out/zero-bubble-table8.svg");
  for (const char* text : {">published<", ">ZB-V<", ">14.6B, 24 GPUs<", ">bubble rate (%)<"}) {
    EXPECT_NE(figure.find(text), std::string::npos) << text;
  }
  const std::string table = read("out/zero-bubble-table8.csv");
  EXPECT_TRUE(
      table.starts_with("panel,series,model,p,num_microbatches,schedule,"
                        "bubble_rate,published_bubble_rate\n"))
      << table;
  EXPECT_EQ(std::ranges::count(table, '\n'), 16);
}

}  // namespace
}  // namespace pipesim::reproduce_test
