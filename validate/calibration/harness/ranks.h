// This process's ranks of a communicator, with their buffers, and the collectives among them. Only
// where NCCL is (PIPESIM_NCCL).
#pragma once

#include "validate/calibration/harness/nccl.h"

#ifdef PIPESIM_NCCL

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "validate/calibration/harness/arena.h"
#include "validate/calibration/nodes.h"

namespace pipesim::calibration {

enum class Operation { kSendReceive, kExchange, kAllReduce, kAllGather, kReduceScatter, kAllToAll };

struct NamedOperation {
  Operation operation;
  const char* name;
};

// send_recv: every rank sends to the next and receives from the one before, as a pipeline does;
// exchange: the first two send to each other at once. Over nodes the next rank is the same GPU of
// the next node, and all GPUs of the first two nodes exchange.
inline constexpr std::array<NamedOperation, 6> kOperations{
    {{Operation::kSendReceive, "send_recv"},
     {Operation::kExchange, "exchange"},
     {Operation::kAllReduce, "all_reduce"},
     {Operation::kAllGather, "all_gather"},
     {Operation::kReduceScatter, "reduce_scatter"},
     {Operation::kAllToAll, "all_to_all"}}};

// Ranks with buffers of at most `bytes` each. The first rank of the process works on the stream
// that its work is handed, every other on one of its own.
class Ranks {
 public:
  // All ranks, 0 to count - 1, on the devices of these numbers.
  Ranks(int count, int64_t bytes);
  // The ranks of this node; returns when the other nodes have made theirs with the same id.
  Ranks(const ncclUniqueId& id, const NodeGroup& group, int node, int64_t bytes);

  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks();

  // `bytes` is the message of a send, or the whole buffer of a collective, as nccl-tests count it.
  // The ranks must outlive it.
  [[nodiscard]] Work work(Operation operation, int64_t bytes) const;

  // The first rank's stream, for callers without one.
  [[nodiscard]] const Stream& stream() const { return *streams_.front(); }
  void synchronize() const;

 private:
  Ranks(std::vector<Communicator> communicators, int ranks, int first, int stride, int64_t bytes);
  void enqueue(Operation operation, int64_t bytes, std::size_t mine, cudaStream_t stream) const;

  std::vector<Communicator> communicators_;
  int ranks_;   // of all processes
  int first_;   // of this one
  int stride_;  // from a rank to the next in send_recv and exchange
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Arena>> sources_, targets_;
};

}  // namespace pipesim::calibration

#endif
