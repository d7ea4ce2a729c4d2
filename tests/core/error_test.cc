#include "sim/core/error.h"

#include <gtest/gtest.h>

namespace pipesim::error_test {
namespace {

TEST(InputError, SaysWhereAndPointsAtIt) {
  const InputError error({"run.yaml", 3, 5, "    foo: 1"}, "unknown key 'foo'");
  EXPECT_STREQ(error.what(),
               "run.yaml:3:5: unknown key 'foo'\n"
               "      foo: 1\n"
               "      ^");
  EXPECT_EQ(error.where().line, 3);
}

TEST(InputError, KeepsTabsAboveTheCaret) {
  const InputError error({"a", 1, 3, "\tx y"}, "wrong");
  EXPECT_STREQ(error.what(), "a:1:3: wrong\n  \tx y\n  \t ^");
}

TEST(InputError, PointsBehindTheEndOfTheLineWhenThatIsWhereSomethingIsMissing) {
  const InputError error({"a", 1, 4, "ab"}, "expected a value");
  EXPECT_STREQ(error.what(), "a:1:4: expected a value\n  ab\n     ^");
}

TEST(InputError, LeavesOutWhatIsNotKnown) {
  EXPECT_STREQ(InputError({"run.yaml", 0, 0, ""}, "no such file").what(), "run.yaml: no such file");
  EXPECT_STREQ(InputError({"run.yaml", 2, 1, ""}, "wrong").what(), "run.yaml:2:1: wrong");
  EXPECT_STREQ(InputError({}, "no file was named").what(), "no file was named");
}

TEST(InputError, LeavesOutTheMiddleOfALongText) {
  const std::string what =
      InputError({}, std::string(300, 'a') + std::string(100000, 'b') + "': expected a number")
          .what();
  EXPECT_LT(what.size(), 700);
  EXPECT_TRUE(what.starts_with(std::string(280, 'a') + " ... (99760 bytes more) ... b"));
  EXPECT_TRUE(what.ends_with("b': expected a number"));
}

}  // namespace
}  // namespace pipesim::error_test
