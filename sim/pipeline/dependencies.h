// Which pass waits for which, beside the one before it on its device: the one place that says so.
//
//   F(s,i) <- F(upstream,i); B|BW(s,i) <- B|BW(downstream,i), on the last stage <- F(s,i);
//   W(s,i) <- B(s,i); R(s,i) <- F(s,i);
//   with sequence splits F split k <- k-1 and B split k <- k+1 (Seq1F1B, arXiv 2406.03488);
//   with a sharded vocabulary, and nothing else:
//   embedding(i) <- IF(i) of all devices; F(i) of the first stage <- embedding(i);
//   output(i) <- F(i) of the last stage; S(i) <- output(i); softmax(i) <- S(i) of all devices;
//   T(i) <- softmax(i); output gradient(i) <- T(i) of all devices;
//   B|BW(i) of the last stage <- output gradient(i), with vocab-2 <- softmax(i);
//   embedding gradient(i) <- B|BW(i) of the first stage; IB(i) <- embedding gradient(i).
//
// `walk` plays whole programs by it, list schedulers and the local search parts of them. An
// overlapped block waits for what both its passes wait for. Copies to the host: copy_walk.h.
// O(1), no allocation.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/pipeline/pass.h"
#include "sim/pipeline/placement.h"
#include "sim/pipeline/vocabulary.h"

namespace pipesim {

// The pass of one kind on a virtual stage, of whichever unit; kB stands for BW too.
struct StagePass {
  PassKind kind = PassKind::kF;
  int vs = -1;  // -1: there is none

  [[nodiscard]] constexpr bool exists() const { return vs >= 0; }
  friend bool operator==(const StagePass&, const StagePass&) = default;
};

// The pass of the same unit whose result this one starts from. A result of another stage comes as a
// message; one of the same stage is available once the pass has run.
inline StagePass source_of(const Placement& place, const StagePass& pass) {
  if (pass.kind == PassKind::kF) return {PassKind::kF, place.upstream(pass.vs)};
  if (pass.kind == PassKind::kW) return {PassKind::kB, pass.vs};
  if (!is_backward(pass.kind)) return {PassKind::kF, pass.kind == PassKind::kR ? pass.vs : -1};
  const int down = place.downstream(pass.vs);
  return down < 0 ? StagePass{PassKind::kF, pass.vs} : StagePass{PassKind::kB, down};
}

// The F or B of the same unit that starts from the result of this F or B: the way of a microbatch.
inline StagePass target_of(const Placement& place, const StagePass& pass) {
  if (is_backward(pass.kind)) return {PassKind::kB, place.upstream(pass.vs)};
  if (pass.kind != PassKind::kF) return {};
  const int down = place.downstream(pass.vs);
  return down < 0 ? StagePass{PassKind::kB, pass.vs} : StagePass{PassKind::kF, down};
}

// The split of the same sequence that comes before `unit` on every stage.
constexpr std::optional<std::uint32_t> split_before(PassKind kind, std::uint32_t unit,
                                                    std::uint32_t splits) {
  const std::uint32_t split = unit % splits;
  if (kind == PassKind::kF && split > 0) return unit - 1;
  if (is_backward(kind) && split + 1 < splits) return unit + 1;
  return std::nullopt;
}

// ---- a sharded vocabulary; of its passes `vs` is any stage of their device ----

// The collective that the pass waits for; none where the vocabulary is not sharded.
inline std::optional<Barrier> collective_before(const Placement& place,
                                                VocabularyPlacement vocabulary,
                                                const StagePass& pass) {
  if (!is_sharded(vocabulary)) return std::nullopt;
  switch (pass.kind) {
    case PassKind::kF:
      if (place.upstream(pass.vs) < 0) return Barrier::kEmbedding;
      return std::nullopt;
    case PassKind::kB:
    case PassKind::kBW:
      if (place.downstream(pass.vs) >= 0) return std::nullopt;
      return vocabulary == VocabularyPlacement::kVocab2 ? Barrier::kSoftmax
                                                        : Barrier::kOutputGradient;
    case PassKind::kS:
      return Barrier::kOutput;
    case PassKind::kT:
      return Barrier::kSoftmax;
    case PassKind::kIB:
      return Barrier::kEmbeddingGradient;
    default:
      return std::nullopt;
  }
}

// The collective that waits for the pass. None for T of vocab-2, which nothing waits for, and where
// the vocabulary is not sharded.
inline std::optional<Barrier> collective_after(const Placement& place,
                                               VocabularyPlacement vocabulary,
                                               const StagePass& pass) {
  if (!is_sharded(vocabulary)) return std::nullopt;
  switch (pass.kind) {
    case PassKind::kF:
      if (place.downstream(pass.vs) < 0) return Barrier::kOutput;
      return std::nullopt;
    case PassKind::kB:
    case PassKind::kBW:
      if (place.upstream(pass.vs) < 0) return Barrier::kEmbeddingGradient;
      return std::nullopt;
    case PassKind::kIF:
      return Barrier::kEmbedding;
    case PassKind::kS:
      return Barrier::kSoftmax;
    case PassKind::kT:
      if (vocabulary != VocabularyPlacement::kVocab2) return Barrier::kOutputGradient;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// The pass of every device that the collective waits for, or with a stage the pass of that one.
inline StagePass gathered_by(const Placement& place, Barrier barrier) {
  switch (barrier) {
    case Barrier::kOutput:
      return {PassKind::kF, place.virtual_stages() - 1};
    case Barrier::kEmbeddingGradient:
      return {PassKind::kB, 0};
    case Barrier::kEmbedding:
      return {PassKind::kIF, -1};
    case Barrier::kOutputGradient:
      return {PassKind::kT, -1};
    default:
      return {PassKind::kS, -1};
  }
}

constexpr bool joins_all_devices(Barrier barrier) {
  return barrier != Barrier::kOutput && barrier != Barrier::kEmbeddingGradient;
}

}  // namespace pipesim
