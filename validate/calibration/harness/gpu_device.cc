#include "validate/calibration/harness/gpu_device.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "sim/core/error.h"
#include "validate/calibration/harness/facts.h"
#include "validate/calibration/harness/kernels.h"

namespace pipesim::calibration {
namespace {

// Before a row starts, so that its first passes are enqueued by then.
constexpr uint64_t kLeadNanoseconds = 5'000'000;

// A pass is many launches: several of them back to back, so that the host is not what is timed.
constexpr TimingSettings kAlone{.sample_target_us = 50e3,
                                .budget_us = 500e3,
                                .minimum_repetitions = 5,
                                .maximum_repetitions = 9};

const std::vector<std::uint32_t>& copied(const Action& action) {
  return action.lane == Lane::kCopyOut ? action.releases : action.acquires;
}

}  // namespace

std::size_t whole(double bytes) {
  return static_cast<std::size_t>(std::max<long long>(std::llround(bytes), 1));
}

GpuDevice::GpuDevice(const LayerSlice& slice, int number)
    : card_(number),
      timer_(card_, kAlone),
      passes_(cublas_, attention_, slice),
      origin_(sizeof(uint64_t)) {}

GpuDevice::~GpuDevice() {
  cudaDeviceSynchronize();
  for (void* block : blocks_) {
    if (block != nullptr) cudaFreeAsync(block, lane(Lane::kCompute).get());
  }
  cudaDeviceSynchronize();
}

Parameters GpuDevice::facts() const {
  Parameters facts = facts_of(card_, attention_);
  facts.emplace_back("attention", attention_fact(attention_));
  for (const auto& condition : conditions(alone_)) facts.push_back(condition);
  return facts;
}

double GpuDevice::seconds_alone(const DeviceWork& work) {
  Point point;
  if (work.task == TaskKind::kCompute) {
    passes_.prepare(work.stage);
    timer_.measure(
        point, [&](cudaStream_t stream, int) { passes_.enqueue(work.pass, work.stage, stream); });
  } else {
    if (work.bytes <= 0) return 0;
    const Lane direction = work.task == TaskKind::kCopyOut ? Lane::kCopyOut : Lane::kCopyIn;
    const DeviceBuffer block(whole(work.bytes));
    need_host(direction, block.bytes());
    timer_.measure(point, [&](cudaStream_t stream, int) {
      copy_one(direction, block.at(), block.bytes(), stream);
    });
  }
  alone_.push_back(std::move(point));
  return alone_.back().time_us.median * 1e-6;
}

void GpuDevice::need_host(Lane direction, std::size_t bytes) {
  PinnedBuffer& host = host_[static_cast<std::size_t>(direction)];
  if (host.bytes() >= bytes) return;
  host = PinnedBuffer();  // not both at once
  host = PinnedBuffer(bytes);
}

void GpuDevice::copy_one(Lane direction, void* block, std::size_t bytes,
                         cudaStream_t stream) const {
  void* host = host_[static_cast<std::size_t>(direction)].at();
  const bool out = direction == Lane::kCopyOut;
  check_cuda(cudaMemcpyAsync(out ? host : block, out ? block : host, bytes,
                             out ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice, stream),
             "cudaMemcpyAsync");
}

// Everything that would make the device wait is had before the row starts.
void GpuDevice::prepare(const Row& row) {
  for (const Action& action : row.actions) {
    if (action.lane == Lane::kCompute) {
      passes_.prepare(action.work.stage);
      continue;
    }
    for (const std::uint32_t block : copied(action)) {
      need_host(action.lane, whole(row.blocks[block]));
    }
  }
  if (events_.size() < row.actions.size()) events_.resize(row.actions.size());
  for (ActionEvents& events : events_) events.enqueued = false;
}

void GpuDevice::begin(const Row& row) {
  if (row_ != nullptr) throw LogicError("a row begins before the last one is finished");
  prepare(row);
  check_cuda(cudaDeviceSynchronize(), "before a row");
  row_ = &row;
  blocks_.assign(row.blocks.size(), nullptr);
  pool_.restart_peak();
  const Stream& compute = lane(Lane::kCompute);
  kernels::delay(kLeadNanoseconds, compute.get());
  kernels::stamp(origin_.at<uint64_t>(), compute.get());
  start_.record(compute);
  for (const Stream& other : lanes_) {
    check_cuda(cudaStreamWaitEvent(other.get(), start_.get(), 0), "cudaStreamWaitEvent");
  }
}

void GpuDevice::hold(Lane which, double until) {
  const long long nanoseconds = std::llround((until - row_->origin) * 1e9);
  if (nanoseconds <= 0) return;
  kernels::hold_until(origin_.at<uint64_t>(), static_cast<uint64_t>(nanoseconds),
                      lane(which).get());
}

const GpuDevice::ActionEvents& GpuDevice::enqueued(std::uint32_t action) const {
  // An event that was never recorded holds nobody up.
  if (!events_[action].enqueued) throw LogicError("a lane waits for what is not enqueued yet");
  return events_[action];
}

void GpuDevice::wait(Lane which, std::uint32_t action) {
  check_cuda(cudaStreamWaitEvent(lane(which).get(), enqueued(action).over.get(), 0),
             "cudaStreamWaitEvent");
}

void GpuDevice::acquire(Lane which, std::uint32_t block) {
  if (blocks_[block] != nullptr) throw LogicError("a block is acquired twice");
  blocks_[block] = pool_.acquire(whole(row_->blocks[block]), lane(which));
}

void GpuDevice::release(Lane which, std::uint32_t block) {
  if (blocks_[block] == nullptr) throw LogicError("a block is released that is not held");
  pool_.release(std::exchange(blocks_[block], nullptr), lane(which));
  // Once more, now after the release; nobody waits for the action before all of it is enqueued.
  events_[last_[static_cast<std::size_t>(which)]].over.record(lane(which));
}

void GpuDevice::copy(const Action& action) const {
  for (const std::uint32_t block : copied(action)) {
    if (blocks_[block] == nullptr) throw LogicError("a block is copied that is not held");
    copy_one(action.lane, blocks_[block], whole(row_->blocks[block]), lane(action.lane).get());
  }
}

void GpuDevice::run(std::uint32_t number) {
  const Action& action = row_->actions[number];
  const Stream& stream = lane(action.lane);
  ActionEvents& events = events_[number];
  events.begin.record(stream);
  if (action.lane == Lane::kCompute) {
    passes_.enqueue(action.work.pass, action.work.stage, stream.get());
  } else {
    copy(action);
  }
  events.end.record(stream);
  events.over.record(stream);
  events.enqueued = true;
  last_[static_cast<std::size_t>(action.lane)] = number;
}

void GpuDevice::pace(std::uint32_t action) { enqueued(action).end.synchronize(); }

Executed GpuDevice::finish() {
  for (const Stream& stream : lanes_) stream.synchronize();
  if (std::ranges::any_of(blocks_, [](const void* block) { return block != nullptr; })) {
    throw LogicError("blocks are left when the row has ended");
  }
  Executed executed;
  for (std::uint32_t number = 0; number < row_->actions.size(); ++number) {
    const ActionEvents& events = enqueued(number);
    executed.start.push_back(row_->origin + events.begin.microseconds_since(start_) * 1e-6);
    executed.end.push_back(row_->origin + events.end.microseconds_since(start_) * 1e-6);
  }
  executed.allocator_peak = pool_.peak_bytes();
  row_ = nullptr;
  return executed;
}

}  // namespace pipesim::calibration
