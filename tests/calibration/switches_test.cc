// Which GPUs share a switch, from the paths of their devices.
#include "validate/calibration/switches.h"

#include <gtest/gtest.h>

namespace pipesim::calibration::switches_test {
namespace {

const std::string kRoot = "/sys/devices/pci0000:";

// Four GPUs, two to a switch, of which the second of each stands a bridge deeper.
const std::vector<std::string> kTwoSwitches{
    kRoot + "00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0",
    kRoot + "80/0000:80:01.0/0000:81:00.0/0000:82:00.0/0000:83:00.0",
    kRoot + "00/0000:00:01.0/0000:01:00.0/0000:02:04.0/0000:04:00.0/0000:05:00.0",
    kRoot + "80/0000:80:01.0/0000:81:00.0/0000:82:04.0/0000:84:00.0/0000:85:00.0"};

TEST(Switches, GpusBelowOnePortOfTheRootShareTheWay) {
  const SharedWay first = sharing_way_of(0, kTwoSwitches);
  EXPECT_EQ(first.gpus, (std::vector<int>{0, 2}));
  EXPECT_FALSE(first.assumed);
  EXPECT_EQ(sharing_way_of(3, kTwoSwitches).gpus, (std::vector<int>{1, 3}));
}

TEST(Switches, PortsOfOneRootComplexAreWaysOfTheirOwn) {
  const std::vector<std::string> ports{kRoot + "00/0000:00:01.0/0000:01:00.0",
                                       kRoot + "00/0000:00:02.0/0000:02:00.0"};
  EXPECT_EQ(sharing_way_of(0, ports).gpus, std::vector<int>{0});
  EXPECT_FALSE(sharing_way_of(0, ports).assumed);
}

TEST(Switches, AMachineThatShowsNoneHasAllGpusShareOne) {
  const std::vector<std::string> guests{kRoot + "00/0000:00:05.0", kRoot + "00/0000:00:06.0"};
  EXPECT_EQ(sharing_way_of(0, guests).gpus, (std::vector<int>{0, 1}));
  EXPECT_TRUE(sharing_way_of(0, guests).assumed);
  const std::vector<std::string> unknown{"", ""};
  EXPECT_EQ(sharing_way_of(1, unknown).gpus, (std::vector<int>{0, 1}));
  EXPECT_TRUE(sharing_way_of(1, unknown).assumed);
}

TEST(Switches, ADeviceThatIsNotThereHasNoPath) { EXPECT_EQ(pci_path("ffff:ff:1f.7"), ""); }

}  // namespace
}  // namespace pipesim::calibration::switches_test
