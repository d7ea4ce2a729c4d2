#include "sim/planning/building_block.h"

#include <algorithm>
#include <numeric>

namespace pipesim {
namespace {

constexpr int kPeriod = kVeeKinds;
constexpr int kMessages = 4;  // kinds that a later pass waits for: F and B

constexpr bool goes_up(int kind) { return kind == kF0 || kind == kB1; }
constexpr int in_period(int slot) { return (slot % kPeriod + kPeriod) % kPeriod; }

using Slots = std::array<int, kVeeKinds>;

// Gives each W a slot; false when F and B collide.
bool complete(Slots& slots) {
  std::array<bool, kPeriod> used{};
  for (int kind = 0; kind < kMessages; ++kind) {
    bool& taken = used[slots[kind]];
    if (taken) return false;
    taken = true;
  }
  for (const int backward : {kB1, kB0}) {
    int slot = slots[backward];
    while (used[slot]) slot = in_period(slot + 1);
    used[slot] = true;
    slots[vee_weight_of(backward)] = slot;
  }
  return true;
}

}  // namespace

VeeSlots v_half_slots(int devices, int device) {
  const int wait = devices % 2 == 0 ? 3 : 0;  // keeps the slots of a device apart modulo the period
  return {2 * device, 3 * devices - 2 - device, 3 * devices - 1 + wait + 2 * device,
          6 * devices - 2 + wait - device};
}

VeeSlots v_min_slots(int devices, int device) {
  const int wait = devices % 3 == 0 ? 2 : 0;
  return {device, 2 * devices - 1 - device, 2 * devices + wait + device,
          4 * devices - 1 + wait - device};
}

std::vector<Block> building_blocks(int devices, int turns) {
  std::vector<int> after;  // how many boundaries
  for (int i = 1; i <= std::min(devices - 1, turns); ++i) {
    after.push_back(devices - 1 <= turns ? i : i * (devices - 1) / (turns + 1));
  }
  if (after.empty()) after.push_back(1);
  std::vector<Block> blocks;
  for (int slots = 0; slots < 125; ++slots) {
    const int f1 = slots / 25 + 1, b1 = slots / 5 % 5 + 1, b0 = slots % 5 + 1;
    if (f1 == b1 || f1 == b0 || b1 == b0) continue;
    for (int step = 1; step < kPeriod; ++step) {
      for (int last = 1; last <= step; ++last) {
        for (const int n : after) {
          blocks.push_back({{f1, b1, b0}, step, last, n});
          if (last == step) break;
        }
      }
    }
  }
  return blocks;
}

BlockBuilder::BlockBuilder(int devices, int microbatches)
    : p_(devices),
      m_(microbatches),
      full_(std::max(microbatches, 2 * devices)),
      slot_(kVeeKinds * devices),
      orders_(devices, full_),
      clock_(devices) {}

bool BlockBuilder::place(const Block& block) {
  Slots slots{0, block.first[0], block.first[1], block.first[2], 0, 0};
  for (int d = 0; d < p_; ++d) {
    const int step = d <= block.steps ? block.step : block.last_step;
    for (int kind = 0; d > 0 && kind < kMessages; ++kind) {
      slots[kind] = in_period(slots[kind] + (goes_up(kind) ? step : -1));
    }
    if (!complete(slots)) return false;
    for (int kind = 0; kind < kVeeKinds; ++kind) slot_[id(kind, d)] = slots[kind];
  }
  find_slots_of_first_microbatch();
  return true;
}

// From slots of the period: each pass as soon as its turn comes after the pass that it waits for.
void BlockBuilder::find_slots_of_first_microbatch() {
  int now = kPeriod;
  const auto take_turn = [this, &now](int kind, int d) {
    int& slot = slot_[id(kind, d)];
    return slot = now + in_period(slot - now);
  };
  for (int kind = 0; kind < kMessages; ++kind) {
    for (int q = 0; q < p_; ++q) {
      const int d = goes_up(kind) ? q : p_ - 1 - q;
      now = take_turn(kind, d) + 1;
      if (is_vee_backward(kind)) take_turn(vee_weight_of(kind), d);
    }
  }
}

double BlockBuilder::period(const VeeTimes& times, int rounds) {
  // Passes in the order of their slots in the period; only the last two microbatches count, since
  // none waits for a pass more than a period before it.
  std::array<size_t, kPeriod + 1> begin{};
  for (const int slot : slot_) ++begin[slot % kPeriod + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  by_slot_.resize(slot_.size());
  for (size_t of = 0; of < slot_.size(); ++of) {
    by_slot_[begin[slot_[of] % kPeriod]++] = of;
  }
  last_two_.assign(2 * slot_.size(), 0);
  std::ranges::fill(clock_, 0);
  const int half_way = rounds / 2;
  double half = 0;
  for (int round = 0; round < rounds; ++round) {
    if (round == half_way) half = *std::ranges::max_element(clock_);
    for (const size_t of : by_slot_) {
      double* end = last_two_.data();
      if (((round - slot_[of] / kPeriod) & 1) != 0) end += slot_.size();
      double& clock = clock_[of / kVeeKinds];
      if (const int source = orders_.source(of); source >= 0) {
        clock = std::max(clock, end[source] + times.message[of]);
      }
      clock += times.pass[of];
      end[of] = clock;
    }
  }
  return (*std::ranges::max_element(clock_) - half) / static_cast<double>(rounds - half_way);
}

int BlockBuilder::steady_chunks() const {
  int most = 0;
  for (int d = 0; d < p_; ++d) {
    for (const int at : {slot(kF0, d), slot(kF1, d)}) {
      int chunks = 0;
      for (int kind = 0; kind < kVeeKinds; ++kind) {
        const int run = (at - slot(kind, d) + 6 * kPeriod * p_) / kPeriod;
        chunks += run * vee_in_flight(kind);
      }
      most = std::max(most, chunks);
    }
  }
  return most;
}

bool BlockBuilder::build(int limit) {
  limit = std::min(limit, 2 * p_);
  // There are enough microbatches to reach the steady state.
  if (m_ > 2 * p_) {
    needed_ = steady_chunks();
    if (needed_ > limit) return false;
  }
  repeat();
  int chunks = peak();
  needed_ = chunks;
  if (chunks > 2 * p_ || (m_ == full_ && chunks > limit)) return false;
  lay_warm_up(orders_, full_, chunks);
  if (peak() > chunks || !orders_.squeeze()) return false;
  if (m_ < full_) {
    chunks = peak();
    drop_surplus(orders_, m_);
    if (m_ <= p_ && 2 * m_ <= limit) delay_weights(orders_, chunks);
    if (!orders_.squeeze()) return false;
    needed_ = peak();
    if (needed_ > limit) return false;
  }
  chunks = peak();
  if (!cool_down_.lay(orders_, m_, chunks) || !orders_.squeeze()) return false;
  hole_filler_.fill(orders_, m_, peak());
  relabel_weights(orders_);
  return peak() <= chunks;
}

// Microbatch n runs 6 n slots after the first.
void BlockBuilder::repeat() {
  orders_.set_length(kVeeKinds * full_);
  for (int d = 0; d < p_; ++d) {
    std::array<int, kVeeKinds> kinds{};
    std::iota(kinds.begin(), kinds.end(), 0);
    std::ranges::sort(kinds, {}, [&](int kind) { return slot(kind, d) % kVeeKinds; });
    int first = slot(kF0, d) / kVeeKinds;
    const auto order = orders_.order(d);
    for (auto out = order.begin(); out < order.end(); ++first) {
      for (const int kind : kinds) {
        const int microbatch = first - slot(kind, d) / kVeeKinds;
        if (microbatch >= 0 && microbatch < full_) *out++ = static_cast<std::uint8_t>(kind);
      }
    }
  }
}

}  // namespace pipesim
