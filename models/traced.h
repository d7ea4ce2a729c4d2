// A model's blocks as they were traced (docs/reference/traced.md): matmuls, attention, tensors
// that other kernels read and write, and what a microbatch keeps.
//
// Every size is a product of a constant, the sequences b of a microbatch and their tokens s.
// Tensors are counted in elements. Matrices of columns are divided by their outputs, those of rows
// by their inputs. Tensor ranks divide the values from columns to rows. Expert ranks exchange rows
// where values enter experts' columns and where they leave experts' rows. All other values are
// whole; sequence parallelism divides their tokens.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/kept.h"

namespace pipesim {

// `factor` x b^batch x s^seq.
struct TracedSize {
  double factor = 1;
  std::uint8_t batch = 0;
  std::uint8_t seq = 0;

  [[nodiscard]] bool has_tokens() const { return batch > 0 || seq > 0; }
  friend bool operator==(const TracedSize&, const TracedSize&) = default;
};

enum class TracedDivision : std::uint8_t { kWhole, kTensor, kExperts };

struct TracedTensor {
  TracedSize elements;
  double bytes = 0;  // of one element; 0: as the model's weights
  TracedDivision division = TracedDivision::kWhole;
};

enum class TracedSide : std::uint8_t { kBatch, kM, kN, kK, kNone };

struct TracedMatmul {
  std::string name;  // of the parameter that it reads
  std::array<TracedSize, 4> sides;
  TracedSide divided = TracedSide::kNone;
  bool experts = false;
  bool fp32 = false;  // whatever the model's weights are
};

// A fused kernel over `batch` x `heads` x `queries` rows.
struct TracedAttention {
  TracedSize batch, queries, keys;  // sequences, and tokens of one
  double heads = 0;
  double groups = 0;  // heads of keys and values
  double qk = 0;      // elements of a head's query and key
  double v = 0;       // and of its value
  bool causal = false;
  bool divided = false;  // tensor ranks divide heads and groups
  bool backward = false;
};

struct TracedPass {
  std::vector<TracedMatmul> matmuls;
  std::vector<TracedAttention> attention;
  std::vector<TracedTensor> moved;  // read and written by the other kernels, summed by kind
  int kernels = 0;
};

// Values that enter the ranks' part of a block, or leave it.
struct TracedExchange {
  TracedTensor values;
  bool experts = false;
  bool enters = false;
};

struct TracedKept {
  TracedTensor tensor;
  Kept until = Kept::kForB;
  TracedDivision gathered = TracedDivision::kWhole;  // by which ranks, before a matmul reads it
};

// Heads that tensor ranks share out whole.
struct TracedHeads {
  std::string name;  // of the matrix that makes them; "queries" or "keys" of an attention
  long number = 0;
};

// Numbers of weights.
struct TracedParameters {
  double whole = 0;
  double tensor = 0;
  double experts = 0;
};

struct TracedBlock {
  std::string name;
  TracedPass forward, backward_input, backward_weight;
  std::vector<TracedExchange> exchanges;  // of F, in their order
  std::vector<TracedKept> kept;           // summed by kind
  std::vector<TracedHeads> heads;
  // By kernel of the backward: what the backward has made and still reads.
  std::vector<std::vector<TracedTensor>> working;
  TracedParameters parameters;
  TracedParameters matrices;  // of these, those with two dimensions or more
};

struct Traced {
  int least_tokens = 1;     // of a sequence: its sizes hold from here
  int most_tokens = 1;      // to here
  std::vector<int> layers;  // the block of each, by number
  std::vector<TracedBlock> blocks;
  double other_parameters = 0;  // outside of the blocks, beside embedding, output and last norm
};

}  // namespace pipesim
