// One GPU that executes rows: passes as real kernels, copies of real blocks, on a stream for each
// lane.
//
// CUDA's current device must be the one of `number` when it is made, spoken to and destroyed. All
// times are of CUDA events. Errors: CudaError; after one the device is of no use. LogicError for
// calls out of order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "validate/calibration/harness/block_pool.h"
#include "validate/calibration/harness/replay_passes.h"
#include "validate/calibration/harness/timer.h"
#include "validate/calibration/replay_device.h"

namespace pipesim::calibration {

// Whole bytes, of which there is at least one to allocate, copy and send.
[[nodiscard]] std::size_t whole(double bytes);

class GpuDevice final : public ReplayDevice {
 public:
  // Makes that GPU the current one.
  GpuDevice(const LayerSlice& slice, int number);
  // Nothing is freed while kernels run, nor lost when a row was left half way.
  ~GpuDevice() override;
  GpuDevice(const GpuDevice&) = delete;
  GpuDevice& operator=(const GpuDevice&) = delete;

  [[nodiscard]] Parameters facts() const override;
  [[nodiscard]] double seconds_alone(const DeviceWork& work) override;
  void begin(const Row& row) override;
  void hold(Lane lane, double until) override;
  void wait(Lane lane, std::uint32_t action) override;
  void acquire(Lane lane, std::uint32_t block) override;
  void release(Lane lane, std::uint32_t block) override;
  void run(std::uint32_t action) override;
  void pace(std::uint32_t action) override;
  [[nodiscard]] Executed finish() override;

  [[nodiscard]] const Stream& lane(Lane which) const {
    return lanes_[static_cast<std::size_t>(which)];
  }
  // That an action has ended and given its blocks back. Requires that it was run.
  [[nodiscard]] const Event& over(std::uint32_t action) const { return enqueued(action).over; }

 private:
  // When an action ran: from `begin` to `end`. After `over` its blocks are given back too, and that
  // is what others wait for: the pool then sees that what they acquire comes after.
  struct ActionEvents {
    Event begin, end, over;
    bool enqueued = false;
  };

  [[nodiscard]] const ActionEvents& enqueued(std::uint32_t action) const;
  void prepare(const Row& row);
  void copy(const Action& action) const;
  void copy_one(Lane direction, void* block, std::size_t bytes, cudaStream_t stream) const;
  void need_host(Lane direction, std::size_t bytes);

  Card card_;
  Timer timer_;
  CublasHandle cublas_;
  AttentionLibrary attention_;
  ReplayPasses passes_;
  DeviceBuffer origin_;  // the device's clock when the row started
  std::array<Stream, kLanes> lanes_;
  std::array<PinnedBuffer, kLanes> host_;  // of the copy lanes; a copy overwrites the last one's
  BlockPool pool_;
  Event start_;
  const Row* row_ = nullptr;
  std::vector<ActionEvents> events_;
  std::vector<void*> blocks_;
  std::array<std::uint32_t, kLanes> last_{};  // action of the lane
  std::vector<Point> alone_;
};

}  // namespace pipesim::calibration
