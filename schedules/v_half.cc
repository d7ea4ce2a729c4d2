// V-Half and V-Min (Qi et al., Pipeline Parallelism with Controllable Memory, arXiv 2405.15362):
// V-shape schedules with about half and about a third of 1F1B's activation memory.
//
// Both repeat a building block, the slots that one microbatch takes on every device, every six unit
// slots; W passes run wherever a slot is free. The ramps are then tightened in two greedy passes
// over all passes in order of their slots: each moves to the earliest free slot after its
// dependencies that does not raise the peak of its device above the largest peak of the block.
//   1. With the W in place, before the first B of chunk 0 on device 0 and after the last F of
//      chunk 0. Then all passes are packed (every pass as early as its device's order allows), and
//      the W are taken out again.
//   2. After the last F of chunk 0; memory counts the W that would fill the free slots.
// The steady part between the two is left alone: it is full. A few microbatches have none, as their
// last F of chunk 0 comes before the first B of chunk 0; the public code then leaves the second
// half loose. Here a second order, in which both passes go over everything, replaces that one where
// the problem's times make it cheaper; nothing else depends on the times.
//
// Memory counts chunks that are between F and W, whatever B gives back. Near-linear in passes.
#include <algorithm>
#include <array>
#include <vector>

#include "schedules/vocabulary.h"
#include "sim/core/grid.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/building_block.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

// What a slot of a device holds: the passes of a microbatch in the order in which it runs them.
enum Type : std::uint8_t { kForward0, kForward1, kBackward1, kBackward0, kWeight, kFree };
constexpr int kTypes = 5;
constexpr int kPeriod = 6;  // slots from one microbatch to the next: its passes on one device

bool is_forward(int type) { return type == kForward0 || type == kForward1; }
bool is_backward(int type) { return type == kBackward1 || type == kBackward0; }

// What a device has in memory, and the W that it owes.
struct Load {
  int held = 0;  // chunks
  int owed = 0;

  // The next slot. W take their own slots, or fill free ones.
  void pass(int type, bool with_weights) {
    if (is_forward(type)) ++held;
    if (is_backward(type)) ++owed;
    const bool weight = with_weights ? type == kWeight : type == kFree && owed > 0;
    if (!weight) return;
    --held;
    --owed;
  }
  friend bool operator==(const Load&, const Load&) = default;
};

class Slots {
 public:
  // `throughout`: what has no steady part is tightened from the first pass to the last.
  Slots(const Shape& shape, VeeSlots (*block)(int, int), bool throughout);

  void tighten();
  [[nodiscard]] PassLists lists() const;

 private:
  void put_weights();
  void pack();
  void count_memory(bool with_weights);

  // Calls `visit(d, type, n, slot)` for all passes, in order of their slots.
  template <class Visit>
  void visit_passes(Visit visit);
  using Move = void (Slots::*)(int d, int type, int n, int slot);
  void visit_ramps(bool warm_up_too, Move move);
  void move_with_weights(int d, int type, int n, int slot);
  void move_without_weights(int d, int type, int n, int slot);

  [[nodiscard]] int earliest(int d, int type, int n) const;
  int earliest_weight(int d, int n, int slot);
  [[nodiscard]] int first_with_room(int d, int from, int to) const;
  [[nodiscard]] int next_free(int d, int from, int to) const;
  bool try_move(int d, int type, int from, int to, bool apply);
  void place(int d, int type, int n, int from, int to);

  [[nodiscard]] int& slot_of(int d, int type, int n) { return slot_of_(d, type * m_ + n); }
  [[nodiscard]] int slot_of(int d, int type, int n) const { return slot_of_(d, type * m_ + n); }
  int& visited(int d, int type) { return visited_[d * kTypes + type]; }

  bool throughout_;
  int p_;
  int m_;
  int width_;                 // slots of a device
  Grid<std::uint8_t> type_;   // by device and slot
  Grid<int> slot_of_;         // by device, and by type and number: W has twice as many
  Grid<Load> load_;           // after a slot of a device
  std::vector<int> visited_;  // passes that a sweep over the slots has come to
  int limit_ = 0;             // the most chunks held before anything moves
};

Slots::Slots(const Shape& shape, VeeSlots (*block)(int, int), bool throughout)
    : throughout_(throughout),
      p_(shape.devices),
      m_(shape.microbatches),
      // The last B of the block, and after it at most every W.
      width_(kPeriod * m_ + kPeriod * p_ + 2 + 2 * m_),
      type_(p_, width_, kFree),
      slot_of_(p_, (kTypes + 1) * m_),
      load_(p_, width_),
      visited_(p_ * kTypes) {
  for (int d = 0; d < p_; ++d) {
    const VeeSlots first = block(p_, d);
    for (int type = 0; type < kWeight; ++type) {
      for (int n = 0; n < m_; ++n) {
        place(d, type, n, -1, first[type] + kPeriod * n);
      }
    }
  }
}

void Slots::place(int d, int type, int n, int from, int to) {
  if (from >= 0) type_(d, from) = kFree;
  type_(d, to) = static_cast<std::uint8_t>(type);
  slot_of(d, type, n) = to;
}

// Every W into the first free slot after its B.
void Slots::put_weights() {
  for (int d = 0; d < p_; ++d) {
    int owed = 0;
    for (int slot = 0, ran = 0; ran < 2 * m_; ++slot) {
      const int type = type_(d, slot);
      if (is_backward(type)) ++owed;
      if (type != kFree || owed == 0) continue;
      --owed;
      place(d, kWeight, ran++, -1, slot);
    }
  }
}

template <class Visit>
void Slots::visit_passes(Visit visit) {
  std::ranges::fill(visited_, 0);
  for (int slot = 0; slot < width_; ++slot) {
    for (int d = 0; d < p_; ++d) {
      const int type = type_(d, slot);
      if (type != kFree) visit(d, type, visited(d, type)++, slot);
    }
  }
}

// Unit slots: every pass right after the pass before it on its device and what it waits for. The
// W leave the slots that they took free.
void Slots::pack() {
  std::vector<int> last(p_, -1);
  visit_passes([&](int d, int type, int n, int slot) {
    int& before = last[d];
    type_(d, slot) = kFree;
    before = type == kWeight ? before + 1 : std::max(before + 1, earliest(d, type, n));
    if (type != kWeight) place(d, type, n, -1, before);
  });
}

void Slots::count_memory(bool with_weights) {
  limit_ = 0;
  for (int d = 0; d < p_; ++d) {
    Load load;
    for (int slot = 0; slot < width_; ++slot) {
      const int type = type_(d, slot);
      load.pass(type, with_weights);
      if (is_forward(type)) limit_ = std::max(limit_, load.held);
      load_(d, slot) = load;
    }
  }
}

// Calls `move` for the passes outside the steady part.
void Slots::visit_ramps(bool warm_up_too, Move move) {
  const bool steady = slot_of(0, kForward0, m_ - 1) > slot_of(0, kBackward0, 0);
  const bool all = throughout_ && !steady;
  enum { kWarmUp, kSteady, kCoolDown } phase = kWarmUp;
  visit_passes([&](int d, int type, int n, int slot) {
    if (phase == kWarmUp && type == kBackward0 && d == 0) phase = kSteady;
    const bool ramp = phase == kCoolDown || (phase == kWarmUp && warm_up_too);
    if (ramp || all) (this->*move)(d, type, n, slot);
    if (phase == kSteady && type == kForward0 && n == m_ - 1) phase = kCoolDown;
  });
}

void Slots::tighten() {
  put_weights();
  count_memory(true);
  visit_ramps(true, &Slots::move_with_weights);
  pack();
  count_memory(false);
  visit_ramps(false, &Slots::move_without_weights);
  put_weights();
  pack();
}

// The first slot after everything that pass n of a type waits for.
int Slots::earliest(int d, int type, int n) const {
  int after = n > 0 ? slot_of(d, type, n - 1) : -1;
  const int from = type == kForward0 || type == kBackward1 ? d - 1 : d + 1;
  if (from >= 0 && from < p_) after = std::max(after, slot_of(from, type, n));
  if (type > 0) after = std::max(after, slot_of(d, type - 1, n));
  return after + 1;
}

// The same for W, looking back from `slot`: the n-th of a device runs after its n-th B.
int Slots::earliest_weight(int d, int n, int slot) {
  int later = visited(d, kBackward1) + visited(d, kBackward0) - (n + 1);  // B after the n-th
  const int begin = n > 0 ? slot_of(d, kWeight, n - 1) + 1 : 0;
  for (; slot > begin; --slot) {
    if (is_backward(type_(d, slot - 1)) && later-- == 0) break;
  }
  return slot;
}

// The first slot of [from, to] from which on to `to` one more chunk fits.
int Slots::first_with_room(int d, int from, int to) const {
  int slot = to;
  while (slot > from && load_(d, slot - 1).held < limit_) --slot;
  return slot;
}

// The first free slot of [from, to), or `to`.
int Slots::next_free(int d, int from, int to) const {
  while (from < to && type_(d, from) != kFree) ++from;
  return from;
}

void Slots::move_with_weights(int d, int type, int n, int slot) {
  int to = type == kWeight ? earliest_weight(d, n, slot) : earliest(d, type, n);
  if (is_forward(type)) to = first_with_room(d, to, slot);
  to = next_free(d, to, slot);
  if (to == slot) return;
  place(d, type, n, slot, to);
  if (is_backward(type)) return;
  const int change = is_forward(type) ? 1 : -1;
  for (int s = to; s < slot; ++s) load_(d, s).held += change;
}

void Slots::move_without_weights(int d, int type, int n, int slot) {
  int to = earliest(d, type, n);
  // An F adds its chunk from `to` on at the least; a displaced W can add another.
  if (is_forward(type)) to = first_with_room(d, to, slot);
  to = next_free(d, to, slot);
  while (to < slot && !try_move(d, type, slot, to, false)) to = next_free(d, to + 1, slot);
  if (to == slot) return;
  try_move(d, type, slot, to, true);
  place(d, type, n, slot, to);
}

// Whether memory stays within the limit when the pass at `from` goes to the free slot `to` and the
// W fill what is then free. Beyond `from`, memory is as before as soon as it and the owed W are.
bool Slots::try_move(int d, int type, int from, int to, bool apply) {
  const auto loads = load_.row(d);
  const auto types = type_.row(d);
  Load load = to > 0 ? loads[to - 1] : Load{};
  for (int slot = to; slot < width_; ++slot) {
    load.pass(slot == to ? type : slot == from ? int{kFree} : types[slot], false);
    if (load.held > limit_) return false;
    if (slot >= from && load == loads[slot]) return true;
    if (apply) loads[slot] = load;
  }
  return true;
}

// In order of slots; W fills what is free, chunk 1 first.
PassLists Slots::lists() const {
  constexpr std::array<PassKind, 4> kKinds{PassKind::kF, PassKind::kF, PassKind::kB, PassKind::kB};
  constexpr std::array<int, 4> kChunks{0, 1, 1, 0};
  PassLists lists(p_);
  for (int d = 0; d < p_; ++d) {
    auto& list = lists[d];
    list.reserve(kPeriod * m_);
    std::array<int, 4> ran{};
    std::array<int, 2> weights{};  // run, of chunk 1 and 0
    const auto owes = [&](size_t k) { return weights[k] < ran[k == 0 ? kBackward1 : kBackward0]; };
    for (int slot = 0; weights[0] + weights[1] < 2 * m_; ++slot) {
      const size_t type = type_(d, slot);
      const size_t k = owes(0) ? 0 : 1;
      if (type < kWeight) {
        list.push_back(make_pass(kKinds[type], ran[type]++, kChunks[type]));
      } else if (owes(k)) {
        list.push_back(make_pass(PassKind::kW, weights[k]++, k == 0 ? 1 : 0));
      }
    }
  }
  return lists;
}

Program order(const Problem& problem, VeeSlots (*block)(int, int), bool throughout) {
  Slots slots(problem.shape, block, throughout);
  slots.tighten();
  return {problem.shape, problem.placement, slots.lists()};
}

int peak(const Evaluation& result) {
  return std::ranges::max(result.devices, {}, &DeviceEvaluation::peak_in_flight).peak_in_flight;
}

template <VeeSlots (*block)(int, int)>
Program plan(const Problem& problem) {
  if (is_sharded(problem.vocabulary)) return vocabulary_v_half(problem, block);
  Program published = order(problem, block, false);
  if (problem.shape.microbatches > problem.shape.devices + 1) return published;
  Program tight = order(problem, block, true);
  const Evaluation theirs = evaluate(published, problem);
  const Evaluation ours = evaluate(tight, problem);
  const bool better = ours.cost < theirs.cost && peak(ours) <= peak(theirs);
  return better ? tight : published;
}

Placement place(int devices, int /*chunks*/) { return Placement::vee(devices); }

constexpr auto kBubbleDomain = "F = B = W, equal stages, free transfers; m >= p, 4 if p = 2";
constexpr auto kBubbleGap = "the block is made for F = B = W; other times stretch its every round";

bool bubble_holds(const Problem& problem) {
  const StageCost& cost = problem.stage(0);
  const auto [p, v, m, n] = problem.shape;
  return uniform(problem) && free_transfers(problem) && cost.forward == cost.backward_input &&
         cost.forward == cost.backward_weight && m >= (p == 2 ? 4 : p);
}

Seconds v_half_bubble(const Problem& problem) {
  const int p = problem.shape.devices;
  return std::max(p == 2 ? 1 : 0, p % 2 == 0 ? 3 * p - 7 : 3 * p - 4) * problem.stage(0).forward;
}

Seconds v_min_bubble(const Problem& problem) {
  const int p = problem.shape.devices;
  return std::max(0, p % 3 == 0 ? 4 * p - 7 : 4 * p - 5) * problem.stage(0).forward;
}

bool v_half_peak_holds(const Problem& problem) {
  const auto [p, v, m, n] = problem.shape;
  return m > p || (m == p && p % 2 == 1);
}

int v_half_peak(const Problem& problem, int /*device*/) {
  return problem.shape.devices / 2 * 2 + 2;
}

bool v_min_peak_holds(const Problem& problem) {
  return problem.shape.microbatches >= problem.shape.devices;
}

int v_min_peak(const Problem& problem, int device) {
  const auto [p, v, m, n] = problem.shape;
  return 2 * ((p + 4) / 3) - (device == 0 && p % 3 == 2 && m > 2 ? 1 : 0);
}

const RegisteredSchedule kVHalf{{
    .name = "v-half",
    .summary = "V-shape, two chunks per device: about half of 1F1B's activation memory and bubble",
    .source = "Controllable Memory, arXiv 2405.15362, and its public greedy generator",
    .order = "V-shape, two chunks; a six-slot block, ramps tightened greedily within its peak",
    .default_chunks = 2,
    .min_chunks = 2,
    .max_chunks = 2,
    .place = place,
    .plan = plan<v_half_slots>,
    .claims = {.bubble = {"3p-7 passes if p is even (1 if p = 2), 3p-4 if odd", kBubbleDomain,
                          kBubbleGap, bubble_holds, v_half_bubble},
               .peak = {"p+2 chunks if p is even, p+1 if odd", "m > p, or m = p and p odd",
                        "m = p, p even: device 0 can hold one less", v_half_peak_holds,
                        v_half_peak}},
    .vocabulary = vocabulary_v_half_claims(),
    .runs_on = Runtime::kZeroBubbleFork,
}};

const RegisteredSchedule kVMin{{
    .name = "v-min",
    .summary = "V-shape, two chunks per device: about a third of 1F1B's activation memory",
    .source = "Controllable Memory, arXiv 2405.15362, and its public greedy generator",
    .order = "as v-half with a tighter block",
    .default_chunks = 2,
    .min_chunks = 2,
    .max_chunks = 2,
    .place = place,
    .plan = plan<v_min_slots>,
    .claims = {.bubble = {"4p-5 passes, 4p-7 if p is a multiple of 3", kBubbleDomain, kBubbleGap,
                          bubble_holds, v_min_bubble},
               .peak = {"2 floor((p+4)/3) chunks; one less on device 0 if p = 2 modulo 3, m > 2",
                        "m >= p", "", v_min_peak_holds, v_min_peak}},
    .runs_on = Runtime::kZeroBubbleFork,
}};

}  // namespace
}  // namespace pipesim
