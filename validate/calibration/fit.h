// The constants of models/gpu.h and models/collective.h that fit measured rows best.
//
// Fits minimise the mean absolute relative error, so that short kernels weigh as much as long ones
// and single outliers do not pull. Matmuls count by size: in full those that training uses (m, n
// and k multiples of 64, at least 1024), the others of at least 64 with a quarter of the weight.
// Deterministic. Errors: std::invalid_argument without rows that are long enough.
#pragma once

#include <span>
#include <vector>

#include "models/collective.h"
#include "models/gpu.h"

namespace pipesim::calibration {

struct MatmulRow {
  Matmul matmul;
  Seconds measured;
};

[[nodiscard]] bool used_in_training(const Matmul& matmul);

// `gpu` with launch and matmul constants fitted; its peak, memory bandwidth and multiprocessors
// are as given.
[[nodiscard]] Gpu fit_matmul(Gpu gpu, std::span<const MatmulRow> rows);

// (model - measured) / measured.
[[nodiscard]] std::vector<double> errors(const Gpu& gpu, std::span<const MatmulRow> rows);

// The share of the fp8 peak, the curve's other constants being known. All rows in fp8; the GPU has
// it.
[[nodiscard]] double fit_fp8_efficiency(const Gpu& gpu, std::span<const MatmulRow> rows);

struct AttentionRow {
  Attention attention;
  Seconds measured;
};

// Rows of one direction; `gpu` with that curve. The head's ramp is fitted where heads of two sizes
// or more were measured, and stays as it is where not.
[[nodiscard]] Gpu fit_attention(Gpu gpu, std::span<const AttentionRow> rows);
[[nodiscard]] std::vector<double> errors(const Gpu& gpu, std::span<const AttentionRow> rows);

// A memory-bound piece of work.
struct StreamRow {
  Bytes moved;
  int kernels = 1;
  Seconds measured;
};

// `gpu` with its share of the memory bandwidth.
[[nodiscard]] Gpu fit_streaming(Gpu gpu, std::span<const StreamRow> rows);
[[nodiscard]] std::vector<double> errors(const Gpu& gpu, std::span<const StreamRow> rows);

// seconds = latency + bytes / bandwidth
struct SizeCurve {
  Seconds latency;
  BytesPerSecond bandwidth{1};
};

struct SizeRow {
  Bytes bytes;
  Seconds measured;
};

[[nodiscard]] SizeCurve fit_by_size(std::span<const SizeRow> rows);
[[nodiscard]] std::vector<double> errors(const SizeCurve& curve, std::span<const SizeRow> rows);

// Messages by size, of which each way carries one.
[[nodiscard]] MessageCurve fit_messages(std::span<const SizeRow> rows);
[[nodiscard]] std::vector<double> errors(const MessageCurve& curve, std::span<const SizeRow> rows);

// Compute, alone and while so many flows (directions of copies or messages, or a collective) take
// their share of the GPU from it: seconds = alone / (1 - flows x share).
struct BesideRow {
  Seconds alone;
  int flows = 1;
  Seconds measured;
};

// At most `most`; 0 where nothing is lost.
[[nodiscard]] double fit_share(std::span<const BesideRow> rows, double most);
[[nodiscard]] std::vector<double> errors(double share, std::span<const BesideRow> rows);

struct CollectiveRow {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int ranks = 2;
  Bytes bytes;
  Seconds measured;
};

// Rows of one kind. A curve from one number of ranks holds for that number, and is a guess for
// others.
[[nodiscard]] CollectiveCurve fit_collective(std::span<const CollectiveRow> rows);
[[nodiscard]] std::vector<double> errors(const CollectiveCurve& curve,
                                         std::span<const CollectiveRow> rows);

// A collective of `nodes` nodes, all groups' ranks of one number a node.
struct NetworkRow {
  Collective collective;
  GroupShape group;
  Seconds measured;
};

// Rows of one kind. `node` has the curves within a node and as many NICs as GPUs, so that the
// bandwidth is a GPU's share of them.
[[nodiscard]] MessageCurve fit_between_nodes(Interconnect node, std::span<const NetworkRow> rows);
[[nodiscard]] std::vector<double> errors(const Interconnect& interconnect,
                                         std::span<const NetworkRow> rows);

}  // namespace pipesim::calibration
