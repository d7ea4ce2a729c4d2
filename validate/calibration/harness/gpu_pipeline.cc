#include "validate/calibration/harness/gpu_pipeline.h"

#ifdef PIPESIM_NCCL

#include <array>

#include "sim/core/error.h"

namespace pipesim::calibration {
namespace {

void select(std::uint32_t device) {
  check_cuda(cudaSetDevice(static_cast<int>(device)), "cudaSetDevice");
}

void wait(const Stream& stream, const Event& event) {
  check_cuda(cudaStreamWaitEvent(stream.get(), event.get(), 0), "cudaStreamWaitEvent");
}

}  // namespace

GpuPipeline::GpuPipeline(const LayerSlice& slice, int devices) {
  for (int number = 0; number < devices; ++number) {
    devices_.push_back(std::make_unique<GpuDevice>(slice, number));
  }
}

GpuPipeline::~GpuPipeline() {
  for (std::size_t number = 0; number < devices_.size(); ++number) {
    cudaSetDevice(static_cast<int>(number));
    devices_[number].reset();  // waits for all that the GPU still does
  }
  channels_.clear();
  events_.clear();
  cudaSetDevice(0);
}

ReplayDevice& GpuPipeline::device(std::uint32_t number) {
  select(number);
  return *devices_.at(number);
}

GpuPipeline::Channel GpuPipeline::open(const Way& way, std::size_t bytes) {
  const std::array<int, 2> devices{static_cast<int>(way.first), static_cast<int>(way.second)};
  std::vector<Communicator> ranks = communicate(devices);
  Channel channel;
  const auto fill = [&](End& end, std::uint32_t device, Communicator rank) {
    select(device);
    end.rank = std::move(rank);
    end.buffer = DeviceBuffer(bytes);
    end.stream = std::make_unique<Stream>();
  };
  fill(channel.sender, way.first, std::move(ranks[0]));
  fill(channel.receiver, way.second, std::move(ranks[1]));
  return channel;
}

void GpuPipeline::open_channels(const PipelineRows& rows) {
  for (const Message& message : rows.messages) {
    events_.push_back(nullptr);
    if (message.bytes <= 0) continue;
    const Way way{message.from, message.to};
    const auto found = channels_.find(way);
    const std::size_t bytes = whole(message.bytes);
    if (found == channels_.end() || found->second.sender.buffer.bytes() < bytes) {
      if (found != channels_.end()) channels_.erase(found);
      channels_.emplace(way, open(way, bytes));
    }
    select(message.to);
    events_.back() = std::make_unique<MessageEvents>();
  }
}

void GpuPipeline::begin(const PipelineRows& rows) {
  if (rows_ != nullptr) throw LogicError("a pipeline begins before the last one is finished");
  events_.clear();
  open_channels(rows);
  rows_ = &rows;
  for (std::uint32_t number = 0; number < devices_.size(); ++number) {
    device(number).begin(rows.rows.at(number));
  }
}

void GpuPipeline::send(std::uint32_t number) {
  const Message& message = rows_->messages[number];
  if (message.bytes <= 0) return;
  const Channel& channel = channels_.at({message.from, message.to});
  MessageEvents& events = *events_[number];
  const std::size_t bytes = whole(message.bytes);
  select(message.from);
  wait_for_all(message, *channel.sender.stream);
  select(message.to);
  wait_for_all(message, *channel.receiver.stream);
  events.begin.record(*channel.receiver.stream);
  NcclGroup both;
  check_nccl(ncclSend(channel.sender.buffer.at(), bytes, ncclInt8, 1, channel.sender.rank.get(),
                      channel.sender.stream->get()),
             "ncclSend");
  check_nccl(ncclRecv(channel.receiver.buffer.at(), bytes, ncclInt8, 0, channel.receiver.rank.get(),
                      channel.receiver.stream->get()),
             "ncclRecv");
  both.end();
  events.there.record(*channel.receiver.stream);
  events.sent = true;
}

const Event& GpuPipeline::over(const Message::Made& made) const {
  return devices_[made.device]->over(made.action);
}

void GpuPipeline::wait_for_all(const Message& message, const Stream& stream) const {
  for (const Message::Made& made : message.after) wait(stream, over(made));
  for (const std::uint32_t other : message.messages) wait(stream, there(other));
}

const Event& GpuPipeline::there(std::uint32_t number) const {
  const Message& message = rows_->messages[number];
  if (message.bytes <= 0) return over(message.after.front());
  if (!events_[number]->sent) throw LogicError("a message is waited for that is not sent yet");
  return events_[number]->there;
}

void GpuPipeline::receive(std::uint32_t message, std::uint32_t device, Lane lane) {
  select(device);
  wait(devices_[device]->lane(lane), there(message));
}

ExecutedPipeline GpuPipeline::finish() {
  ExecutedPipeline executed;
  for (std::uint32_t number = 0; number < devices_.size(); ++number) {
    executed.rows.push_back(device(number).finish());
  }
  for (std::uint32_t number = 0; number < events_.size(); ++number) {
    if (events_[number] == nullptr) {
      executed.messages.push_back(0);
      continue;
    }
    select(rows_->messages[number].to);
    const Event& end = there(number);
    end.synchronize();
    executed.messages.push_back(end.microseconds_since(events_[number]->begin) * 1e-6);
  }
  select(0);
  rows_ = nullptr;
  return executed;
}

}  // namespace pipesim::calibration

#endif
