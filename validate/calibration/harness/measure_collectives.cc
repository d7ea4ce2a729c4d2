#include "validate/calibration/harness/nccl.h"
#include "validate/calibration/harness/session.h"

#ifdef PIPESIM_NCCL

#include <array>
#include <memory>
#include <string_view>
#include <vector>

namespace pipesim::calibration {
namespace {

enum class Operation { kSendReceive, kExchange, kAllReduce, kAllGather, kReduceScatter, kAllToAll };

struct NamedOperation {
  Operation operation;
  const char* name;
};

// send_recv: every rank sends to the next and receives from the one before, as a pipeline does;
// exchange: ranks 0 and 1 send to each other at once.
constexpr std::array<NamedOperation, 6> kOperations{{{Operation::kSendReceive, "send_recv"},
                                                     {Operation::kExchange, "exchange"},
                                                     {Operation::kAllReduce, "all_reduce"},
                                                     {Operation::kAllGather, "all_gather"},
                                                     {Operation::kReduceScatter, "reduce_scatter"},
                                                     {Operation::kAllToAll, "all_to_all"}}};
constexpr int64_t kBackgroundBytes = int64_t{64} << 20;

// Ranks 0..n-1 on devices 0..n-1 of this process; rank 0 works on the stream it is handed.
class Ranks {
 public:
  Ranks(int count, int64_t bytes) : communicators_(communicate(count)) {
    for (int rank = 0; rank < count; ++rank) {
      check_cuda(cudaSetDevice(rank), "cudaSetDevice");
      streams_.push_back(std::make_unique<Stream>());
      sources_.push_back(
          std::make_unique<Arena>(static_cast<std::size_t>(bytes), Filling::kBf16, 11));
      targets_.push_back(
          std::make_unique<Arena>(static_cast<std::size_t>(bytes), Filling::kBf16, 12));
    }
    check_cuda(cudaSetDevice(0), "cudaSetDevice");
  }

  void synchronize() const {
    for (const auto& stream : streams_) stream->synchronize();
  }

  // `bytes` is the message of a send, or the whole buffer of a collective, as nccl-tests count it.
  [[nodiscard]] Work work(Operation operation, int64_t bytes) const {
    return [this, operation, bytes](cudaStream_t stream, int) {
      NcclGroup group;
      for (std::size_t rank = 0; rank < communicators_.size(); ++rank) {
        enqueue(operation, bytes, rank, rank == 0 ? stream : streams_[rank]->get());
      }
      group.end();
    };
  }

 private:
  void enqueue(Operation operation, int64_t bytes, std::size_t rank, cudaStream_t stream) const {
    const std::size_t ranks = communicators_.size();
    const std::size_t count = static_cast<std::size_t>(bytes) / sizeof(Bfloat16);
    const std::size_t share = count / ranks;
    const auto* source = sources_[rank]->at<Bfloat16>(0);
    auto* target = targets_[rank]->at<Bfloat16>(0);
    ncclComm_t communicator = communicators_[rank].get();
    const auto send_receive = [&](std::size_t to, std::size_t from, const Bfloat16* out,
                                  Bfloat16* in, std::size_t elements) {
      check_nccl(ncclSend(out, elements, ncclBfloat16, static_cast<int>(to), communicator, stream),
                 "ncclSend");
      check_nccl(ncclRecv(in, elements, ncclBfloat16, static_cast<int>(from), communicator, stream),
                 "ncclRecv");
    };
    switch (operation) {
      case Operation::kSendReceive:
        return send_receive((rank + 1) % ranks, (rank + ranks - 1) % ranks, source, target, count);
      case Operation::kExchange:
        if (rank < 2) send_receive(1 - rank, 1 - rank, source, target, count);
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
        for (std::size_t other = 0; other < ranks; ++other) {
          send_receive(other, other, source + other * share, target + other * share, share);
        }
        return;
    }
  }

  std::vector<Communicator> communicators_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Arena>> sources_, targets_;
};

void measure_group(Session& session, int count) {
  const Ranks ranks(count, session.plan.message_bytes.back());
  for (const auto& [operation, name] : kOperations) {
    for (const int64_t bytes : session.plan.message_bytes) {
      Point point;
      point.group = "nccl";
      point.name = name;
      point.parameters = {{"ranks", std::to_string(count)}, {"size", std::to_string(bytes)}};
      point.bytes = static_cast<double>(bytes);
      session.attempt(std::move(point), [&](Point& p) {
        session.timer.measure(p, ranks.work(operation, bytes));
        ranks.synchronize();
      });
    }
    const MatmulSpec spec{MatmulPass::kForward, Precision::kBf16, 8192, 8192, 8192};
    Point point;
    point.group = "interference";
    point.name = "matmul";
    point.parameters = {{"during", std::string(name) + "_" + std::to_string(count)}};
    point.flops = spec.flops();
    session.attempt(std::move(point), [&](Point& p) {
      session.timer.measure_with(p, matmul_work(session, spec),
                                 {ranks.work(operation, kBackgroundBytes)});
      ranks.synchronize();
    });
  }
}

}  // namespace

void measure_collectives(Session& session) {
  const int devices = session.card.facts().devices;
  if (devices < 2) {
    session.not_measured("nccl", "one GPU: there is nobody to send to");
    return;
  }
  for (int count = 2; count <= devices; count *= 2) {
    try {
      measure_group(session, count);
    } catch (const NcclError& error) {
      session.not_measured("nccl/ranks=" + std::to_string(count), error.what());
    }
  }
}

}  // namespace pipesim::calibration

#else

namespace pipesim::calibration {

void measure_collectives(Session& session) { session.not_measured("nccl", "built without NCCL"); }

}  // namespace pipesim::calibration

#endif
