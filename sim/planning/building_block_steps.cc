// From a placed block to its schedule: repeat, warm up, cool down, fill holes.
#include <algorithm>
#include <numeric>

#include "sim/planning/building_block.h"

namespace pipesim {
namespace {

using Counts = std::array<int, kVeeKinds + 1>;

}  // namespace

bool BlockBuilder::build(int limit) {
  limit = std::min(limit, 2 * p_);
  repeat();
  int chunks = peak();
  if (chunks > 2 * p_ || (m_ == full_ && chunks > limit)) return false;
  lay_warm_up(chunks);
  if (peak() > chunks || !squeeze(full_)) return false;
  if (m_ < full_) {
    chunks = peak();
    drop_surplus();
    if (m_ <= p_ && 2 * m_ <= limit) delay_weights(chunks);
    if (!squeeze(m_)) return false;
    if (peak() > limit) return false;
  }
  chunks = peak();
  if (!lay_cool_down(chunks) || !squeeze(m_)) return false;
  fill_holes(peak());
  relabel_weights();
  return peak() <= chunks;
}

// Microbatch n runs 6 n slots after the first.
void BlockBuilder::repeat() {
  length_ = kVeeKinds * full_;
  for (int d = 0; d < p_; ++d) {
    std::array<int, kVeeKinds> kinds{};
    std::iota(kinds.begin(), kinds.end(), 0);
    std::ranges::sort(kinds, {}, [&](int kind) { return slot(kind, d) % kVeeKinds; });
    int first = slot(kF0, d) / kVeeKinds;
    std::uint8_t* out = row(d);
    std::uint8_t* const end = out + length_;
    for (; out < end; ++first) {
      for (const int kind : kinds) {
        const int microbatch = first - slot(kind, d) / kVeeKinds;
        if (microbatch >= 0 && microbatch < full_) *out++ = static_cast<std::uint8_t>(kind);
      }
    }
  }
}

// Up to the first B0 of a device: F0 until F1 arrives, F0 and F1 in turn, then B1, W1 and an F in
// turn, with no more in flight than before.
void BlockBuilder::lay_warm_up(int chunks) {
  for (int d = 0; d < p_; ++d) {
    std::uint8_t* out = row(d);
    Counts left{};
    std::uint8_t* end = out;
    while (*end != kB0) ++left[*end++];
    const auto put = [&](int kind) {
      if (left[kind] == 0) return false;
      --left[kind];
      *out++ = static_cast<std::uint8_t>(kind);
      return true;
    };
    int f1 = std::min({d + 1, chunks / 2, full_});
    int f0 = std::min(chunks - f1, full_);
    for (int q = 0; q < 2 * (p_ - 1 - d) && f0 > 0; ++q) f0 -= put(kF0) ? 1 : 0;
    for (int q = 0; q <= d; ++q) {
      if (f0 > 0) f0 -= put(kF0) ? 1 : 0;
      if (f1 > 0) f1 -= put(kF1) ? 1 : 0;
    }
    while (out < end) {
      put(kB1);
      put(kW1);
      if (!put(kF1)) put(kF0);
    }
  }
}

void BlockBuilder::drop_surplus() {
  for (int d = 0; d < p_; ++d) {
    Counts count{};
    std::uint8_t* out = row(d);
    for (const std::uint8_t kind : order(d)) {
      if (++count[kind] <= m_) *out++ = kind;
    }
  }
  length_ = kVeeKinds * m_;
}

// With few microbatches there is memory left: the first W go last.
void BlockBuilder::delay_weights(int chunks) {
  for (int d = 0; d < p_; ++d) {
    int more = chunks - peak_of(d);
    std::uint8_t* out = row(d);
    queue_.clear();
    for (const std::uint8_t kind : order(d)) {
      if (is_vee_weight(kind) && more-- > 0) {
        queue_.push_back(kind);
      } else {
        *out++ = kind;
      }
    }
    std::ranges::copy(queue_, out);
  }
}

// The last B as tight as they can be: one column of B0 and B1 each runs over the devices as a wave,
// and W where holes are left.
bool BlockBuilder::lay_cool_down(int chunks) {
  int& turn = turn_;
  turn = -1;
  for (int i = length_ - 1; i >= 0 && turn < 0; --i) {
    if (row(0)[i] == kF1) turn = column(0, i);
  }
  for (int d = 0; d < p_; ++d) {
    if (!take_back(d, chunks)) return false;
    pay_weights(d);
  }
  return true;
}

// Spreads a device over its columns, its last B moved and its last W taken out.
bool BlockBuilder::take_back(int d, int chunks) {
  const int most_b0 = std::min((chunks + 1) / 2, m_);
  const int most_b1 = std::min({d + 1, chunks - most_b0, m_});
  const std::uint8_t* kinds = row(d);
  grid_.assign(column(d, length_ - 1) + 1 + kVeeKinds * (p_ + m_), kHole);
  int b0 = 0, b1 = 0, w0 = 0, w1 = 0;
  for (int i = length_ - 1; i >= 0; --i) {
    const std::uint8_t kind = kinds[i];
    if (kind == kB0 && b0 < most_b0) {
      ++b0;
    } else if (kind == kB1 && b1 < most_b1) {
      ++b1;
    } else {
      grid_[column(d, i)] = kind;
    }
  }
  for (int i = length_ - 1; i >= 0; --i) {
    if (w1 >= b1 && w0 >= b0 && w1 + w0 >= chunks) break;
    if (!is_vee_weight(kinds[i])) continue;
    ++(kinds[i] == kW1 ? w1 : w0);
    grid_[column(d, i)] = kHole;
  }
  const auto put = [this](int column, std::uint8_t kind) {
    if (column < 0 || grid_[column] != kHole) return false;
    grid_[column] = kind;
    return true;
  };
  for (int n = 0; n < b0; ++n) {
    if (!put(turn_ - d + 2 * (p_ - n), kB0)) return false;
  }
  for (int n = 0; n < b1; ++n) {
    if (!put(turn_ + 1 + d - 2 * n, kB1)) return false;
  }
  return true;
}

// Reads a device from its columns, an owed W in every hole after the last W that stayed.
void BlockBuilder::pay_weights(int d) {
  size_t stayed = grid_.size();
  while (stayed > 0 && !is_vee_weight(grid_[stayed - 1])) --stayed;
  std::array<int, 2> owed{};  // W1, W0
  std::uint8_t* out = row(d);
  std::uint8_t* const end = out + length_;
  for (size_t column = 0; out < end; ++column) {
    std::uint8_t kind = column < grid_.size() ? grid_[column] : kHole;
    if (kind == kHole && column >= stayed) {
      if (owed[0] > 0) {
        kind = kW1;
      } else if (owed[1] > 0) {
        kind = kW0;
      }
    }
    if (kind == kHole) continue;
    if (kind == kB1 || kind == kB0) ++owed[kind == kB1 ? 0 : 1];
    if (is_vee_weight(kind)) --owed[kind == kW1 ? 0 : 1];
    *out++ = kind;
  }
}

// Column by column: a hole takes the nearest later pass of its device that can run there and raises
// no peak.
void BlockBuilder::fill_holes(int chunks) {
  columns_ = 0;
  for (int d = 0; d < p_; ++d) columns_ = std::max(columns_, column(d, length_ - 1) + 1);
  grid_.assign(static_cast<size_t>(p_) * static_cast<size_t>(columns_), kHole);
  const auto cells = [this](int d) { return grid_.data() + static_cast<ptrdiff_t>(d) * columns_; };
  for (int d = 0; d < p_; ++d) {
    for (int i = 0; i < length_; ++i) cells(d)[column(d, i)] = row(d)[i];
  }
  std::ranges::fill(next_, 0);
  std::ranges::fill(held_, 0);
  std::ranges::fill(count_, 0);
  for (int column = 0; column < columns_; ++column) {
    for (int d = 0; d < p_; ++d) {
      std::uint8_t& cell = cells(d)[column];
      if (cell == kHole) {
        const int from = find_filler(d, column, chunks);
        if (from == columns_) continue;
        std::swap(cell, cells(d)[from]);
      }
      const size_t of = id(cell, d);
      end_[of * static_cast<size_t>(m_) + static_cast<size_t>(count_[of]++)] = column + 1;
      held_[d] += vee_in_flight(cell);
    }
  }
  for (int d = 0; d < p_; ++d) {
    std::copy_if(cells(d), cells(d) + columns_, row(d), [](auto kind) { return kind != kHole; });
  }
}

// The column of the pass that a hole takes, or the number of columns.
int BlockBuilder::find_filler(int d, int column, int chunks) {
  const std::uint8_t* cells = grid_.data() + static_cast<ptrdiff_t>(d) * columns_;
  int found = columns_;
  for (int kind = 0; kind < kVeeKinds; ++kind) {
    const size_t of = id(kind, d);
    const int number = count_[of];
    if (number == m_) continue;
    if (is_vee_forward(kind) && held_[d] >= chunks) continue;
    if (is_vee_weight(kind) && count_[id(kind - 2, d)] <= number) continue;
    if (source_[of] >= 0) {
      const auto source = static_cast<size_t>(source_[of]);
      if (count_[source] <= number) continue;
      if (end_[source * static_cast<size_t>(m_) + static_cast<size_t>(number)] > column) continue;
    }
    int& next = next_[of];
    next = std::max(next, column + 1);
    while (cells[next] != kind) ++next;
    if (next >= found) continue;
    bool room = true;
    int held = held_[d];
    for (int c = column + 1; is_vee_forward(kind) && room && c < next; ++c) {
      held += vee_in_flight(cells[c]);
      room = held < chunks;
    }
    if (room) found = next;
  }
  return found;
}

// The oldest B's W first, whichever its chunk.
void BlockBuilder::relabel_weights() {
  for (int d = 0; d < p_; ++d) {
    queue_.clear();
    size_t paid = 0;
    std::uint8_t* kinds = row(d);
    for (int i = 0; i < length_; ++i) {
      if (kinds[i] == kB1 || kinds[i] == kB0) {
        queue_.push_back(static_cast<std::uint8_t>(kinds[i] + 2));
      } else if (is_vee_weight(kinds[i])) {
        kinds[i] = queue_[paid++];
      }
    }
  }
}

}  // namespace pipesim
