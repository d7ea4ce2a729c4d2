#include "sim/planning/slots.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "sim/core/grid.h"
#include "sim/planning/planners.h"

namespace pipesim {
namespace {

// Which of Slotted::passes has a kind of a virtual stage.
class PassTable {
 public:
  explicit PassTable(const Slotted& slotted)
      : slotted_(slotted), index_(slotted.placement.virtual_stages(), kPassKinds, -1) {
    for (size_t i = 0; i < slotted.passes.size(); ++i) {
      const SlottedPasses& of = slotted.passes[i];
      index_(of.vs, static_cast<int>(of.kind)) = static_cast<int>(i);
    }
  }
  // -1: none.
  [[nodiscard]] int of(int vs, PassKind kind) const {
    return vs < 0 ? -1 : index_(vs, static_cast<int>(kind));
  }
  [[nodiscard]] int backward(int vs) const {
    return std::max(of(vs, PassKind::kB), of(vs, PassKind::kBW));
  }
  // The passes that these wait for, unit by unit; -1 for none.
  [[nodiscard]] std::array<int, 2> awaited(const SlottedPasses& by) const {
    const Placement& place = slotted_.placement;
    if (is_vocabulary(by.kind)) return {-1, -1};  // collectives
    switch (by.kind) {
      case PassKind::kF:
        return {of(place.upstream(by.vs), PassKind::kF), -1};
      case PassKind::kR:
        return {of(by.vs, PassKind::kF), -1};
      case PassKind::kW:
        return {of(by.vs, PassKind::kB), -1};
      default: {
        const int again = of(by.vs, PassKind::kR);
        return {backward(place.downstream(by.vs)), again < 0 ? of(by.vs, PassKind::kF) : again};
      }
    }
  }

 private:
  const Slotted& slotted_;
  Grid<int> index_;
};

// The passes of a device in the order of slots.
std::vector<SlotClash::Of> sorted(const Slotted& slotted, int device) {
  std::vector<SlotClash::Of> all;
  for (size_t i = 0; i < slotted.passes.size(); ++i) {
    if (slotted.placement.device(slotted.passes[i].vs) != device) continue;
    for (size_t unit = 0; unit < slotted.passes[i].slots.size(); ++unit) all.push_back({i, unit});
  }
  std::ranges::stable_sort(
      all, {}, [&](const SlotClash::Of& of) { return slotted.passes[of.passes].slots[of.unit]; });
  return all;
}

Pass pass_of(const Slotted& slotted, const SlotClash::Of& of) {
  const SlottedPasses& passes = slotted.passes[of.passes];
  const Placement& place = slotted.placement;
  const int first = place.first_unit(passes.vs, slotted.shape.units());
  return make_pass(passes.kind, first + static_cast<int>(of.unit), place.chunk(passes.vs));
}

bool are_a_block(const Slotted& slotted, const SlotClash::Of& forward,
                 const SlotClash::Of& backward) {
  const SlottedPasses& one = slotted.passes[forward.passes];
  const SlottedPasses& other = slotted.passes[backward.passes];
  const auto& kinds = slotted.beside_forward;
  return one.kind == PassKind::kF && std::ranges::find(kinds, other.kind) != kinds.end() &&
         one.slots[forward.unit] == other.slots[backward.unit] &&
         pass_of(slotted, forward).microbatch != pass_of(slotted, backward).microbatch;
}

Program in_slot_order(const Slotted& slotted) {
  PassLists lists(slotted.shape.devices);
  std::vector<OverlappedPair> pairs;
  for (int device = 0; device < slotted.shape.devices; ++device) {
    for (const SlottedStep& step : steps_of(slotted, device)) {
      lists[device].push_back(step.beside ? make_pass(PassKind::kFB, static_cast<int>(pairs.size()))
                                          : pass_of(slotted, step.pass));
      if (!step.beside) continue;
      pairs.push_back({pass_of(slotted, step.pass), pass_of(slotted, *step.beside)});
    }
  }
  return {slotted.shape,    slotted.placement,  std::move(lists),
          std::move(pairs), WrapAround::kEvery, slotted.vocabulary};
}

enum : int { kFree = -1, kRest = -2 };  // of a slot: nothing, or a pass that began before
constexpr int kCounted = -1;

// Chunks that a device holds, and W that it owes.
struct Load {
  int held = 0;  // chunks
  int owed = 0;
};

class Slots {
 public:
  Slots(const Slotted& slotted, const TightenedParts& parts);

  PassLists tighten();

 private:
  void put_weights();
  void pack();
  void count_memory(bool weights_have_slots);
  [[nodiscard]] PassLists lists() const;

  // Calls `visit(d, type, n, slot)` for all passes, in order of their slots.
  template <class Visit>
  void visit_passes(const Visit& visit);
  template <class Visit>
  void visit_ramps(const TightenedParts& parts, const Visit& visit);
  void stay(int d, int slot);
  void move(int d, int type, int n, int slot);
  [[nodiscard]] int moved(int d, int type, int n, int slot) const;
  void settle(int d, int type, int to);
  void move_filled(int d, int type, int n, int slot);

  [[nodiscard]] int earliest(int type, int n) const;
  [[nodiscard]] int earliest_weight(int d, int n, int slot) const;
  [[nodiscard]] int first_with_room(int d, int from, int to) const;
  [[nodiscard]] int next_free(int d, int from, int to, int length) const;
  bool try_move(int d, int type, int from, int to, bool apply);
  void place(int d, int type, int n, int from, int to);
  void run(Load& load, int type, bool weights_have_slots) const;

  [[nodiscard]] bool is(int type, PassKind kind) const {
    return type >= 0 && type < types_ && traits_[type].kind == kind;
  }
  [[nodiscard]] int weight_of(int d) const { return types_ + d; }
  [[nodiscard]] int length(int type) const { return traits_[type].length; }
  // True if a device gives a chunk back at the end of it.
  [[nodiscard]] bool releases(int type) const { return traits_[type].releases; }
  [[nodiscard]] int device_of(int type) const {
    return type < types_ ? slotted_.placement.device(slotted_.passes[type].vs) : type - types_;
  }

  // A type's properties, close together for the loops that move passes.
  struct Traits {
    PassKind kind = PassKind::kW;
    bool releases = true;
    int length = 1;
  };

  const Slotted& slotted_;
  PassTable table_;
  TightenedParts parts_;
  int p_, m_;
  int types_;                            // of Slotted::passes; then one for each device's W
  std::vector<Traits> traits_;           // by type
  std::vector<int> owed_of_device_;      // W without slots
  std::vector<std::vector<int>> owing_;  // the B of a device that owe them, last stage first
  bool fills_ = false;
  int width_ = 0;                            // slots of a device
  Grid<int> type_;                           // by device and slot
  std::vector<std::vector<int>> slot_of_;    // by type and number
  std::vector<std::array<int, 2>> awaited_;  // by type
  Grid<int> held_, owed_;                    // after a slot of a device
  // For each device whose passes move: the slots up to the last settled pass, and the chunks held
  // from there on. `held_` leaves these out, except at kCounted.
  std::vector<int> settled_, load_;
  std::vector<int> visited_;  // passes that a sweep over the slots has come to
  int limit_ = 0;             // the most chunks held before anything moves
};

Slots::Slots(const Slotted& slotted, const TightenedParts& parts)
    : slotted_(slotted),
      table_(slotted),
      parts_(parts),
      p_(slotted.shape.devices),
      m_(slotted.shape.microbatches),
      types_(static_cast<int>(slotted.passes.size())),
      traits_(slotted.passes.size() + static_cast<size_t>(p_)),
      owed_of_device_(p_),
      owing_(p_) {
  int last = 0;
  for (int type = 0; type < types_; ++type) {
    const SlottedPasses& of = slotted.passes[type];
    const bool releases = of.kind == PassKind::kW || of.kind == PassKind::kBW;
    traits_[type] = {of.kind, releases, of.length};
    for (const int slot : of.slots) last = std::max(last, slot + of.length);
    const bool owes = of.kind == PassKind::kB && table_.of(of.vs, PassKind::kW) < 0;
    if (!owes) continue;
    owed_of_device_[device_of(type)] += m_;
    owing_[device_of(type)].push_back(type);
  }
  for (auto& owing : owing_) {
    std::ranges::sort(owing, std::greater{}, [&](int type) { return slotted.passes[type].vs; });
  }
  const int owed = std::ranges::max(owed_of_device_);
  fills_ = owed > 0;
  width_ = last + owed;
  type_ = Grid<int>(p_, width_, kFree);
  held_ = Grid<int>(p_, width_);
  owed_ = Grid<int>(p_, width_);
  visited_.resize(types_ + p_);
  for (int type = 0; type < types_; ++type) {
    awaited_.push_back(table_.awaited(slotted.passes[type]));
    slot_of_.push_back(slotted.passes[type].slots);
    for (int n = 0; n < m_; ++n) place(device_of(type), type, n, -1, slot_of_[type][n]);
  }
  for (const int units : owed_of_device_) slot_of_.emplace_back(units);
}

void Slots::place(int d, int type, int n, int from, int to) {
  const auto mark = [&](int slot, int first, int rest) {
    type_(d, slot) = first;
    for (int s = slot + 1; s < slot + length(type); ++s) type_(d, s) = rest;
  };
  if (from >= 0) mark(from, kFree, kFree);
  mark(to, type, kRest);
  slot_of_[type][n] = to;
}

// Every W without a slot into the first free one after its B.
void Slots::put_weights() {
  for (int d = 0; d < p_; ++d) {
    int owed = 0;
    for (int slot = 0, ran = 0; ran < owed_of_device_[d]; ++slot) {
      const int type = type_(d, slot);
      if (is(type, PassKind::kB)) ++owed;
      if (type != kFree || owed == 0) continue;
      --owed;
      place(d, weight_of(d), ran++, -1, slot);
    }
  }
}

template <class Visit>
void Slots::visit_passes(const Visit& visit) {
  std::ranges::fill(visited_, 0);
  for (int slot = 0; slot < width_; ++slot) {
    for (int d = 0; d < p_; ++d) {
      const int type = type_(d, slot);
      if (type >= 0) visit(d, type, visited_[type]++, slot);
    }
  }
}

// Every pass right after the pass before it on its device and what it waits for. The W leave the
// slots that they took free.
void Slots::pack() {
  std::vector<int> last(p_, -1);
  visit_passes([&](int d, int type, int n, int slot) {
    int& before = last[d];
    type_(d, slot) = kFree;
    before = type >= types_ ? before + 1 : std::max(before + 1, earliest(type, n));
    if (type < types_) place(d, type, n, -1, before);
  });
}

// Applies a slot of this type to the load. W take their own slots, or fill free ones.
void Slots::run(Load& load, int type, bool weights_have_slots) const {
  if (is(type, PassKind::kF)) ++load.held;
  if (fills_ && is(type, PassKind::kB)) ++load.owed;
  const bool fills = weights_have_slots ? type >= types_ : type == kFree && load.owed > 0;
  if (fills) --load.owed;
  if (fills || (type < types_ && type >= 0 && releases(type))) --load.held;
}

void Slots::count_memory(bool weights_have_slots) {
  limit_ = 0;
  for (int d = 0; d < p_; ++d) {
    Load load;
    int current = kFree;
    for (int slot = 0; slot < width_; ++slot) {
      const bool begins = type_(d, slot) != kRest;
      if (begins) current = type_(d, slot);
      const bool ends = slot + 1 == width_ || type_(d, slot + 1) != kRest;
      if (is(current, PassKind::kF) ? begins : ends) run(load, current, weights_have_slots);
      limit_ = std::max(limit_, load.held);
      held_(d, slot) = load.held;
      owed_(d, slot) = load.owed;
    }
  }
}

// Like `visit_passes`; `visit` also learns if these parts include the pass.
template <class Visit>
void Slots::visit_ramps(const TightenedParts& parts, const Visit& visit) {
  const int first_backward = table_.backward(0);
  const bool* tightened = &parts.warm_up;
  visit_passes([&](int d, int type, int n, int slot) {
    if (tightened == &parts.warm_up && type == first_backward) tightened = &parts.steady;
    visit(d, type, n, slot, *tightened);
    const bool last = is(type, PassKind::kF) && n == m_ - 1 &&
                      slotted_.placement.chunk(slotted_.passes[type].vs) == 0;
    if (tightened == &parts.steady && last) tightened = &parts.cool_down;
  });
}

PassLists Slots::tighten() {
  put_weights();
  if (!parts_.any()) return lists();
  count_memory(true);
  settled_.assign(p_, kCounted);
  load_.assign(p_, 0);
  visit_ramps(parts_, [this](int d, int type, int n, int slot, bool loose) {
    if (loose) {
      move(d, type, n, slot);
    } else {
      stay(d, slot);
    }
  });
  if (!fills_) return lists();
  pack();
  count_memory(false);
  const TightenedParts second{.steady = parts_.steady, .cool_down = parts_.cool_down};
  visit_ramps(second, [this](int d, int type, int n, int slot, bool loose) {
    if (loose) move_filled(d, type, n, slot);
  });
  put_weights();
  pack();
  return lists();
}

// The first slot after everything that pass n of a type waits for.
int Slots::earliest(int type, int n) const {
  int after = n > 0 ? slot_of_[type][n - 1] + length(type) : 0;
  for (const int of : awaited_[type]) {
    if (of >= 0) after = std::max(after, slot_of_[of][n] + length(of));
  }
  return after;
}

// The same for W without slots of their own, looking back from `slot`: the n-th of a device runs
// after its n-th B.
int Slots::earliest_weight(int d, int n, int slot) const {
  int later = -(n + 1);  // B after the n-th
  for (const int type : owing_[d]) later += visited_[type];
  const int begin = n > 0 ? slot_of_[weight_of(d)][n - 1] + 1 : 0;
  for (; slot > begin; --slot) {
    if (is(type_(d, slot - 1), PassKind::kB) && later-- == 0) break;
  }
  return slot;
}

// The first slot of [from, to] from which on to `to` one more chunk fits.
int Slots::first_with_room(int d, int from, int to) const {
  constexpr int kTogether = 16;
  const int* held = held_.row(d).data();
  int slot = to;
  while (slot - from >= kTogether) {
    int most = 0;
    for (int s = slot - kTogether; s < slot; ++s) most = std::max(most, held[s]);
    if (most >= limit_) break;
    slot -= kTogether;
  }
  while (slot > from && held[slot - 1] < limit_) --slot;
  return slot;
}

// The first of `length` free slots of [from, to), or `to`.
int Slots::next_free(int d, int from, int to, int length) const {
  int free = 0;
  for (int slot = from; slot < to; ++slot) {
    free = type_(d, slot) == kFree ? free + 1 : 0;
    if (free == length) return slot + 1 - length;
  }
  return to;
}

// A pass that stays, and all until the next that may move: `held_` is right again.
void Slots::stay(int d, int slot) {
  int& settled = settled_[d];
  if (settled == kCounted) return;
  for (; settled < slot; ++settled) held_(d, settled) = load_[d];
  settled = kCounted;
}

void Slots::move(int d, int type, int n, int slot) {
  if (settled_[d] == kCounted) {
    settled_[d] = slot;
    load_[d] = slot > 0 ? held_(d, slot - 1) : 0;
  }
  const int to = moved(d, type, n, slot);
  if (to != slot) place(d, type, n, slot, to);
  settle(d, type, to);
}

// Where a pass goes that is due to move. Between what has settled and the slot nothing runs.
int Slots::moved(int d, int type, int n, int slot) const {
  const int behind = settled_[d];
  int to = type >= types_ ? earliest_weight(d, n, behind) : earliest(type, n);
  if (is(type, PassKind::kF)) {
    if (behind < slot && load_[d] >= limit_) return slot;
    if (to < behind) to = first_with_room(d, to, behind);
  }
  return next_free(d, to, slot, length(type));
}

// O(slots between `to` and the last pass that has settled), however far the pass came.
void Slots::settle(int d, int type, int to) {
  const bool acquires = is(type, PassKind::kF);
  const int change = acquires ? 1 : releases(type) ? -1 : 0;
  int* held = held_.row(d).data();
  int& settled = settled_[d];
  for (; settled < to + length(type); ++settled) held[settled] = load_[d];
  for (int s = to + (acquires ? 0 : length(type) - 1); s < settled; ++s) held[s] += change;
  load_[d] += change;
}

void Slots::move_filled(int d, int type, int n, int slot) {
  int to = earliest(type, n);
  // An F adds its chunk from `to` on at the least; a displaced W can add another.
  if (is(type, PassKind::kF)) to = first_with_room(d, to, slot);
  to = next_free(d, to, slot, 1);
  while (to < slot && !try_move(d, type, slot, to, false)) to = next_free(d, to + 1, slot, 1);
  if (to == slot) return;
  try_move(d, type, slot, to, true);
  place(d, type, n, slot, to);
}

// True if memory stays within the limit when the pass at `from` moves to the free slot `to` and W
// fill the slots then free. Beyond `from`, memory is unchanged once held chunks and owed W are.
bool Slots::try_move(int d, int type, int from, int to, bool apply) {
  const auto held = held_.row(d);
  const auto owed = owed_.row(d);
  const auto types = type_.row(d);
  Load load;
  if (to > 0) load = {held[to - 1], owed[to - 1]};
  for (int slot = to; slot < width_; ++slot) {
    run(load, slot == to ? type : slot == from ? int{kFree} : types[slot], false);
    if (load.held > limit_) return false;
    if (slot >= from && load.held == held[slot] && load.owed == owed[slot]) return true;
    if (!apply) continue;
    held[slot] = load.held;
    owed[slot] = load.owed;
  }
  return true;
}

// In order of slots; W without slots fill what is free.
PassLists Slots::lists() const {
  PassLists lists(p_);
  std::vector<int> ran(types_);      // by type
  std::vector<int> weights(types_);  // that the B of a type owed, likewise
  for (int d = 0; d < p_; ++d) {
    auto& list = lists[d];
    for (int slot = 0; slot < width_; ++slot) {
      const int type = type_(d, slot);
      if (type == kRest) continue;
      if (type >= 0 && type < types_) {
        list.push_back(
            pass_of(slotted_, {static_cast<size_t>(type), static_cast<size_t>(ran[type]++)}));
        continue;
      }
      const auto owing = std::ranges::find_if(
          owing_[d], [&](int backward) { return weights[backward] < ran[backward]; });
      if (owing == owing_[d].end()) continue;
      const int chunk = slotted_.placement.chunk(slotted_.passes[*owing].vs);
      list.push_back(make_pass(PassKind::kW, weights[*owing]++, chunk));
    }
  }
  return lists;
}

bool has_weights_without_slots(const Slotted& slotted) {
  const PassTable table(slotted);
  return std::ranges::any_of(slotted.passes, [&](const SlottedPasses& of) {
    return of.kind == PassKind::kB && table.of(of.vs, PassKind::kW) < 0;
  });
}

// Splits of a microbatch follow each other, those of backwards the last one first.
std::optional<SlotClash> find_early_split(const Slotted& slotted, size_t passes,
                                          const std::vector<int>& ends) {
  const SlottedPasses& by = slotted.passes[passes];
  const auto splits = static_cast<size_t>(slotted.shape.splits);
  const bool back = is_backward(by.kind);
  if (splits == 1 || (by.kind != PassKind::kF && !back)) return std::nullopt;
  for (size_t unit = 1; unit < by.slots.size(); ++unit) {
    if (unit % splits == 0) continue;
    const SlotClash::Of first{passes, back ? unit : unit - 1};
    const SlotClash::Of second{passes, back ? unit - 1 : unit};
    if (by.slots[second.unit] < ends[first.unit]) return SlotClash{first, second};
  }
  return std::nullopt;
}

}  // namespace

std::vector<SlottedStep> steps_of(const Slotted& slotted, int device) {
  std::vector<SlottedStep> steps;
  for (const SlotClash::Of& of : sorted(slotted, device)) {
    const bool open = !steps.empty() && !steps.back().beside;
    if (open && are_a_block(slotted, steps.back().pass, of)) {
      steps.back().beside = of;
    } else if (open && are_a_block(slotted, of, steps.back().pass)) {
      steps.back() = {of, steps.back().pass};
    } else {
      steps.push_back({of});
    }
  }
  return steps;
}

std::vector<std::vector<int>> ends_of(const Slotted& slotted) {
  std::vector<std::vector<int>> ends;
  for (const SlottedPasses& of : slotted.passes) {
    auto& own = ends.emplace_back(of.slots);
    for (int& end : own) end += of.length;
  }
  if (slotted.beside_forward.empty()) return ends;
  for (int device = 0; device < slotted.shape.devices; ++device) {
    for (const SlottedStep& step : steps_of(slotted, device)) {
      if (!step.beside) continue;
      int& forward = ends[step.pass.passes][step.pass.unit];
      int& backward = ends[step.beside->passes][step.beside->unit];
      forward = backward = std::max(forward, backward);
    }
  }
  return ends;
}

std::optional<SlotClash> find_shared_slot(const Slotted& slotted) {
  const auto ends = ends_of(slotted);
  for (int device = 0; device < slotted.shape.devices; ++device) {
    const auto steps = steps_of(slotted, device);
    for (size_t i = 1; i < steps.size(); ++i) {
      const SlotClash::Of& before = steps[i - 1].pass;
      const SlotClash::Of& after = steps[i].pass;
      if (ends[before.passes][before.unit] > slotted.passes[after.passes].slots[after.unit]) {
        return SlotClash{before, after};
      }
    }
  }
  return std::nullopt;
}

std::optional<SlotClash> find_early_pass(const Slotted& slotted) {
  const PassTable table(slotted);
  const auto ends = ends_of(slotted);
  for (size_t i = 0; i < slotted.passes.size(); ++i) {
    const SlottedPasses& by = slotted.passes[i];
    for (const int of : table.awaited(by)) {
      if (of < 0) continue;
      const auto awaited = static_cast<size_t>(of);
      for (size_t unit = 0; unit < by.slots.size(); ++unit) {
        if (by.slots[unit] >= ends[awaited][unit]) continue;
        return SlotClash{{awaited, unit}, {i, unit}};
      }
    }
    if (const auto clash = find_early_split(slotted, i, ends[i])) return clash;
  }
  return std::nullopt;
}

Slotted with_weights(Slotted slotted) {
  const PassTable table(slotted);
  std::vector<SlottedPasses> added;
  for (int device = 0; device < slotted.shape.devices; ++device) {
    int from = 0;  // where the next W may run at the earliest
    const auto all = sorted(slotted, device);
    size_t next = 0;  // pass of the device that ends behind `from`
    for (const SlotClash::Of& of : all) {
      const SlottedPasses& backward = slotted.passes[of.passes];
      if (backward.kind != PassKind::kB || table.of(backward.vs, PassKind::kW) >= 0) continue;
      from = std::max(from, backward.end(of.unit));
      for (; next < all.size(); ++next) {
        const SlottedPasses& there = slotted.passes[all[next].passes];
        if (there.slots[all[next].unit] > from) break;
        from = std::max(from, there.end(all[next].unit));
      }
      auto weights = std::ranges::find(added, backward.vs, &SlottedPasses::vs);
      if (weights == added.end()) {
        added.push_back({PassKind::kW, backward.vs, 1, {}});
        weights = added.end() - 1;
      }
      weights->slots.push_back(from++);
    }
  }
  slotted.passes.insert(slotted.passes.end(), added.begin(), added.end());
  return slotted;
}

PassLists tightened(const Slotted& slotted, const TightenedParts& parts) {
  return Slots(slotted, parts).tighten();
}

Program plan_from_slots(const Slotted& slotted, const TightenedParts& parts) {
  if (!parts.any() && !has_weights_without_slots(slotted)) return in_slot_order(slotted);
  return {slotted.shape,      slotted.placement, tightened(slotted, parts), {},
          WrapAround::kEvery, slotted.vocabulary};
}

}  // namespace pipesim
