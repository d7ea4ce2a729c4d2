// What one GPU does in one pass of one layer, in the terms in which a GPU can be asked how long it
// takes: matmuls by shape, attention, bytes moved by memory-bound kernels, and collectives.
//
// Pure values in fixed room: building and timing one allocates nothing, so that a sweep may do so
// for every point. models/transformer.h makes them, models/gpu.h and models/collective.h time them.
#pragma once

#include <boost/container/static_vector.hpp>
#include <cstdint>

#include "sim/core/enum_array.h"
#include "sim/core/units.h"

namespace pipesim {

enum class Precision : std::uint8_t { kBf16, kFp8, kFp4 };
template <>
inline constexpr std::size_t kSizeOf<Precision> = 3;
// Bytes of a number.
inline double size_of(Precision precision) {
  return precision == Precision::kBf16 ? 2 : precision == Precision::kFp8 ? 1 : 0.5;
}

// C (m x n) = A (m x k) B (k x n), `batch` of them in one kernel; 2 m n k flops each.
struct Matmul {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  Precision precision = Precision::kBf16;
  double result_bytes = 2;  // moved per result: more where it is added to what is there
  bool aligned = true;      // rows of its operands begin at multiples of 16 bytes
  const char* name = "";    // of the layer's part, for people
  bool grouped = false;     // of experts, whose rows differ
  [[nodiscard]] double results() const {
    return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(batch);
  }
  [[nodiscard]] bool adds() const { return result_bytes > 2; }
  [[nodiscard]] Flops flops() const {
    return Flops(2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
                 static_cast<double>(batch));
  }
};

// One fused attention kernel (scores, softmax, values), forward or backward, of what this GPU
// holds. `flops` are those that run: half of full attention when causal.
struct Attention {
  Flops flops;
  Bytes moved;
  int head_size = 0;
  bool backward = false;
};

// Which ranks take part. Ranks fill nodes in the order tensor, context, expert, data, pipeline
// (models/layout.h), which says how many of a group share a node.
enum class Group : std::uint8_t { kTensor, kContext, kExpert, kData };

enum class CollectiveKind : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kSendReceive
};

// `bytes` as nccl-tests counts the size: what a rank holds after an all-gather, before a
// reduce-scatter, all-reduces, or sends to all ranks (itself included) in an all-to-all.
struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Group group = Group::kTensor;
  Bytes bytes;
  // Of an all-to-all: ranks that get the same number, of which a node gets it once; 1: it is sent
  // to every rank by itself.
  int copies = 1;
};

struct Work {
  boost::container::static_vector<Matmul, 24> matmuls;
  boost::container::static_vector<Attention, 2> attention;
  boost::container::static_vector<Collective, 20> collectives;
  Bytes moved;      // read and written by memory-bound kernels
  Bytes permuted;   // of that, by those that sort tokens by their experts and back
  int routed = 0;   // times that tokens are sent to experts and back
  int kernels = 0;  // memory-bound kernels launched
};

}  // namespace pipesim
