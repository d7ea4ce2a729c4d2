// Orders of passes from slots. Every pass of every microbatch takes unit slots of its device, and a
// device runs its passes in the order of their slots. Repeated building blocks are made so (Qi et
// al., Pipeline Parallelism with Controllable Memory, arXiv 2405.15362).
//
// W may be left without slots; they then run wherever a slot is free, that of the latest stage
// first. Ramps may be tightened: each pass, in the order of slots, moves to the earliest free slots
// after its inputs. An F moves only as far as no device exceeds the highest peak of before. With W
// in free slots that is done twice:
//   1. With the W in place, in the parts that are to be tightened. Then all passes are packed
//      (every pass as early as its device's order allows), and the W are taken out again.
//   2. In the cool-down; memory counts the W that would fill the free slots.
// The warm-up ends with the first backward of the first stage, the cool-down begins after the last
// F of chunk 0 of any device. Where that F comes first there is no steady part, and the
// second half stays loose.
//
// An F and a backward of another unit that begin in the same slot may be one overlapped block. It
// ends with the longer of the two.
//
// Memory counts chunks that are between F and W or the end of BW, whatever B gives back.
// O(passes log passes); near-linear in the slots of all devices where ramps are tightened.
#pragma once

#include <optional>
#include <vector>

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// Passes of one kind on one virtual stage.
struct SlottedPasses {
  // F, B, W, BW or R; or a pass of the vocabulary of the device that has `vs`, its chunk 0. The
  // vocabulary's are not held to wait for collectives.
  PassKind kind = PassKind::kF;
  int vs = 0;
  int length = 1;  // slots of each
  std::vector<int>
      slots;  // the first of each, for the units that travel through the stage, in order
  [[nodiscard]] int end(size_t unit) const { return slots[unit] + length; }
};

struct Slotted {
  Shape shape;
  Placement placement;
  std::vector<SlottedPasses> passes;
  VocabularyPlacement vocabulary = VocabularyPlacement::kFirstLast;  // where passes are of it
  // BW, B or W that are a block with the F that begins in their slot.
  std::vector<PassKind> beside_forward = {};
};

// Two passes that cannot stand where they do: `first` and `second` say which of
// Slotted::passes, and of which unit of each.
struct SlotClash {
  struct Of {
    size_t passes = 0;
    size_t unit = 0;
  };
  Of first, second;
};

// A step of a device: a pass, or an F and the backward that is a block with it.
struct SlottedStep {
  SlotClash::Of pass;
  std::optional<SlotClash::Of> beside = {};
};
// In the order of slots.
std::vector<SlottedStep> steps_of(const Slotted& slotted, int device);

// The slot behind each pass, or behind the block that it is part of, by Slotted::passes and unit.
std::vector<std::vector<int>> ends_of(const Slotted& slotted);

// Two passes of one device that share a slot, and are no block.
std::optional<SlotClash> find_shared_slot(const Slotted& slotted);
// A pass, `second`, that begins before `first` has ended, for which it waits.
std::optional<SlotClash> find_early_pass(const Slotted& slotted);

// W that have no slots, in the first free ones: those of a device in the order of their B.
Slotted with_weights(Slotted slotted);

// The parts of a plan to tighten.
struct TightenedParts {
  bool warm_up = false;
  bool steady = false;
  bool cool_down = false;
  [[nodiscard]] bool any() const { return warm_up || steady || cool_down; }
};

// The same with the parts tightened. W that have no slots take free ones; all passes are then one
// slot long. One direction, no splits, no blocks; neither clash. Slots begin at 0, and there are no
// more than a few for each pass.
PassLists tightened(const Slotted& slotted, const TightenedParts& parts);

// The order with the parts tightened.
Program plan_from_slots(const Slotted& slotted, const TightenedParts& parts);

}  // namespace pipesim
