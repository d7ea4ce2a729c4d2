#include "sim/core/data_folder.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>

namespace pipesim::data_folder_test {
namespace {

TEST(DataFolder, StandsAboveTheExecutableUnlessTheEnvironmentSaysWhere) {
  ASSERT_EQ(::unsetenv("PIPESIM_DATA"), 0);
  EXPECT_TRUE(std::filesystem::exists(data_folder("catalog") + "/models.yaml"));
  ASSERT_EQ(::setenv("PIPESIM_DATA", "/elsewhere", 1), 0);
  EXPECT_EQ(data_folder("catalog"), "/elsewhere/catalog");
  ASSERT_EQ(::setenv("PIPESIM_DATA", "", 1), 0);
  EXPECT_TRUE(std::filesystem::exists(data_folder("catalog")));
  ASSERT_EQ(::unsetenv("PIPESIM_DATA"), 0);
}

}  // namespace
}  // namespace pipesim::data_folder_test
