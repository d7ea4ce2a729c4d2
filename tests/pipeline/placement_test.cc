#include "sim/pipeline/placement.h"

#include <gtest/gtest.h>
#include <set>
#include <vector>

#include "sim/core/error.h"

namespace pipesim::placement_test {
namespace {

std::vector<int> devices_of(const Placement& place) {
  std::vector<int> devices;
  for (int vs = 0; vs < place.virtual_stages(); ++vs) devices.push_back(place.device(vs));
  return devices;
}

std::vector<Placement> all_kinds(int devices) {
  return {Placement::looped(devices, 1), Placement::looped(devices, 3), Placement::vee(devices),
          Placement::bidirectional(devices)};
}

TEST(Placement, IsABijectionOfDevicesWithChunksAndVirtualStages) {
  for (int devices = 1; devices <= 9; ++devices) {
    for (const Placement& place : all_kinds(devices)) {
      std::set<int> seen;
      for (int device = 0; device < devices; ++device) {
        for (int chunk = 0; chunk < place.chunks(); ++chunk) {
          const int vs = place.virtual_stage(device, chunk);
          EXPECT_EQ(place.device(vs), device);
          EXPECT_EQ(place.chunk(vs), chunk);
          seen.insert(vs);
        }
      }
      EXPECT_EQ(seen.size(), static_cast<size_t>(place.virtual_stages()));
      EXPECT_EQ(*seen.begin(), 0);
      EXPECT_EQ(*seen.rbegin(), place.virtual_stages() - 1);
    }
  }
}

TEST(Placement, LeadsAMicrobatchThroughAllItsStagesInOrder) {
  for (const Placement& place : all_kinds(5)) {
    for (int vs = 0; vs < place.virtual_stages(); ++vs) {
      const int down = place.downstream(vs);
      if (down < 0) {
        EXPECT_EQ(place.model_stage(vs), place.model_stages() - 1);
      } else {
        EXPECT_EQ(place.upstream(down), vs);
        EXPECT_EQ(place.model_stage(down), place.model_stage(vs) + 1);
      }
      EXPECT_EQ(place.upstream(vs) < 0, place.model_stage(vs) == 0);
    }
  }
}

TEST(Placement, LoopsChunksOverTheDevices) {
  EXPECT_EQ(devices_of(Placement::looped(3, 2)), (std::vector{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(Placement::looped(3, 2).virtual_stage(1, 1), 4);
}

TEST(Placement, TurnsRoundOnTheLastDeviceOfAVee) {
  const Placement vee = Placement::vee(3);
  EXPECT_EQ(devices_of(vee), (std::vector{0, 1, 2, 2, 1, 0}));
  EXPECT_EQ(vee.virtual_stage(0, 0), 0);
  EXPECT_EQ(vee.virtual_stage(0, 1), 5);
  EXPECT_EQ(vee.downstream(2), 3);
}

TEST(Placement, RunsTwoCopiesOfTheModelInOppositeDirections) {
  const Placement both = Placement::bidirectional(4);
  EXPECT_EQ(devices_of(both), (std::vector{0, 1, 2, 3, 3, 2, 1, 0}));
  EXPECT_EQ(both.model_stages(), 4);
  EXPECT_EQ(both.directions(), 2);
  EXPECT_EQ(both.model_stage(5), 1);
  EXPECT_EQ(both.downstream(3), -1) << "no edge from one copy to the other";
  EXPECT_EQ(both.upstream(4), -1);
}

TEST(Placement, SplitsTheMicrobatchesBetweenTheTwoDirections) {
  const Placement both = Placement::bidirectional(4);
  for (int vs = 0; vs < 8; ++vs) {
    EXPECT_EQ(both.first_unit(vs, 10), vs < 4 ? 0 : 5);
    EXPECT_EQ(both.end_unit(vs, 10), vs < 4 ? 5 : 10);
  }
  const Placement vee = Placement::vee(4);
  for (int vs = 0; vs < 8; ++vs) {
    EXPECT_EQ(vee.first_unit(vs, 10), 0);
    EXPECT_EQ(vee.end_unit(vs, 10), 10);
  }
}

TEST(Placement, LeavesNoUnitBehindWhenTheirNumberIsOdd) {
  const Placement both = Placement::bidirectional(2);
  EXPECT_EQ(both.end_unit(0, 7), both.first_unit(2, 7));
  EXPECT_EQ(both.end_unit(3, 7), 7);
}

TEST(Placement, NumbersTheChunksOfACustomPlacementInStageOrder) {
  const Placement place = Placement::custom(std::vector{1, 0, 0, 1});
  EXPECT_EQ(place.devices(), 2);
  EXPECT_EQ(place.chunks(), 2);
  EXPECT_EQ(place.virtual_stage(1, 0), 0);
  EXPECT_EQ(place.virtual_stage(1, 1), 3);
  EXPECT_EQ(Placement::custom(std::vector{0, 1, 1, 0}), Placement::vee(2));
}

TEST(Placement, LetsDevicesHoldUnequalNumbersOfStages) {
  const Placement place = Placement::custom(std::vector{0, 1, 2, 1, 0, 1});
  EXPECT_FALSE(place.even());
  EXPECT_TRUE(Placement::looped(3, 2).even());
  EXPECT_EQ(place.virtual_stages(), 6);
  EXPECT_EQ(place.chunks(), 3);
  EXPECT_EQ(place.chunks(0), 2);
  EXPECT_EQ(place.chunks(1), 3);
  EXPECT_EQ(place.chunks(2), 1);
  for (int vs = 0; vs < 6; ++vs) {
    EXPECT_EQ(place.virtual_stage(place.device(vs), place.chunk(vs)), vs);
    EXPECT_EQ(place.downstream(vs), vs == 5 ? -1 : vs + 1);
  }
  EXPECT_EQ(place.beside(0, 1), 4);
  EXPECT_EQ(place.beside(2, 1), 2);
}

TEST(Placement, DividesADevicesValueAmongTheChunksThatAMicrobatchPasses) {
  EXPECT_EQ(Placement::looped(2, 4).per_chunk(0, 8.0), 2);
  EXPECT_EQ(Placement::bidirectional(4).per_chunk(0, 8.0), 8);
}

TEST(Placement, RefusesDevicesWithoutAStage) {
  EXPECT_THROW((void)Placement::custom(std::vector{0, 2, 0, 2}), LogicError);
  EXPECT_THROW((void)Placement::custom(std::vector{0, 1, 0}, 2), LogicError);
  EXPECT_THROW((void)Placement::custom(std::vector{0, -1}), LogicError);
  EXPECT_THROW((void)Placement::custom(std::vector<int>{}), LogicError);
}

}  // namespace
}  // namespace pipesim::placement_test
