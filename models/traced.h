// A model's blocks as tools/trace_torch.py saw them run (docs/reference/traced.md).
//
// Every size is a product of a constant, the microbatch b and the sequence s. Tensor ranks divide
// the values between a matrix divided by its outputs and one divided by its inputs. Expert ranks
// exchange the inputs and the outputs of two such matrices of experts. All else is whole: under
// sequence parallelism its tokens are divided.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

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
  double bytes = 0;  // of an element; 0: as the model's weights
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

// A fused kernel over `batch` x `heads` rows of queries.
struct TracedAttention {
  TracedSize batch, queries, keys;
  double heads = 0;
  double groups = 0;  // of keys and values
  double qk = 0;
  double v = 0;
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

enum class TracedUse : std::uint8_t { kInput, kWeights, kBoth, kFromBackward };
struct TracedKept {
  TracedTensor tensor;
  TracedUse use = TracedUse::kInput;
  TracedDivision gathered = TracedDivision::kWhole;  // by which ranks, before a matmul reads it
};

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
  // By kernel of the backward: what the backward has made and still reads.
  std::vector<std::vector<TracedTensor>> working;
  TracedParameters parameters;
  TracedParameters matrices;  // of these, those with two dimensions or more
};

struct Traced {
  std::string file;
  std::vector<int> layers;  // the block of each, by number
  std::vector<TracedBlock> blocks;
  double other_parameters = 0;  // outside of the blocks, beside embedding, output and last norm
};

// True if some size has the square of the sequence, as scores of attention that is not fused.
bool has_square_sizes(const Traced& traced);

}  // namespace pipesim
