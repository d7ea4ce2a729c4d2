#include "sim/planning/expression.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace pipesim::expression_test {
namespace {

const std::vector<std::string> kNames{"p", "m", "group"};

Expression read(const std::string& text) {
  return {text, {"my.yaml", 3, 9, "period: " + text}, kNames};
}

long value(const std::string& text) { return read(text).value(std::vector<long>{4, 10, 3}); }

std::string error(const std::string& text) {
  try {
    return fmt::format("no error: {}", value(text));
  } catch (const InputError& fault) {
    return fmt::format("{}: {}", fault.where().column - 9, fault.what());
  }
}

void expect(const std::string& error, const std::string& part) {
  EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST(Expression, IsComputedAsInPython) {
  EXPECT_EQ(value("3*p - 2 - 2*group"), 4);
  EXPECT_EQ(value("2 + 3 * 4 - 1"), 13);
  EXPECT_EQ(value("10 - 3 - 2"), 5);
  EXPECT_EQ(value("(2 + 3) * -2"), -10);
  EXPECT_EQ(value("7 // 2"), 3);
  EXPECT_EQ(value("-7 // 2"), -4);
  EXPECT_EQ(value("7 // -2"), -4);
  EXPECT_EQ(value("-7 % 3"), 2);
  EXPECT_EQ(value("7 % -3"), -2);
  EXPECT_EQ(value("-(-m // group)"), 4);
  EXPECT_EQ(value("p < m"), 1);
  EXPECT_EQ(value("3 * (p % 2 == 0)"), 3);
  EXPECT_EQ(value("p >= 4 and m != 10 or not 0"), 1);
  EXPECT_EQ(value("not p == 4"), 0);
  EXPECT_EQ(value("1 if p > m else 2 if p == m else 3"), 3);
  EXPECT_EQ(value("min(p, m, 2) + max(p, m) + gcd(p, m)"), 14);
}

TEST(Expression, ComputesOnlyWhatItNeeds) {
  EXPECT_EQ(value("m // 0 if p > 9 else 1"), 1);
  EXPECT_EQ(value("p > 9 and m // 0"), 0);
  EXPECT_EQ(value("p < 9 or m // 0"), 1);
}

TEST(Expression, KnowsTheNamesInIt) {
  const Expression read_one = read("p + group // 2");
  EXPECT_TRUE(read_one.mentions(0));
  EXPECT_FALSE(read_one.mentions(1));
  EXPECT_TRUE(read_one.mentions(2));
}

TEST(Expression, SaysAtWhichLetterItIsWrong) {
  expect(error("3*p + gruop"), "did you mean 'group'?");
  EXPECT_TRUE(error("3*p + gruop").starts_with("6: my.yaml:3:15")) << error("3*p + gruop");
  expect(error("p / 2"), "'//', which rounds down");
  expect(error("p = 2"), "compared by '=='");
  expect(error("p +"), "expected a number, a name or '('");
  expect(error("p 2"), "expected an operator, or the end");
  expect(error("(p + 2"), "expected ')' for the '(' of letter 1");
  expect(error("min(p"), "stands in quotes");
  expect(error("min(p)"), "two values or more");
  expect(error("1 if p"), "expected 'else'");
  expect(error(""), "expected a number");
  EXPECT_TRUE(error("p // (m - 10)").starts_with("2: ")) << error("p // (m - 10)");
  expect(error("p // (m - 10)"), "4 is divided by 0");
}

TEST(Expression, RefusesWhatIsTooLargeTooLongOrTooDeep) {
  expect(error("1000000000000000 * 2"), "beyond 10^15");
  expect(error("99999999999999999999999"), "beyond 10^15");
  expect(error("1000000000000000 + 1000000000000000 + 1"), "beyond 10^15");
  expect(error(std::string(5000, '(')), "nested more than 100 deep");
  expect(error(std::string(5000, '-')), "nested more than 100 deep");
  expect(error(std::string(20'000, '1')), "more than 10000 letters");
  std::string sum = "1";
  for (int i = 0; i < 4999; ++i) sum += "+1";
  EXPECT_EQ(value(sum), 5000);
}

TEST(Expression, IsLocatedBehindItsQuote) {
  try {
    (void)Expression("p + q", {"my.yaml", 1, 9, "period: \"p + q\""}, kNames);
    FAIL() << "no error";
  } catch (const InputError& fault) {
    EXPECT_EQ(fault.where().column, 14);
  }
}

}  // namespace
}  // namespace pipesim::expression_test
