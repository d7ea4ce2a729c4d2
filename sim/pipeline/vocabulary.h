// Where the vocabulary layers stand, input embedding and output layer, and what the passes of a
// share of them cost.
//
// Sharded over all devices (Vocabulary Parallelism, arXiv 2411.05288) they are passes of their own.
// Every device runs IF, S, T and IB once for every microbatch, and collectives join them
// (docs/reference/model.md). Otherwise they are part of the stages that hold them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/core/enum_array.h"
#include "sim/core/units.h"

namespace pipesim {

enum class VocabularyPlacement : std::uint8_t {
  kFirstLast,      // in the first and the last stage
  kRedistributed,  // likewise, with fewer transformer layers on the last stage
  kInterlaced,     // sharded; all devices run each of their passes together, and wait for its
                   // collective
  kVocab1,         // sharded; B of the last stage waits for T of every device: two barriers
  kVocab2,         // sharded; B of the last stage waits for S of every device: one barrier
};
inline constexpr std::array<std::string_view, 5> kVocabularyPlacements{
    "first_last", "redistributed", "interlaced", "vocab-1", "vocab-2"};

constexpr std::string_view to_text(VocabularyPlacement placement) {
  return kVocabularyPlacements[static_cast<size_t>(placement)];
}

// True if every device holds a share of the vocabulary and runs passes for it.
constexpr bool is_sharded(VocabularyPlacement placement) {
  return placement != VocabularyPlacement::kFirstLast &&
         placement != VocabularyPlacement::kRedistributed;
}

// One microbatch through a device's share.
struct VocabularyCost {
  Seconds output_forward;     // S
  Seconds output_backward;    // T
  Seconds input_forward;      // IF
  Seconds input_backward;     // IB
  Bytes output_activation{};  // acquired by S, released by T
};

// The collectives that one microbatch's passes wait for besides messages. A collective starts when
// all that take part are ready, on a stream of its own beside compute.
enum class Barrier : std::uint8_t {
  kEmbedding,          // IF of all devices -> F of the first stage
  kOutput,             // F of the last stage -> S of all
  kSoftmax,            // S of all -> T of all, and with vocab-2 B of the last stage
  kOutputGradient,     // T of all -> B of the last stage (vocab-1, interlaced)
  kEmbeddingGradient,  // B of the first stage -> IB of all
  kRendezvous,         // interlaced: all devices have come to the same pass; takes no time
};
inline constexpr size_t kBarriers = 6;
template <>
inline constexpr std::size_t kSizeOf<Barrier> = kBarriers;

constexpr std::string_view to_text(Barrier barrier) {
  constexpr EnumArray<Barrier, std::string_view> kNames{
      "embedding all-reduce",         "output broadcast",
      "softmax all-reduce",           "output gradient all-reduce",
      "embedding gradient broadcast", "rendezvous"};
  return kNames[barrier];
}

// The collectives in the words of a scenario, in the order of Barrier; a rendezvous is none.
inline constexpr std::array<std::string_view, kBarriers - 1> kVocabularyCollectives{
    "embedding", "output", "softmax", "output_gradient", "embedding_gradient"};

using BarrierSeconds = EnumArray<Barrier, Seconds>;

}  // namespace pipesim
