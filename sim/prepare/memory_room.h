// Decides if stages fit the memory of the devices that run a program, while balance moves layers
// between them.
//
// The program decides what a device keeps: how many microbatches' activations, stashes and
// checkpoints it holds at once on each chunk, whatever their size.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "models/balance.h"
#include "models/memory_model.h"
#include "sim/case/case.h"
#include "sim/pipeline/program.h"

namespace pipesim {

class MemoryRoom : public DeviceRoom {
 public:
  // Requires a model. Keeps a reference to the outline.
  MemoryRoom(const Outline& outline, Bytes capacity);

  // The program whose moments count from now on. O(passes x moments).
  void observe(const Program& program);
  void take_away(int device, Bytes bytes) { capacity_[device] -= bytes; }
  // A limit on bytes that passes keep.
  void limit(Bytes kept) { limit_ = kept; }

  Bytes peak(int device, std::span<const StageLayers> chunks) {
    return beside(device, chunks).total() + kept(device, chunks);
  }
  bool fits(int device, std::span<const StageLayers> chunks) override;
  int most_more(int device, std::span<const StageLayers> chunks,
                std::span<const int> open) override;

 private:
  // Numbers that a device keeps at one moment: activations, stashes and checkpoints of each chunk
  // in turn, and last shares of the output.
  using Held = std::vector<double>;

  // A device's bytes beside those that passes keep.
  [[nodiscard]] DeviceMemory beside(int device, std::span<const StageLayers> chunks) const;
  void note_stages(std::span<const StageLayers> chunks);
  [[nodiscard]] Bytes bytes(const Held& held) const;
  Bytes kept(int device, std::span<const StageLayers> chunks);

  const Outline& outline_;
  MemoryModel model_;
  Shape shape_;
  int recompute_chunks_;
  Bytes share_;
  std::vector<Bytes> capacity_;  // by device
  std::optional<Bytes> limit_;
  std::vector<std::vector<Held>> moments_;  // by device
  std::vector<Held> means_;                 // of each device's
  std::vector<StageMemory> stages_;         // noted last
  // Bytes of one layer, of the smaller kind.
  Bytes layer_{std::numeric_limits<double>::infinity()};
  StageMemory least_{layer_, layer_, layer_, layer_};
};

}  // namespace pipesim
