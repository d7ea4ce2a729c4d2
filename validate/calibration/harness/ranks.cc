#include "validate/calibration/harness/ranks.h"

#ifdef PIPESIM_NCCL

#include <exception>
#include <utility>

namespace pipesim::calibration {
namespace {

// Shares of a collective begin where NCCL moves 16 bytes at a time.
constexpr std::size_t kWhole = 16 / sizeof(Bfloat16);

}  // namespace

Ranks::Ranks(int count, int64_t bytes) : Ranks(communicate(count), count, 0, 1, bytes) {}

Ranks::Ranks(const ncclUniqueId& id, const NodeGroup& group, int node, int64_t bytes)
    : Ranks(communicate(id, group.ranks(), node * group.gpus, group.gpus), group.ranks(),
            node * group.gpus, group.gpus, bytes) {}

Ranks::Ranks(std::vector<Communicator> communicators, int ranks, int first, int stride,
             int64_t bytes)
    : communicators_(std::move(communicators)), ranks_(ranks), first_(first), stride_(stride) {
  const auto size = static_cast<std::size_t>(bytes);
  for (std::size_t device = 0; device < communicators_.size(); ++device) {
    check_cuda(cudaSetDevice(static_cast<int>(device)), "cudaSetDevice");
    streams_.push_back(std::make_unique<Stream>());
    sources_.push_back(std::make_unique<Arena>(size, Filling::kBf16, 11));
    targets_.push_back(std::make_unique<Arena>(size, Filling::kBf16, 12));
  }
  check_cuda(cudaSetDevice(0), "cudaSetDevice");
}

Ranks::~Ranks() {
  if (std::uncaught_exceptions() == 0) return;
  // A collective that lacks a rank would keep its memory from being freed for ever.
  for (Communicator& communicator : communicators_) ncclCommAbort(communicator.release());
}

void Ranks::synchronize() const {
  for (const auto& stream : streams_) stream->synchronize();
}

Work Ranks::work(Operation operation, int64_t bytes) const {
  return [this, operation, bytes](cudaStream_t stream, int) {
    NcclGroup group;
    for (std::size_t mine = 0; mine < communicators_.size(); ++mine) {
      enqueue(operation, bytes, mine, mine == 0 ? stream : streams_[mine]->get());
    }
    group.end();
  };
}

void Ranks::enqueue(Operation operation, int64_t bytes, std::size_t mine,
                    cudaStream_t stream) const {
  const int rank = first_ + static_cast<int>(mine);
  const auto ranks = static_cast<std::size_t>(ranks_);
  const std::size_t count = static_cast<std::size_t>(bytes) / sizeof(Bfloat16);
  const std::size_t share = count / ranks / kWhole * kWhole;
  const auto* source = sources_[mine]->at<Bfloat16>(0);
  auto* target = targets_[mine]->at<Bfloat16>(0);
  ncclComm_t communicator = communicators_[mine].get();
  const auto send_receive = [&](int to, int from, const Bfloat16* out, Bfloat16* in,
                                std::size_t elements) {
    check_nccl(ncclSend(out, elements, ncclBfloat16, to, communicator, stream), "ncclSend");
    check_nccl(ncclRecv(in, elements, ncclBfloat16, from, communicator, stream), "ncclRecv");
  };
  switch (operation) {
    case Operation::kSendReceive:
      return send_receive((rank + stride_) % ranks_, (rank + ranks_ - stride_) % ranks_, source,
                          target, count);
    case Operation::kExchange:
      if (rank < 2 * stride_) {
        const int other = rank < stride_ ? rank + stride_ : rank - stride_;
        send_receive(other, other, source, target, count);
      }
      return;
    case Operation::kAllReduce:
      return check_nccl(
          ncclAllReduce(source, target, count, ncclBfloat16, ncclSum, communicator, stream),
          "ncclAllReduce");
    case Operation::kAllGather:
      return check_nccl(ncclAllGather(source, target, share, ncclBfloat16, communicator, stream),
                        "ncclAllGather");
    case Operation::kReduceScatter:
      return check_nccl(
          ncclReduceScatter(source, target, share, ncclBfloat16, ncclSum, communicator, stream),
          "ncclReduceScatter");
    case Operation::kAllToAll:
      for (int other = 0; other < ranks_; ++other) {
        const std::size_t part = static_cast<std::size_t>(other) * share;
        send_receive(other, other, source + part, target + part, share);
      }
      return;
  }
}

}  // namespace pipesim::calibration

#endif
