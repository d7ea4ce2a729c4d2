// GPUs beside each other that execute a pipeline's rows and send each other messages over NCCL.
//
// Each direction between two GPUs has a communicator and a stream at both ends of its own, so that
// messages wait for none but those before them on the same way, as point-to-point messages of a
// training framework do. Both ends of a message start when all that it waits for is over, so that
// no receiver spends multiprocessors on waiting. One thread hands everything out. Only where NCCL
// is (PIPESIM_NCCL). Errors: CudaError, NcclError.
#pragma once

#ifdef PIPESIM_NCCL

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "validate/calibration/harness/gpu_device.h"
#include "validate/calibration/harness/nccl.h"
#include "validate/calibration/replay_pipeline.h"

namespace pipesim::calibration {

class GpuPipeline final : public ReplayPipeline {
 public:
  GpuPipeline(const LayerSlice& slice, int devices);
  ~GpuPipeline() override;
  GpuPipeline(const GpuPipeline&) = delete;
  GpuPipeline& operator=(const GpuPipeline&) = delete;

  [[nodiscard]] ReplayDevice& device(std::uint32_t number) override;
  void begin(const PipelineRows& rows) override;
  void send(std::uint32_t message) override;
  void receive(std::uint32_t message, std::uint32_t device, Lane lane) override;
  [[nodiscard]] ExecutedPipeline finish() override;

 private:
  struct End {
    Communicator rank;
    DeviceBuffer buffer;
    std::unique_ptr<Stream> stream;
  };
  struct Channel {
    End sender, receiver;
  };
  // Events on the receiver.
  struct MessageEvents {
    Event begin, there;
    bool sent = false;
  };
  using Way = std::pair<std::uint32_t, std::uint32_t>;  // sender, receiver

  [[nodiscard]] static Channel open(const Way& way, std::size_t bytes);
  void open_channels(const PipelineRows& rows);
  [[nodiscard]] const Event& over(const Message::Made& made) const;
  [[nodiscard]] const Event& there(std::uint32_t message) const;
  void wait_for_all(const Message& message, const Stream& stream) const;

  std::vector<std::unique_ptr<GpuDevice>> devices_;
  std::map<Way, Channel> channels_;
  std::vector<std::unique_ptr<MessageEvents>> events_;  // null: a message without bytes
  const PipelineRows* rows_ = nullptr;
};

}  // namespace pipesim::calibration

#endif
