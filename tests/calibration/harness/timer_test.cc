#include "validate/calibration/harness/timer.h"

#include <chrono>
#include <gtest/gtest.h>
#include <thread>

#include "tests/calibration/harness/virtual_device.h"
#include "validate/calibration/harness/arena.h"
#include "validate/calibration/harness/linear.h"

namespace pipesim::calibration {
namespace {

TEST(BatchPlan, FillsTheSampleAndTheBudget) {
  const TimingSettings settings{.sample_target_us = 1000, .budget_us = 20e3};
  const BatchPlan small = plan_batches(settings, 50);
  EXPECT_EQ(small.launches, 20);
  EXPECT_EQ(small.repetitions, 20);
}

TEST(BatchPlan, TakesTheFewestRepetitionsOfLongWorkAndTheMostOfShort) {
  const TimingSettings settings{.sample_target_us = 1000,
                                .budget_us = 20e3,
                                .minimum_repetitions = 7,
                                .maximum_repetitions = 25};
  EXPECT_EQ(plan_batches(settings, 50e3).launches, 1);
  EXPECT_EQ(plan_batches(settings, 50e3).repetitions, 7);
  EXPECT_EQ(plan_batches(settings, 1).launches, 200);
  EXPECT_EQ(plan_batches(settings, 1).repetitions, 25);
  EXPECT_EQ(plan_batches(settings, 0).repetitions, 25);
}

// A launch of many ranks' collective takes the host longer than the device works on it.
TEST(Timer, TimesTheDeviceWhereLaunchesTakeTheHostLonger) {
  namespace vd = virtual_device;
  constexpr double kDeviceUs = 10;
  constexpr double kHostUs = 60;
  const Work work = [](cudaStream_t stream, int) {
    std::this_thread::sleep_for(std::chrono::microseconds(static_cast<int>(kHostUs)));
    vd::state().host_us += kHostUs;
    vd::advance(stream, kDeviceUs);
  };
  const Card card(0);
  Timer timer(card, {.sample_target_us = 200, .budget_us = 2e3});
  Point alone;
  timer.measure(alone, work);
  EXPECT_NEAR(alone.time_us.median, kDeviceUs, 1e-6);
  Point beside;
  timer.measure_with(beside, work,
                     {[](cudaStream_t stream, int) { vd::advance(stream, kDeviceUs); }});
  EXPECT_NEAR(beside.time_us.median, kDeviceUs, 1e-6);
}

TEST(Timer, KeepsTheCardBusyForTheSecondsThatItIsTold) {
  namespace vd = virtual_device;
  const Card card(0);
  Timer timer(card, {});
  const double before = vd::state().host_us;
  timer.keep_busy([](cudaStream_t stream, int) { vd::advance(stream, 100); }, 0.5);
  EXPECT_GE(vd::state().host_us - before, 0.5e6);
  EXPECT_LT(vd::state().host_us - before, 1e6);
}

TEST(Rotation, SpreadsLaunchesOverMoreThanTheCache) {
  constexpr std::size_t kMiB = 1 << 20;
  const Rotation rotation(1024 * kMiB, 10 * kMiB, 50 * kMiB);
  EXPECT_GE(rotation.regions() * 10, 200u);
  EXPECT_EQ(rotation.offset(0), 0u);
  EXPECT_EQ(rotation.offset(1), 10 * kMiB);
  EXPECT_EQ(rotation.offset(static_cast<int>(rotation.regions())), 0u);
}

TEST(Rotation, NeverLeavesTheArena) {
  for (const std::size_t region : {std::size_t{1}, std::size_t{1000}, std::size_t{700000}}) {
    const Rotation rotation(1 << 20, region, 50 << 20);
    for (int launch = 0; launch < 5000; ++launch) {
      ASSERT_LE(rotation.offset(launch) + region, std::size_t{1} << 20);
    }
  }
}

TEST(Rotation, RefusesARegionLargerThanTheArena) {
  EXPECT_THROW(Rotation(1000, 2000, 0), OutOfMemory);
}

TEST(GemmLayout, EveryPassSumsOverTheDimensionThatVanishes) {
  const MatmulSpec spec{MatmulPass::kForward, Precision::kBf16, 3, 5, 7};
  const auto with = [&](MatmulPass pass) {
    MatmulSpec copy = spec;
    copy.pass = pass;
    return layout_of(copy);
  };
  EXPECT_EQ(with(MatmulPass::kForward).inner, 5);
  EXPECT_EQ(with(MatmulPass::kInputGradient).inner, 7);
  EXPECT_EQ(with(MatmulPass::kWeightGradient).inner, 3);
  EXPECT_TRUE(with(MatmulPass::kWeightGradient).accumulate);
  EXPECT_FALSE(with(MatmulPass::kForward).fp32_result);
}

}  // namespace
}  // namespace pipesim::calibration
