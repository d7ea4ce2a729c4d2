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
    bool& taken = used[slots[static_cast<size_t>(kind)]];
    if (taken) return false;
    taken = true;
  }
  for (const size_t b : {size_t{kB1}, size_t{kB0}}) {
    int slot = slots[b];
    while (used[slot]) slot = in_period(slot + 1);
    used[slot] = true;
    slots[b + 2] = slot;
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

std::vector<Block> building_blocks(int devices) {
  std::vector<Block> blocks;
  for (int slots = 0; slots < 125; ++slots) {
    const int f1 = slots / 25 + 1, b1 = slots / 5 % 5 + 1, b0 = slots % 5 + 1;
    if (f1 == b1 || f1 == b0 || b1 == b0) continue;
    for (int step = 1; step < kPeriod; ++step) {
      for (int last = 1; last <= step; ++last) {
        const int end = last == step ? 2 : devices;
        for (int n = 1; n < std::max(2, end); ++n) blocks.push_back({{f1, b1, b0}, step, last, n});
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
      source_(slot_.size(), -1),
      row_(slot_.size() * static_cast<size_t>(full_)),
      start_(row_.size()),
      end_(row_.size()),
      count_(slot_.size()),
      clock_(devices),
      first_start_(clock_.size()),
      position_(clock_.size()),
      unit_{std::vector<double>(slot_.size(), 1.0), std::vector<double>(slot_.size(), 0.0)},
      next_(slot_.size()),
      held_(clock_.size()) {
  for (int kind = 0; kind < kMessages; ++kind) {
    for (int d = 0; d < p_; ++d) {
      const int from = goes_up(kind) ? d - 1 : d + 1;
      const bool turns = from < 0 || from == p_;
      if (turns && kind == kF0) continue;
      source_[id(kind, d)] = static_cast<int>(turns ? id(kind - 1, d) : id(kind, from));
    }
  }
}

bool BlockBuilder::place(const Block& block) {
  Slots slots{0, block.first[0], block.first[1], block.first[2], 0, 0};
  for (int d = 0; d < p_; ++d) {
    if (d > 0) {
      const int step = d <= block.steps ? block.step : block.last_step;
      for (int kind = 0; kind < kMessages; ++kind) {
        int& slot = slots[kind];
        slot = in_period(slot + (goes_up(kind) ? step : -1));
      }
    }
    if (!complete(slots)) return false;
    for (int kind = 0; kind < kVeeKinds; ++kind) {
      slot_[id(kind, d)] = slots[kind];
    }
  }
  // From slots of the period to those of the first microbatch: each pass as soon as its turn comes
  // after the pass that it waits for.
  int now = kPeriod;
  for (int kind = 0; kind < kMessages; ++kind) {
    for (int q = 0; q < p_; ++q) {
      const int d = goes_up(kind) ? q : p_ - 1 - q;
      const auto next = [&now](int slot) { return now + in_period(slot - now); };
      int& slot = slot_[id(kind, d)];
      slot = next(slot);
      now = slot + 1;
      if (!is_vee_forward(kind)) slot_[id(kind + 2, d)] = next(slot_[id(kind + 2, d)]);
    }
  }
  return true;
}

double BlockBuilder::period(const VeeTimes& times, int rounds) {
  // Passes in the order of their slots in the period; only the last two microbatches count, since
  // none waits for a pass more than a period before it.
  std::array<size_t, kPeriod + 1> begin{};
  for (const int slot : slot_) ++begin[static_cast<size_t>(slot % kPeriod) + 1];
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
      double& clock = clock_[of % clock_.size()];
      if (source_[of] >= 0) clock = std::max(clock, end[source_[of]] + times.message[of]);
      clock += times.pass[of];
      end[of] = clock;
    }
  }
  return (*std::ranges::max_element(clock_) - half) / static_cast<double>(rounds - half_way);
}

int BlockBuilder::peak() const {
  int most = 0;
  for (int d = 0; d < p_; ++d) most = std::max(most, peak_of(d));
  return most;
}

int BlockBuilder::peak_of(int device) const {
  int most = 0;
  int held = 0;
  for (const std::uint8_t kind : order(device)) {
    held += vee_in_flight(kind);
    most = std::max(most, held);
  }
  return most;
}

// Every pass as soon as it can, device after device, up and down the pipeline.
std::optional<double> BlockBuilder::replay(const VeeTimes& times, int microbatches) {
  std::ranges::fill(count_, 0);
  std::ranges::fill(position_, 0);
  std::ranges::fill(clock_, 0);
  size_t left = static_cast<size_t>(p_) * static_cast<size_t>(length_);
  const auto slot = [microbatches](size_t of, int number) {
    return of * static_cast<size_t>(microbatches) + static_cast<size_t>(number);
  };
  int idle_sweeps = 0;
  for (bool up = true; left > 0; up = !up) {
    const size_t before = left;
    for (int q = 0; q < p_; ++q) {
      const int d = up ? q : p_ - 1 - q;
      const std::uint8_t* kinds = row(d);
      double* starts = start_.data() + offset(d);
      int& position = position_[d];
      double& clock = clock_[d];
      for (; position < length_; ++position, --left) {
        const size_t of = id(kinds[position], d);
        const int number = count_[of];
        if (source_[of] >= 0) {
          const auto source = static_cast<size_t>(source_[of]);
          if (count_[source] <= number) break;
          clock = std::max(clock, end_[slot(source, number)] + times.message[of]);
        }
        starts[position] = clock;
        clock += times.pass[of];
        end_[slot(of, number)] = clock;
        ++count_[of];
      }
    }
    idle_sweeps = left == before ? idle_sweeps + 1 : 0;
    if (idle_sweeps == 2) return std::nullopt;
  }
  double cost = 0;
  for (int d = 0; d < p_; ++d) {
    cost = std::max(cost, clock_[d] - start_[offset(d)]);
  }
  return cost;
}

}  // namespace pipesim
