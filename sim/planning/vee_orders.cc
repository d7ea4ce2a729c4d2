#include "sim/planning/vee_orders.h"

#include <algorithm>

#include "sim/pipeline/dependencies.h"

namespace pipesim {
namespace {

int vee_kind(const Placement& place, const StagePass& pass) {
  const bool first = place.chunk(pass.vs) == 0;
  if (pass.kind == PassKind::kF) return first ? kF0 : kF1;
  return first ? kB0 : kB1;
}

}  // namespace

VeeOrders::VeeOrders(int devices, int most)
    : p_(devices),
      source_(kVeeKinds * devices, -1),
      kinds_(devices, kVeeKinds * most),
      start_(devices, kVeeKinds * most),
      end_(kinds_.cells().size()),
      count_(ids()),
      clock_(devices),
      position_(devices),
      unit_{std::vector<double>(ids(), 1.0), std::vector<double>(ids(), 0.0)} {
  // A W follows its B on its device.
  const Placement place = Placement::vee(devices);
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    for (const PassKind kind : {PassKind::kF, PassKind::kB}) {
      const StagePass pass{kind, vs};
      const StagePass source = source_of(place, pass);
      if (!source.exists()) continue;
      source_[id(vee_kind(place, pass), place.device(vs))] =
          static_cast<int>(id(vee_kind(place, source), place.device(source.vs)));
    }
  }
}

int VeeOrders::peak() const {
  int most = 0;
  for (int d = 0; d < p_; ++d) most = std::max(most, peak_of(d));
  return most;
}

int VeeOrders::peak_of(int device) const {
  int most = 0;
  int held = 0;
  for (const std::uint8_t kind : order(device)) {
    held += vee_in_flight(kind);
    most = std::max(most, held);
  }
  return most;
}

std::optional<double> VeeOrders::replay(const VeeTimes& times, int microbatches) {
  std::ranges::fill(count_, 0);
  std::ranges::fill(position_, 0);
  std::ranges::fill(clock_, 0);
  int left = p_ * length_;
  int idle_sweeps = 0;
  // Device after device, up and down the pipeline.
  for (bool up = true; left > 0; up = !up) {
    const int before = left;
    for (int q = 0; q < p_; ++q) left -= advance(up ? q : p_ - 1 - q, times, microbatches);
    idle_sweeps = left == before ? idle_sweeps + 1 : 0;
    if (idle_sweeps == 2) return std::nullopt;
  }
  double cost = 0;
  for (int d = 0; d < p_; ++d) cost = std::max(cost, clock_[d] - start_(d, 0));
  return cost;
}

// Runs a device until it waits; how many passes it has run.
int VeeOrders::advance(int d, const VeeTimes& times, int microbatches) {
  const auto slot = [microbatches](size_t of, int number) {
    return of * static_cast<size_t>(microbatches) + static_cast<size_t>(number);
  };
  const auto kinds = order(d);
  const auto starts = start_.row(d);
  double clock = clock_[d];
  int position = position_[d];
  for (; position < length_; ++position) {
    const size_t of = id(kinds[position], d);
    const int number = count_[of];
    if (const int source = source_[of]; source >= 0) {
      if (count_[source] <= number) break;
      clock = std::max(clock, end_[slot(source, number)] + times.message[of]);
    }
    starts[position] = clock;
    clock += times.pass[of];
    end_[slot(of, number)] = clock;
    ++count_[of];
  }
  const int run = position - position_[d];
  position_[d] = position;
  clock_[d] = clock;
  return run;
}

}  // namespace pipesim
