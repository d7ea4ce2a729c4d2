#include "sim/planning/block_steps.h"

#include <algorithm>
#include <array>

namespace pipesim {
namespace {

constexpr std::uint8_t kHole = kVeeKinds;

using Counts = std::array<int, kVeeKinds>;

// Lays passes of a device from its start, as many of each kind as are left.
class Layer {
 public:
  explicit Layer(std::span<std::uint8_t> order) : out_(order.begin()), end_(order.begin()) {
    while (*end_ != kB0) ++left_[*end_++];
  }

  [[nodiscard]] bool done() const { return out_ == end_; }
  bool put(std::uint8_t kind) {
    if (left_[kind] == 0) return false;
    --left_[kind];
    *out_++ = kind;
    return true;
  }
  // Puts one pass if any is left, and counts it off `wanted`.
  void put(std::uint8_t kind, int& wanted) {
    if (wanted > 0 && put(kind)) --wanted;
  }

 private:
  Counts left_{};
  std::span<std::uint8_t>::iterator out_, end_;
};

// W that are owed, those of chunk 1 first.
class OwedWeights {
 public:
  // Notes a pass.
  void ran(std::uint8_t kind) {
    if (kind == kB1) ++w1_;
    if (kind == kB0) ++w0_;
    if (kind == kW1) --w1_;
    if (kind == kW0) --w0_;
  }
  [[nodiscard]] std::uint8_t next() const {
    if (w1_ > 0) return kW1;
    return w0_ > 0 ? static_cast<std::uint8_t>(kW0) : kHole;
  }

 private:
  int w1_ = 0, w0_ = 0;
};

}  // namespace

void lay_warm_up(VeeOrders& orders, int microbatches, int chunks) {
  for (int d = 0; d < orders.devices(); ++d) {
    Layer layer(orders.order(d));
    int f1 = std::min({d + 1, chunks / 2, microbatches});
    int f0 = std::min(chunks - f1, microbatches);
    for (int q = 0; q < 2 * (orders.devices() - 1 - d); ++q) layer.put(kF0, f0);
    for (int q = 0; q <= d; ++q) {
      layer.put(kF0, f0);
      layer.put(kF1, f1);
    }
    while (!layer.done()) {
      layer.put(kB1);
      layer.put(kW1);
      if (!layer.put(kF1)) layer.put(kF0);
    }
  }
}

void drop_surplus(VeeOrders& orders, int microbatches) {
  for (int d = 0; d < orders.devices(); ++d) {
    Counts count{};
    auto out = orders.order(d).begin();
    for (const std::uint8_t kind : orders.order(d)) {
      if (++count[kind] <= microbatches) *out++ = kind;
    }
  }
  orders.set_length(kVeeKinds * microbatches);
}

void delay_weights(VeeOrders& orders, int chunks) {
  std::vector<std::uint8_t> delayed;
  for (int d = 0; d < orders.devices(); ++d) {
    int more = chunks - orders.peak_of(d);
    auto out = orders.order(d).begin();
    delayed.clear();
    for (const std::uint8_t kind : orders.order(d)) {
      if (is_vee_weight(kind) && more-- > 0) {
        delayed.push_back(kind);
      } else {
        *out++ = kind;
      }
    }
    std::ranges::copy(delayed, out);
  }
}

bool CoolDown::lay(VeeOrders& orders, int microbatches, int chunks) {
  turn_ = orders.column(VeeOrders::id(kF1, 0), microbatches - 1);
  const int most_b0 = std::min((chunks + 1) / 2, microbatches);
  for (int d = 0; d < orders.devices(); ++d) {
    columns_.assign(orders.columns(d) + kVeeKinds * (orders.devices() + microbatches), kHole);
    Taken taken = spread(orders, d, most_b0, std::min({d + 1, chunks - most_b0, microbatches}));
    take_weights(orders, d, chunks, taken);
    if (!lay_wave(orders, d, taken)) return false;
    pay_weights(orders, d);
  }
  return true;
}

// Spreads a device over its columns but for its last B.
CoolDown::Taken CoolDown::spread(const VeeOrders& orders, int d, int most_b0, int most_b1) {
  const int microbatches = orders.length() / kVeeKinds;
  for (std::uint8_t kind = 0; kind < kVeeKinds; ++kind) {
    const int laid_anew = kind == kB0 ? most_b0 : kind == kB1 ? most_b1 : 0;
    for (int n = 0; n < microbatches - laid_anew; ++n) {
      columns_[orders.column(VeeOrders::id(kind, d), n)] = kind;
    }
  }
  return {.b0 = most_b0, .b1 = most_b1};
}

// Takes the last W out: those of the B that are laid anew, and as many as chunks are in flight.
void CoolDown::take_weights(const VeeOrders& orders, int d, int chunks, Taken& taken) {
  for (int column = orders.columns(d) - 1; column >= 0; --column) {
    if (taken.w1 >= taken.b1 && taken.w0 >= taken.b0 && taken.w1 + taken.w0 >= chunks) return;
    std::uint8_t& kind = columns_[column];
    if (kind != kW1 && kind != kW0) continue;
    ++(kind == kW1 ? taken.w1 : taken.w0);
    kind = kHole;
  }
}

bool CoolDown::put(int column, std::uint8_t kind) {
  if (column < 0 || columns_[column] != kHole) return false;
  columns_[column] = kind;
  return true;
}

bool CoolDown::lay_wave(const VeeOrders& orders, int d, const Taken& taken) {
  for (int n = 0; n < taken.b0; ++n) {
    if (!put(turn_ - d + 2 * (orders.devices() - n), kB0)) return false;
  }
  for (int n = 0; n < taken.b1; ++n) {
    if (!put(turn_ + 1 + d - 2 * n, kB1)) return false;
  }
  return true;
}

// Reads a device from its columns, an owed W in every hole after the last W that stayed, and at the
// end.
void CoolDown::pay_weights(VeeOrders& orders, int d) const {
  size_t stayed = columns_.size();
  while (stayed > 0 && !is_vee_weight(columns_[stayed - 1])) --stayed;
  OwedWeights owed;
  const auto order = orders.order(d);
  auto out = order.begin();
  for (size_t column = 0; out < order.end(); ++column) {
    std::uint8_t kind = column < columns_.size() ? columns_[column] : kHole;
    if (kind == kHole && column >= stayed) kind = owed.next();
    if (kind == kHole) continue;
    owed.ran(kind);
    *out++ = kind;
  }
}

void HoleFiller::fill(VeeOrders& orders, int microbatches, int chunks) {
  chunks_ = chunks;
  spread(orders, microbatches);
  for (int column = 0; column < columns_; ++column) {
    for (int d = 0; d < orders.devices(); ++d) {
      std::uint8_t& cell = cells_(d, column);
      if (cell == kHole) {
        const int from = find_filler(orders, d, column);
        if (from == columns_) continue;
        std::swap(cell, cells_(d, from));
      }
      const size_t of = VeeOrders::id(cell, d);
      ++count_[of];
      end_[of] = column + 1;
      held_[d] += vee_in_flight(cell);
    }
  }
  for (int d = 0; d < orders.devices(); ++d) {
    std::ranges::copy_if(cells_.row(d), orders.order(d).begin(),
                         [](auto kind) { return kind != kHole; });
  }
}

// Every device over its columns; nothing has run.
void HoleFiller::spread(const VeeOrders& orders, int microbatches) {
  microbatches_ = microbatches;
  columns_ = 0;
  for (int d = 0; d < orders.devices(); ++d) columns_ = std::max(columns_, orders.columns(d));
  cells_.assign(orders.devices(), columns_, kHole);
  for (int d = 0; d < orders.devices(); ++d) {
    const auto cells = cells_.row(d);
    for (std::uint8_t kind = 0; kind < kVeeKinds; ++kind) {
      const size_t of = VeeOrders::id(kind, d);
      for (int n = 0; n < microbatches; ++n) cells[orders.column(of, n)] = kind;
    }
  }
  end_.assign(orders.ids(), 0);
  count_.assign(orders.ids(), 0);
  next_.assign(orders.ids(), 0);
  held_.assign(orders.devices(), 0);
}

// The column of the pass that a hole takes, or the number of columns.
int HoleFiller::find_filler(const VeeOrders& orders, int d, int column) {
  const auto cells = cells_.row(d);
  int found = columns_;
  for (int kind = 0; kind < kVeeKinds; ++kind) {
    if (!may_run(orders, kind, d, column)) continue;
    int& next = next_[VeeOrders::id(kind, d)];
    next = std::max(next, column + 1);
    while (cells[next] != kind) ++next;
    if (next >= found) continue;
    if (!is_vee_forward(kind) || has_room(d, column, next)) found = next;
  }
  return found;
}

// True if the device has a pass of this kind left whose inputs are complete before the column.
bool HoleFiller::may_run(const VeeOrders& orders, int kind, int d, int column) const {
  const size_t of = VeeOrders::id(kind, d);
  const int number = count_[of];
  if (number == microbatches_) return false;
  if (is_vee_forward(kind) && held_[d] >= chunks_) return false;
  if (is_vee_weight(kind)) return count_[VeeOrders::id(kind == kW1 ? kB1 : kB0, d)] > number;
  const int source = orders.source(of);
  if (source < 0) return true;
  const int ran = count_[source];
  return ran > number + 1 || (ran == number + 1 && end_[source] <= column);
}

// True if no peak rises when a forward moves up to `column`.
bool HoleFiller::has_room(int d, int column, int from) const {
  const auto cells = cells_.row(d);
  int held = held_[d];
  if (from - column <= chunks_ - held) return true;
  for (int c = column + 1; c < from; ++c) {
    held += vee_in_flight(cells[c]);
    if (held >= chunks_) return false;
  }
  return true;
}

void relabel_weights(VeeOrders& orders) {
  std::vector<std::uint8_t> owed;
  for (int d = 0; d < orders.devices(); ++d) {
    owed.clear();
    size_t paid = 0;
    for (std::uint8_t& kind : orders.order(d)) {
      if (is_vee_backward(kind)) {
        owed.push_back(vee_weight_of(kind));
      } else if (is_vee_weight(kind)) {
        kind = owed[paid++];
      }
    }
  }
}

}  // namespace pipesim
