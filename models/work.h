// One GPU's work in one pass of one layer, in terms that a GPU model can time. It holds matmuls by
// shape, attention, bytes moved by memory-bound kernels, and collectives.
//
// Pure values in fixed room: building and timing one allocates nothing. A sweep does so for every
// point. models/transformer.h makes them, models/gpu.h and models/collective.h time them.
#pragma once

#include <boost/container/static_vector.hpp>
#include <cstdint>

#include "models/kernel_work.h"
#include "sim/core/units.h"

namespace pipesim {

// Which ranks take part. Ranks fill nodes in the order tensor, context, expert, data, pipeline
// (models/layout.h), which says how many of a group share a node.
// Context ranks may divide heads within attention (kContextHeads, neighbours); kContext are those
// that divide the sequence there, one of each such group.
enum class Group : std::uint8_t { kTensor, kContext, kExpert, kData, kContextHeads };

enum class CollectiveKind : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kSendReceive
};

// `bytes` is the size as nccl-tests counts it. A rank holds so many after an all-gather or before a
// reduce-scatter, all-reduces them, or sends them to all ranks (itself included) in an all-to-all.
struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Group group = Group::kTensor;
  Bytes bytes;
  // In an all-to-all: ranks that get the same number, of which a node gets it once; 1: it is sent
  // to every rank by itself.
  int copies = 1;
  double reach = 1;  // share of the ranks among which a token's stand
  int steps = 1;     // so many times, one after the other
  // The kernel in Work::attention that this runs beside; -1: none. The kernel runs in as many equal
  // parts as the group has ranks, each step beside one part.
  int beside = -1;
};

struct Work {
  // At most 28, 3 and 28 of a layer: the backward of an MTP layer with unfused latent attention and
  // experts, all recomputed. An encoder has 2 matmuls a projector, and each has an adapter.
  boost::container::static_vector<Matmul, 64> matmuls;
  boost::container::static_vector<Attention, 6> attention;
  boost::container::static_vector<Collective, 40> collectives;
  Bytes moved;      // read and written by memory-bound kernels
  Bytes permuted;   // of that, by those that sort tokens by their experts and back
  Bytes biased;     // beside that, by those that add biases to what experts made
  int routed = 0;   // times that tokens are sent to experts and back
  int kernels = 0;  // memory-bound kernels launched
};

}  // namespace pipesim
