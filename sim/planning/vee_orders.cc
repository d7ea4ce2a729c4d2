#include "sim/planning/vee_orders.h"

#include <algorithm>
#include <cmath>

#include "sim/pipeline/dependencies.h"

namespace pipesim {
namespace {

int vee_kind(const Placement& place, const StagePass& pass) {
  const bool first = place.chunk(pass.vs) == 0;
  if (pass.kind == PassKind::kF) return first ? kF0 : kF1;
  return first ? kB0 : kB1;
}

// How long a pass takes, and the message that it waits for; when passes end, by id and microbatch;
// how far each device is.
struct InSeconds {
  const VeeTimes& times;
  Grid<double>& end;
  std::vector<double>& device;
  [[nodiscard]] double pass(size_t id) const { return times.pass[id]; }
  [[nodiscard]] double message(size_t id) const { return times.message[id]; }
};

struct InColumns {
  Grid<int>& end;
  std::vector<int>& device;
  [[nodiscard]] static int pass(size_t /*id*/) { return 1; }
  [[nodiscard]] static int message(size_t /*id*/) { return 0; }
};

}  // namespace

VeeTimes vee_times(const Problem& problem) {
  const Placement& place = problem.placement;
  const auto size = static_cast<size_t>(kVeeKinds * place.devices());
  const auto ticks = [](Seconds seconds) { return std::round(1e12 * seconds.value()); };
  VeeTimes times{std::vector<double>(size), std::vector<double>(size), problem.objective};
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    const int d = place.device(vs);
    const bool first = place.chunk(vs) == 0;
    const StageCost& cost = problem.stage(vs);
    const size_t f = VeeOrders::id(first ? kF0 : kF1, d);
    const size_t b = VeeOrders::id(first ? kB0 : kB1, d);
    times.pass[f] = ticks(cost.forward);
    times.pass[b] = ticks(cost.backward_input);
    times.pass[VeeOrders::id(first ? kW0 : kW1, d)] = ticks(cost.backward_weight);
    if (place.upstream(vs) >= 0)
      times.message[f] = ticks(problem.stage(place.upstream(vs)).transfer);
    if (place.downstream(vs) >= 0) times.message[b] = ticks(cost.transfer);
  }
  return times;
}

PassLists VeeOrders::lists() const {
  constexpr std::array kKinds{PassKind::kF, PassKind::kF, PassKind::kB,
                              PassKind::kB, PassKind::kW, PassKind::kW};
  PassLists lists;
  for (int d = 0; d < p_; ++d) {
    std::array<int, kVeeKinds> count{};
    auto& list = lists.emplace_back();
    list.reserve(length_);
    for (const size_t kind : order(d)) {
      list.push_back(make_pass(kKinds[kind], count[kind]++, kVeeChunk[kind]));
    }
  }
  return lists;
}

VeeOrders::VeeOrders(int devices, int most)
    : p_(devices),
      source_(kVeeKinds * devices, -1),
      kinds_(devices, kVeeKinds * most),
      end_(ids(), most),
      columns_end_(ids(), most),
      count_(ids()),
      clock_(devices),
      columns_(devices),
      position_(devices) {
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

std::optional<PlanTime> VeeOrders::replay(const VeeTimes& times) {
  if (!run(InSeconds{times, end_, clock_})) return std::nullopt;
  PlanTimer timer(times.objective);
  for (int d = 0; d < p_; ++d) {
    const size_t first = id(order(d).front(), d);
    const int source = source_[first];
    const double start = source < 0 ? 0 : end_(source, 0) + times.message[first];
    timer.add(start, clock_[d]);
  }
  return timer.time();
}

bool VeeOrders::squeeze() { return run(InColumns{columns_end_, columns_}); }

template <class Clocks>
bool VeeOrders::run(Clocks clocks) {
  std::ranges::fill(count_, 0);
  std::ranges::fill(position_, 0);
  std::ranges::fill(clocks.device, 0);
  int left = p_ * length_;
  int idle_sweeps = 0;
  // Device after device, up and down the pipeline.
  for (bool up = true; left > 0; up = !up) {
    const int before = left;
    for (int q = 0; q < p_; ++q) left -= advance(up ? q : p_ - 1 - q, clocks);
    idle_sweeps = left == before ? idle_sweeps + 1 : 0;
    if (idle_sweeps == 2) return false;
  }
  return true;
}

// Runs a device until it waits; how many passes it has run.
template <class Clocks>
int VeeOrders::advance(int d, Clocks& clocks) {
  const auto kinds = order(d);
  auto clock = clocks.device[d];
  int position = position_[d];
  for (; position < length_; ++position) {
    const size_t of = id(kinds[position], d);
    const int number = count_[of];
    if (const int source = source_[of]; source >= 0) {
      if (count_[source] <= number) break;
      clock = std::max(clock, clocks.end(source, number) + clocks.message(of));
    }
    clock += clocks.pass(of);
    clocks.end(of, number) = clock;
    ++count_[of];
  }
  const int run = position - position_[d];
  position_[d] = position;
  clocks.device[d] = clock;
  return run;
}

}  // namespace pipesim
