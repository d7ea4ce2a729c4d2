// 1F1B-V (Qi et al., Pipeline Parallelism with Controllable Memory, arXiv 2405.15362): 1F1B on the
// V-shape, with B and W always fused, in about two thirds of 1F1B's activation memory.
//
// A building block, the slots that one microbatch takes on every device, is repeated every six unit
// slots: one slot for each F, two for each BW. Then every pass, in order of slots, moves to the
// earliest hole after what it waits for; an F only as far as the peak of its device stays within
// the largest peak of the block. The order does not depend on the stages' times. O(passes + p^3):
// in the steady part nothing moves.
#include <algorithm>
#include <array>
#include <vector>

#include "sim/core/grid.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

// The passes of a microbatch on a device, in the order in which it runs them.
enum Type : std::uint8_t { kForward0, kForward1, kBackward1, kBackward0, kTypes, kFree };
constexpr int kPeriod = 6;  // slots from one microbatch to the next

// Slots of a BW: its second is marked kTypes.
int length(int type) { return type < kBackward1 ? 1 : 2; }

class Slots {
 public:
  explicit Slots(const Shape& shape);

  void tighten();
  [[nodiscard]] PassLists lists() const;

 private:
  // The first slot of microbatch 0, by device and type; returns the last.
  int put_block();
  void repeat_block();
  void count_memory();
  void move(int d, int type, int n, int slot);
  [[nodiscard]] int earliest(int d, int type, int n) const;
  [[nodiscard]] int first_with_room(int d, int from, int to) const;
  [[nodiscard]] bool fits(int d, int type, int slot) const;
  void mark(int d, int type, int slot, bool there);

  [[nodiscard]] int& slot_of(int d, int type, int n) { return slot_of_(d * kTypes + type, n); }
  [[nodiscard]] int slot_of(int d, int type, int n) const { return slot_of_(d * kTypes + type, n); }
  // The last slot of a pass.
  [[nodiscard]] int end_of(int d, int type, int n) const {
    return slot_of(d, type, n) + length(type) - 1;
  }

  int p_;
  int m_;
  Grid<int> slot_of_;        // first slot of a pass, by device and type, and number
  int width_;                // slots of a device
  Grid<std::uint8_t> type_;  // by device and slot
  Grid<int> held_;           // chunks in memory after a slot
  int limit_ = 0;            // the largest of held_ before anything moves
};

Slots::Slots(const Shape& shape)
    : p_(shape.devices),
      m_(shape.microbatches),
      slot_of_(p_ * kTypes, m_),
      width_(put_block() + 2 + kPeriod * (m_ - 1)),
      type_(p_, width_, kFree),
      held_(p_, width_) {
  repeat_block();
  count_memory();
}

// The passes of one microbatch follow each other, but for gaps of three slots: after every third BW
// and, where p is a multiple of 3, before the first. They keep the slots of a device apart modulo
// the period.
int Slots::put_block() {
  int slot = 0;
  for (int d = 0; d < p_; ++d) slot_of(d, kForward0, 0) = slot++;
  for (int d = p_ - 1; d >= 0; --d) slot_of(d, kForward1, 0) = slot++;
  if (p_ % 3 == 0) slot += 3;
  int last = 0;
  int until_gap = (p_ + 1) % 3 + 1;
  const auto put = [&](int d, Type type) {
    last = slot_of(d, type, 0) = slot;
    slot += --until_gap == 0 ? 5 : 2;
    if (until_gap == 0) until_gap = 3;
  };
  for (int d = 0; d < p_; ++d) put(d, kBackward1);
  for (int d = p_ - 1; d >= 0; --d) put(d, kBackward0);
  return last;
}

void Slots::repeat_block() {
  for (int d = 0; d < p_; ++d) {
    for (int type = 0; type < kTypes; ++type) {
      for (int n = 0; n < m_; ++n) {
        const int slot = slot_of(d, type, 0) + kPeriod * n;
        slot_of(d, type, n) = slot;
        mark(d, type, slot, true);
      }
    }
  }
}

void Slots::count_memory() {
  for (int d = 0; d < p_; ++d) {
    int held = 0;
    for (int slot = 0; slot < width_; ++slot) {
      const int type = type_(d, slot);
      if (type < kBackward1) ++held;
      if (type == kTypes) --held;
      held_(d, slot) = held;
      limit_ = std::max(limit_, held);
    }
  }
}

void Slots::tighten() {
  std::vector<int> count(p_ * kTypes);
  for (int slot = 0; slot < width_; ++slot) {
    for (int d = 0; d < p_; ++d) {
      const int type = type_(d, slot);
      if (type < kTypes) move(d, type, count[d * kTypes + type]++, slot);
    }
  }
}

void Slots::move(int d, int type, int n, int slot) {
  int to = earliest(d, type, n);
  if (length(type) == 1) to = first_with_room(d, to, slot);
  while (to < slot && !fits(d, type, to)) ++to;
  if (to >= slot) return;
  mark(d, type, slot, false);
  mark(d, type, to, true);
  slot_of(d, type, n) = to;
  // A BW gives back in its second slot.
  const int change = length(type) == 1 ? 1 : -1;
  const int delay = length(type) - 1;
  for (int s = to; s < slot; ++s) held_(d, s + delay) += change;
}

// The first slot after everything that pass n of a type waits for.
int Slots::earliest(int d, int type, int n) const {
  int after = -1;
  const int from = type == kForward0 || type == kBackward1 ? d - 1 : d + 1;
  if (from >= 0 && from < p_) after = end_of(from, type, n);
  if (type > 0) after = std::max(after, end_of(d, type - 1, n));
  if (n > 0) after = std::max(after, end_of(d, type, n - 1));
  return after + 1;
}

// The first slot of [from, to] from which on to `to` one more chunk fits.
int Slots::first_with_room(int d, int from, int to) const {
  int slot = to;
  while (slot > from && held_(d, slot - 1) < limit_) --slot;
  return slot;
}

bool Slots::fits(int d, int type, int slot) const {
  for (int s = slot; s < slot + length(type); ++s) {
    if (type_(d, s) != kFree) return false;
  }
  return true;
}

void Slots::mark(int d, int type, int slot, bool there) {
  type_(d, slot) = static_cast<std::uint8_t>(there ? type : kFree);
  if (length(type) == 2) type_(d, slot + 1) = there ? kTypes : kFree;
}

PassLists Slots::lists() const {
  constexpr std::array<int, kTypes> kChunks{0, 1, 1, 0};
  PassLists lists(p_);
  for (int d = 0; d < p_; ++d) {
    auto& list = lists[d];
    list.reserve(kTypes * m_);
    std::array<int, kTypes> count{};
    for (int slot = 0; slot < width_; ++slot) {
      const size_t type = type_(d, slot);
      if (type >= kTypes) continue;
      const PassKind kind = type < kBackward1 ? PassKind::kF : PassKind::kBW;
      list.push_back(make_pass(kind, count[type]++, kChunks[type]));
    }
  }
  return lists;
}

Program plan(const Problem& problem) {
  Slots slots(problem.shape);
  slots.tighten();
  return {problem.shape, problem.placement, slots.lists()};
}

const RegisteredSchedule kV1f1b{{
    .name = "1f1b-v",
    .summary = "1F1B on the V-shape, B and W fused: about two thirds of 1F1B's activation memory",
    .source = "Controllable Memory, arXiv 2405.15362, and its public generator",
    .order = "V-shape, two chunks, B and W fused; a six-slot block, each pass moved left within "
             "its peak",
    .default_chunks = 2,
    .min_chunks = 2,
    .max_chunks = 2,
    .place = [](int devices, int /*chunks*/) { return Placement::vee(devices); },
    .plan = plan,
    .claims = {.bubble = {
                   .formula = "5(p-1) passes if p = 1 modulo 3, 5p-7 if p = 2 (4 for two "
                              "devices)",
                   .domain = "F = B = W, equal stages, free transfers, m >= p, p no multiple "
                             "of 3",
                   .gap = "the block is made for F = B = W, and other times stretch every "
                          "round of it; with multiples of 3 it is 5p-9 to 5p-7, by no rule "
                          "that we found",
                   .holds =
                       [](const Problem& problem) {
                         const auto [p, v, m, n] = problem.shape;
                         const StageCost& cost = problem.stage(0);
                         return uniform(problem) && free_transfers(problem) &&
                                cost.forward == cost.backward_input &&
                                cost.forward == cost.backward_weight && m >= p && p % 3 != 0;
                       },
                   .bubble =
                       [](const Problem& problem) {
                         const int p = problem.shape.devices;
                         const int passes = p % 3 == 1 ? 5 * (p - 1) : std::max(4, 5 * p - 7);
                         return passes * problem.stage(0).forward;
                       }},
               .peak = {.formula = "min(2m, 2 floor(2p/3) + 2, m + 1 + floor(3d/2)) chunks",
                        .domain = "every m",
                        .holds = [](const Problem&) { return true; },
                        .in_flight =
                            [](const Problem& problem, int device) {
                              const auto [p, v, m, n] = problem.shape;
                              return std::min({2 * m, 2 * (2 * p / 3) + 2, m + 1 + 3 * device / 2});
                            }}},
    .runs_on = Runtime::kZeroBubbleFork,
    .left_out_of_plan = "v-half has a smaller bubble in less memory",
}};

}  // namespace
}  // namespace pipesim
