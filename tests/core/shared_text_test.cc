#include "sim/core/shared_text.h"

#include <gtest/gtest.h>

namespace pipesim::shared_text_test {
namespace {

TEST(SharedLines, AreThoseBetweenTheEndsOfLines) {
  const SharedLines lines(std::string("a\n\nbc"));
  ASSERT_EQ(lines.size(), 3);
  EXPECT_EQ(lines[0].view(), "a");
  EXPECT_TRUE(lines[1].empty());
  EXPECT_EQ(lines[2].view(), "bc");
  EXPECT_TRUE(lines[3].empty());
}

TEST(SharedLines, HaveOneBehindTheLastEnd) {
  EXPECT_EQ(SharedLines(std::string("a\n")).size(), 2);
  EXPECT_EQ(SharedLines().size(), 1);
}

TEST(SharedLine, OutlivesTheLinesThatItIsOfAndCopiesNothing) {
  SharedLine line;
  const char* first = nullptr;
  {
    const SharedLines lines(std::string(1000, 'x') + "\nend");
    line = lines[0];
    first = lines[0].view().data();
  }
  EXPECT_EQ(line.view().size(), 1000);
  EXPECT_EQ(line.view().data(), first);
}

}  // namespace
}  // namespace pipesim::shared_text_test
