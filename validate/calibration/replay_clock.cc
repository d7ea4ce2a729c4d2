#include "validate/calibration/replay_clock.h"

#include <algorithm>
#include <utility>

#include "sim/core/error.h"

namespace pipesim::calibration {

Parameters ClockDevice::facts() const { return {{"device", "none: simulated times"}}; }

double ClockDevice::seconds_alone(const DeviceWork& /*work*/) {
  throw LogicError("a clock times no work alone");
}

void ClockDevice::begin(const Row& row) {
  row_ = &row;
  clocks_.fill(row.origin);
  blocks_.assign(row.blocks.size(), Block::kNew);
  executed_ = {};
  executed_.start.assign(row.actions.size(), -1);
  executed_.end.assign(row.actions.size(), -1);
}

void ClockDevice::hold(Lane lane, double until) { clock(lane) = std::max(clock(lane), until); }

double ClockDevice::end_of(std::uint32_t action) const {
  if (executed_.end[action] < 0) throw LogicError("a lane waits for what is not enqueued yet");
  return executed_.end[action];
}

void ClockDevice::wait(Lane lane, std::uint32_t action) { hold(lane, end_of(action)); }

void ClockDevice::acquire(Lane /*lane*/, std::uint32_t block) {
  if (blocks_[block] != Block::kNew) throw LogicError("a block is acquired twice");
  blocks_[block] = Block::kHeld;
}

void ClockDevice::release(Lane /*lane*/, std::uint32_t block) {
  if (blocks_[block] != Block::kHeld) throw LogicError("a block is released that is not held");
  blocks_[block] = Block::kGone;
}

void ClockDevice::run(std::uint32_t action) {
  const Action& of = row_->actions[action];
  double& now = clock(of.lane);
  executed_.start[action] = now;
  now += seconds_of_ ? seconds_of_(of) : of.seconds;
  executed_.end[action] = now;
}

void ClockDevice::pace(std::uint32_t action) {
  if (executed_.end[action] < 0) throw LogicError("the host waits for what is not enqueued yet");
}

Executed ClockDevice::finish() {
  if (std::ranges::any_of(blocks_, [](Block block) { return block != Block::kGone; })) {
    throw LogicError("blocks are left when the row has ended");
  }
  return std::move(executed_);
}

ReplayDevice& ClockPipeline::device(std::uint32_t number) { return devices_.at(number); }

void ClockPipeline::begin(const PipelineRows& rows) {
  rows_ = &rows;
  for (std::size_t device = 0; device < devices_.size(); ++device) {
    devices_[device].begin(rows.rows.at(device));
  }
  there_.assign(rows.messages.size(), -1);
}

void ClockPipeline::send(std::uint32_t message) {
  const Message& sent = rows_->messages[message];
  double leaves = 0;
  for (const auto& [device, action] : sent.after) {
    leaves = std::max(leaves, devices_[device].end_of(action));
  }
  for (const std::uint32_t other : sent.messages) leaves = std::max(leaves, there(other));
  there_[message] = leaves + sent.seconds;
}

void ClockPipeline::receive(std::uint32_t message, std::uint32_t device, Lane lane) {
  devices_[device].hold(lane, there(message));
}

double ClockPipeline::there(std::uint32_t message) const {
  if (there_[message] < 0) throw LogicError("a message is waited for that is not sent yet");
  return there_[message];
}

ExecutedPipeline ClockPipeline::finish() {
  ExecutedPipeline executed;
  for (ClockDevice& device : devices_) executed.rows.push_back(device.finish());
  for (const Message& message : rows_->messages) executed.messages.push_back(message.seconds);
  return executed;
}

}  // namespace pipesim::calibration
