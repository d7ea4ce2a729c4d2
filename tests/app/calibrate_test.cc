#include "tests/app/command.h"

namespace pipesim::calibrate_test {
namespace {

// A copy of pipesim in the test's folder, with what stands beside it there.
class Calibrate : public testing::Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    (void)shell("cp " PIPESIM_EXECUTABLE " pipesim");
  }
};

TEST_F(Calibrate, SaysWhatIsMissingWhereItWasBuiltWithoutCuda) {
  const auto outcome = shell("./pipesim calibrate --mode quick -o DIR");
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_NE(outcome.output.find("/pipesim-calibrate: No such file or directory"), std::string::npos)
      << outcome.output;
  EXPECT_NE(outcome.output.find("-DPIPESIM_CUDA=ON"), std::string::npos) << outcome.output;
  EXPECT_EQ(files(), 1U);
}

TEST_F(Calibrate, SaysItsOptionsWhereItWasBuiltWithoutCuda) {
  const auto outcome = shell("./pipesim calibrate --help");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  for (const char* option : {"--mode", "--output", "--device", "--hidden"}) {
    EXPECT_NE(outcome.output.find(option), std::string::npos) << option;
  }
  EXPECT_EQ(shell("./pipesim calibrate --mode slow -o DIR").code, 2);
}

TEST_F(Calibrate, HandsItsArgumentsToTheToolBesideIt) {
  write("pipesim-calibrate", "#!/bin/sh\necho got \"$@\"; exit 3\n");
  const auto outcome =
      shell("chmod +x pipesim-calibrate && ./pipesim calibrate --mode quick -o DIR");
  EXPECT_EQ(outcome.output, "got --mode quick -o DIR\n");
  EXPECT_EQ(outcome.code, 3);
}

}  // namespace
}  // namespace pipesim::calibrate_test
