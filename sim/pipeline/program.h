// A schedule's output: for every device, the ordered list of its passes.
//
// A Program is complete by construction. For every unit that travels through it, a virtual stage
// runs F once, and either BW or both B and W once. A virtual stage that recomputes also runs R once
// per unit, between F and B or BW; others run none. Where the vocabulary is sharded, every device
// runs IF, S, T and IB once per unit. `walk` checks that the order can be executed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/pipeline/copies.h"
#include "sim/pipeline/pass.h"
#include "sim/pipeline/placement.h"
#include "sim/pipeline/shape.h"
#include "sim/pipeline/vocabulary.h"

namespace pipesim {

// The messages that wait on the edge from the last device back to the first, the next chunk of a
// looped placement. With kFirstOfGroup only microbatches that are multiples of p wait. The
// evaluator behind Zero Bubble Table 5 treats its 1F1B-I column so; no real runtime can.
enum class WrapAround { kEvery, kFirstOfGroup };

using PassLists = std::vector<std::vector<Pass>>;

// Names the pass of a kind, virtual stage and unit in messages; a pass of the vocabulary belongs to
// its device's first stage.
using NamePass = std::function<std::string(PassKind kind, int vs, int unit)>;
// By `name`; without one as Program::text does.
std::string name_of(const NamePass& name, PassKind kind, int vs, int unit);

// The first thing that makes lists of passes no program, and where it stands.
struct ProgramFault {
  int device = 0;
  int position = -1;  // in the device's list; -1 for a missing pass
  std::string message;
};

class Program {
 public:
  // Throws LogicError with the message of `find_fault` when the lists are no program. O(passes).
  Program(const Shape& shape, Placement placement, PassLists lists,
          std::vector<OverlappedPair> pairs = {}, WrapAround wrap_around = WrapAround::kEvery,
          VocabularyPlacement vocabulary = VocabularyPlacement::kFirstLast);

  static std::optional<ProgramFault> find_fault(
      const Shape& shape, const Placement& placement, const PassLists& lists,
      std::span<const OverlappedPair> pairs,
      VocabularyPlacement vocabulary = VocabularyPlacement::kFirstLast, const NamePass& name = {});

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] const Placement& placement() const { return placement_; }
  [[nodiscard]] std::span<const Pass> passes(int device) const { return lists_[device]; }
  [[nodiscard]] const PassLists& lists() const { return lists_; }
  [[nodiscard]] std::span<const OverlappedPair> pairs() const { return pairs_; }
  [[nodiscard]] const OverlappedPair& pair(const Pass& pass) const {
    return pairs_[pass.microbatch];
  }
  // Calls `visit` with the two passes of an overlapped block, the forward first, or with the pass.
  template <class Visit>
  void visit_parts(const Pass& pass, Visit visit) const {
    if (pass.kind != PassKind::kFB) return visit(pass);
    visit(pair(pass).forward);
    visit(pair(pass).backward);
  }
  [[nodiscard]] WrapAround wrap_around() const { return wrap_around_; }
  [[nodiscard]] VocabularyPlacement vocabulary() const { return vocabulary_; }
  // True if the virtual stage runs R: its F then keeps only R's input.
  [[nodiscard]] bool recomputes(int vs) const { return recomputes_[vs]; }
  [[nodiscard]] bool recomputes() const;
  // True if every backward runs B and W as one pass.
  [[nodiscard]] bool whole_backwards() const { return whole_backwards_; }
  [[nodiscard]] size_t size() const;  // passes on all devices
  // True if every device runs the same passes in the same order on the same placement.
  [[nodiscard]] bool same_order(const Program& other) const;
  // True if a stage runs F, B or W of some unit before that of an earlier one. O(passes).
  [[nodiscard]] bool units_overtake() const;

  // The same passes where the vocabulary is sharded in another way. LogicError where it is not.
  [[nodiscard]] Program with_vocabulary(VocabularyPlacement vocabulary) const;
  // The same passes with these copies beside them. Throws LogicError when they name an activation
  // that is not there, one twice, or a copy out without its way back. O(passes).
  [[nodiscard]] Program with_copies(CopyPlan plan) const;
  // nullptr when every activation stays on its device.
  [[nodiscard]] const CopyPlan* copies() const { return copies_.get(); }
  // By virtual stage the units whose activations are copied to the host.
  [[nodiscard]] std::vector<int> copied_units() const;
  // True if the order of passes alone says what a device holds at any of them. Copies to the host
  // end when their links let them.
  [[nodiscard]] bool memory_follows_order() const { return copies_ == nullptr; }

  // `2F0`, or `3F0&1BW2` for an overlapped block.
  [[nodiscard]] std::string text(int device, const Pass& pass) const;

 private:
  Shape shape_;
  Placement placement_;
  PassLists lists_;
  std::vector<OverlappedPair> pairs_;
  WrapAround wrap_around_;
  VocabularyPlacement vocabulary_;
  std::vector<bool> recomputes_;  // by virtual stage
  bool whole_backwards_;
  std::shared_ptr<const CopyPlan> copies_;
};

}  // namespace pipesim
