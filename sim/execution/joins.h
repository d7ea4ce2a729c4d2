// What the collectives of a sharded vocabulary wait for, and what waits for them: for `walk`.
//
//   embedding(i) <- IF(i) of all devices; F(i) of the first stage <- embedding(i);
//   output(i) <- F(i) of the last stage; S(i) <- output(i); softmax(i) <- S(i) of all devices;
//   T(i) <- softmax(i); output gradient(i) <- T(i) of all devices;
//   B|BW(i) of the last stage <- output gradient(i), with vocab-2 <- softmax(i);
//   embedding gradient(i) <- B|BW(i) of the first stage; IB(i) <- embedding gradient(i).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/pipeline/program.h"

namespace pipesim {

// The collective that a vocabulary pass waits for; none for IF.
constexpr std::optional<Barrier> awaited_by(PassKind kind) {
  if (kind == PassKind::kS) return Barrier::kOutput;
  if (kind == PassKind::kT) return Barrier::kSoftmax;
  if (kind == PassKind::kIB) return Barrier::kEmbeddingGradient;
  return std::nullopt;
}

// The collective that waits for a vocabulary pass on all devices; none for IB, and for T of vocab-2
// which nothing waits for.
constexpr std::optional<Barrier> joined_by(PassKind kind, VocabularyPlacement vocabulary) {
  if (kind == PassKind::kIF) return Barrier::kEmbedding;
  if (kind == PassKind::kS) return Barrier::kSoftmax;
  if (kind == PassKind::kT && vocabulary != VocabularyPlacement::kVocab2) {
    return Barrier::kOutputGradient;
  }
  return std::nullopt;
}

// The collective that the backward of the last stage waits for.
constexpr Barrier awaited_by_loss(VocabularyPlacement vocabulary) {
  return vocabulary == VocabularyPlacement::kVocab2 ? Barrier::kSoftmax : Barrier::kOutputGradient;
}

// The collectives of one program as they are reached; Value as a visitor of `walk` has it.
template <class Value>
class Joins {
 public:
  Joins(const Program& program, Value not_yet)
      : devices_(program.placement().devices()),
        units_(is_sharded(program.vocabulary()) ? static_cast<size_t>(program.shape().units()) : 0),
        value_(kBarriers * units_, not_yet),
        arrived_(kBarriers * units_, 0),
        results_(kGathered * units_ * devices_, not_yet) {}

  [[nodiscard]] Value of(Barrier barrier, std::uint32_t unit) const {
    return value_[at(barrier, unit)];
  }
  void set(Barrier barrier, std::uint32_t unit, Value value) { value_[at(barrier, unit)] = value; }

  // Notes the result of a device; all results, by device, once the last has arrived.
  std::optional<std::span<const Value>> arrive(Barrier barrier, int device, std::uint32_t unit,
                                               Value result) {
    Value* const first = &results_[(gathered(barrier) * units_ + unit) * devices_];
    first[device] = result;
    if (++arrived_[at(barrier, unit)] < devices_) return std::nullopt;
    return std::span<const Value>(first, devices_);
  }

 private:
  static constexpr size_t kGathered = 3;
  static constexpr size_t gathered(Barrier barrier) {
    return barrier == Barrier::kEmbedding ? 0 : barrier == Barrier::kSoftmax ? 1 : 2;
  }
  [[nodiscard]] size_t at(Barrier barrier, std::uint32_t unit) const {
    return static_cast<size_t>(barrier) * units_ + unit;
  }

  size_t devices_;
  size_t units_;
  std::vector<Value> value_;            // by collective and unit
  std::vector<std::uint32_t> arrived_;  // devices, likewise
  std::vector<Value> results_;          // by gathering collective, unit and device
};

}  // namespace pipesim
