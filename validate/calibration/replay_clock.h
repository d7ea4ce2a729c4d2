// A device without hardware: three clocks, on which work takes its simulated seconds.
//
// A row that it executes must come out as the simulation has it: that is the check of the row. It
// throws LogicError for blocks that are acquired twice, released unacquired, or left.
#pragma once

#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "validate/calibration/replay_pipeline.h"

namespace pipesim::calibration {

class ClockDevice final : public ReplayDevice {
 public:
  // Seconds that an action takes here; without it, those of the simulation.
  using SecondsOf = std::function<double(const Action&)>;
  explicit ClockDevice(SecondsOf seconds_of = {}) : seconds_of_(std::move(seconds_of)) {}

  [[nodiscard]] Parameters facts() const override;
  // LogicError: it knows work only within a row.
  [[nodiscard]] double seconds_alone(const DeviceWork& work) override;
  void begin(const Row& row) override;
  void hold(Lane lane, double until) override;
  void wait(Lane lane, std::uint32_t action) override;
  void acquire(Lane lane, std::uint32_t block) override;
  void release(Lane lane, std::uint32_t block) override;
  void run(std::uint32_t action) override;
  void pace(std::uint32_t action) override;
  [[nodiscard]] Executed finish() override;
  [[nodiscard]] double end_of(std::uint32_t action) const;

 private:
  enum class Block : std::uint8_t { kNew, kHeld, kGone };

  [[nodiscard]] double& clock(Lane lane) { return clocks_[static_cast<std::size_t>(lane)]; }

  SecondsOf seconds_of_;
  const Row* row_ = nullptr;
  std::array<double, kLanes> clocks_{};
  std::vector<Block> blocks_;
  Executed executed_;
};

// Such devices beside each other; messages take their simulated seconds.
class ClockPipeline final : public ReplayPipeline {
 public:
  explicit ClockPipeline(int devices, const ClockDevice::SecondsOf& seconds_of = {})
      : devices_(static_cast<std::size_t>(devices), ClockDevice(seconds_of)) {}

  [[nodiscard]] ReplayDevice& device(std::uint32_t number) override;
  void begin(const PipelineRows& rows) override;
  void send(std::uint32_t message) override;
  void receive(std::uint32_t message, std::uint32_t device, Lane lane) override;
  [[nodiscard]] ExecutedPipeline finish() override;

 private:
  [[nodiscard]] double there(std::uint32_t message) const;

  const PipelineRows* rows_ = nullptr;
  std::vector<ClockDevice> devices_;
  std::vector<double> there_;  // when each message is; negative: not sent yet
};

}  // namespace pipesim::calibration
