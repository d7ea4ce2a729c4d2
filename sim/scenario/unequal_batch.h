// Microbatches that differ: documents of unequal lengths and their packing, images in front of
// an encoder, or factors on a microbatch's cost (docs/reference/model.md, "Unequal
// microbatches").
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/enum_array.h"
#include "sim/core/error.h"

namespace pipesim {

// Where numbers come from. Draws are the same on any machine.
struct Draw {
  enum class Kind { kListed, kLognormal, kUniform, kHistogram };
  Kind kind = Kind::kListed;
  std::vector<double> values;  // as listed, or of the histogram
  std::vector<double> counts;  // of the histogram
  double mean = 1;             // of the log-normal, before `least` and `most` cut it
  double sigma = 0;            // of its logarithm
  double least = 0;
  double most = 0;
  std::uint64_t seed = 1;
  int runs = 1;  // with seeds from `seed` on: more than one make an ensemble
  Location where = {};

  [[nodiscard]] bool listed() const { return kind == Kind::kListed; }
};

// Draws `count` values from seed `seed`; a list gives all that it has. O(count).
std::vector<double> drawn(const Draw& draw, std::uint64_t seed, size_t count);

enum class Packing {
  kNone,      // micro_batch_size documents each, in their order
  kGreedy,    // in their order until micro_batch_size x seq_length tokens are full; cut there
  kBalanced,  // the longest first, each to the microbatch with the least work
};
inline constexpr std::array<std::string_view, 3> kPackingNames{"none", "greedy", "balanced"};

enum class MicrobatchOrder { kGiven, kLongestFirst, kShortestFirst, kDynaPipe, kSearch, kListed };
inline constexpr std::array<std::string_view, 6> kMicrobatchOrderNames{
    "given", "longest_first", "shortest_first", "dynapipe", "search", "listed"};

using Documents = std::vector<int>;  // tokens of each

struct UnequalBatch {
  enum class Of { kFactors, kLengths, kImages };
  Draw draw;
  Of of = Of::kFactors;  // what `draw` is of: lengths are of documents, images of samples
  // Beside lengths; seeds rise with those of `draw`.
  std::optional<Draw> images_draw = {};
  Packing packing = Packing::kNone;
  double room = 1.5;  // tokens of a balanced microbatch, at most, to those of an even one
  // Tokens from which on documents wait (sim/scenario/delayed_packing.h), rising: draws are then of
  // a stream, one batch after the other. Empty: none do.
  std::vector<int> outliers = {};
  MicrobatchOrder order = MicrobatchOrder::kGiven;
  std::vector<int> listed_order = {};  // of kListed: a permutation of the microbatches as drawn

  // The drawn values, by microbatch.
  std::vector<Documents> documents = {};
  std::vector<int> images = {};  // of all its samples
  std::vector<double> factors = {};

  [[nodiscard]] bool lengths() const { return of == Of::kLengths; }
  // True if a list's length is the number of microbatches.
  [[nodiscard]] bool listed() const {
    return draw.listed() || (images_draw && images_draw->listed());
  }
  [[nodiscard]] size_t microbatches() const {
    return std::max({documents.size(), images.size(), factors.size()});
  }
};

// Documents in their order, each microbatch filled to `capacity` tokens. One that does not fit is
// cut, and goes on in the next microbatch. The rest after the last one is left out.
std::vector<Documents> packed_in_order(std::span<const int> documents, size_t microbatches,
                                       long capacity);

// The longest first (ties: as they stand), each to the microbatch of least work if it has room,
// else to the one of fewest tokens: WLB-LLM's heuristic (arXiv 2503.17924) of one batch. Within a
// microbatch as they stand. O(documents x microbatches).
std::vector<Documents> packed_by_work(std::span<const int> documents, size_t microbatches,
                                      long capacity, double room,
                                      const std::function<double(int)>& work);

// The same beside documents that microbatches hold already. Returns those that find no room in
// either, in their order.
Documents pack_by_work(std::span<const int> documents, std::vector<Documents>& microbatches,
                       long capacity, double room, const std::function<double(int)>& work);

}  // namespace pipesim
