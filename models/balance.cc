#include "models/balance.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "models/device_filling.h"
#include "sim/core/error.h"

namespace pipesim {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-12;  // sums of the same times differ by so much

void sort_distinct(std::vector<double>& values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

class Balance {
 public:
  Balance(const Transformer& model, const Placement& place, const LayerSeconds& seconds,
          DeviceRoom* room)
      : model_(model),
        line_(model, seconds, place.model_stages()),
        units_(units_of(place)),
        room_(room) {
    const int last = line_.stages - 1;
    for (int turn = 0; turn <= (line_.all.leading > 0 ? last : 0); ++turn) {
      zones_.push_back({turn, last});
      if (line_.modules > 0 && last > 0) zones_.push_back({turn, last - 1});
    }
  }

  Layout run() {
    settle_stage_bound();
    settle_device_bound();
    return layout();
  }

 private:
  // Every time that a stage can take.
  [[nodiscard]] std::vector<double> stage_times() const {
    std::vector<double> times;
    for (const Zone& zone : zones_) {
      for (int stage = 0; stage < line_.stages; ++stage) {
        times.push_back(fixed_seconds(line_, zone, stage));
      }
    }
    return with_layers(std::move(times));
  }

  // Every time that a device can.
  [[nodiscard]] std::vector<double> device_times() const {
    std::vector<double> times;
    for (const Zone& zone : zones_) {
      for (const Unit& unit : units_) times.push_back(fixed_of(unit, zone));
    }
    return with_layers(std::move(times));
  }

  [[nodiscard]] std::vector<double> with_layers(std::vector<double> fixed) const {
    sort_distinct(fixed);
    std::vector<double> times;
    for (const double beside : fixed) {
      for (int a = 0; a <= line_.all.leading; ++a) {
        for (int b = 0; b <= line_.all.following; ++b) {
          times.push_back(beside + a * line_.leading_seconds + b * line_.following_seconds);
        }
      }
    }
    sort_distinct(times);
    return times;
  }

  [[nodiscard]] double fixed_of(const Unit& unit, const Zone& zone) const {
    double sum = 0;
    for (const int stage : unit.stages) sum += fixed_seconds(line_, zone, stage);
    return sum;
  }

  void settle_stage_bound() {
    const std::vector<double> times = stage_times();
    const size_t end = times.size() - 1;
    const auto holds = [&](size_t at, DeviceRoom* room) {
      bound_ = times[at];
      asked_ = room;
      tables_.clear();
      return std::ranges::any_of(zones_, [&](const Zone& zone) { return reaches(zone, kNever); });
    };
    // Large bounds leave many ways to fill a device: without limits of room the least is quickly
    // found, and it is most often near the one with them.
    const auto mean = std::ranges::lower_bound(times, (1 - 1e-9) * mean_seconds());
    const size_t from = std::min(end, static_cast<size_t>(mean - times.begin()));
    const size_t without =
        first_near(from, end, [&](size_t at) { return holds(at, nullptr); }).value_or(end);
    const auto found = first_near(without, end, [&](size_t at) { return holds(at, room_); });
    if (!found) {
      throw InfeasibleError(
          fmt::format("no split of {}'s layers over {} stages fits", model_.name, line_.stages));
    }
    if (bound_ != times[*found]) (void)holds(*found, room_);
  }

  // No split's slowest stage takes less than the mean of its stages.
  [[nodiscard]] double mean_seconds() const {
    double least = kNever;
    for (const Zone& zone : zones_) {
      double sum =
          line_.all.leading * line_.leading_seconds + line_.all.following * line_.following_seconds;
      for (int stage = 0; stage < line_.stages; ++stage) sum += fixed_seconds(line_, zone, stage);
      least = std::min(least, sum / line_.stages);
    }
    return least;
  }

  void settle_device_bound() {
    const std::vector<double> times = device_times();
    device_bound_ = times[first_of(0, times.size() - 1, [&](size_t at) {
      return std::ranges::any_of(zones_,
                                 [&](const Zone& zone) { return reaches(zone, times[at]); });
    })];
  }

  // The least of [from, last] that holds, as all behind it do; `last` does.
  template <class Holds>
  static size_t first_of(size_t from, size_t last, const Holds& holds) {
    while (from < last) {
      const size_t middle = from + (last - from) / 2;
      if (holds(middle)) {
        last = middle;
      } else {
        from = middle + 1;
      }
    }
    return last;
  }

  // The least of [from, last] that holds, as all behind it do, where `from` is near it; nothing
  // where `last` does not.
  template <class Holds>
  static std::optional<size_t> first_near(size_t from, size_t last, const Holds& holds) {
    if (holds(from)) return from;
    for (size_t step = 1; from != last; step *= 2) {
      const size_t next = std::min(last, from + step);
      if (holds(next)) return first_of(from + 1, next, holds);
      from = next;
    }
    return std::nullopt;
  }

  // The most following layers that the unit takes beside each number of leading ones. A zone
  // matters by where it cuts the unit.
  const std::vector<int>& table(size_t unit, const Zone& zone) {
    const auto& stages = units_[unit].stages;
    const auto before = std::ranges::count_if(stages, [&](int s) { return s < zone.turn; });
    const bool inside = std::ranges::find(stages, zone.turn) != stages.end();
    const auto [at, fresh] =
        tables_.try_emplace(std::tuple{unit, before, inside, zone.modules}, std::vector<int>{});
    if (!fresh) return at->second;
    DeviceFilling filling(line_, units_[unit], zone, bound_, asked_);
    for (int a = 0; a <= line_.all.leading; ++a) {
      const int most = filling.most(a);
      if (most < 0 && a > 0) break;
      at->second.push_back(most);
    }
    return at->second;
  }

  // Cuts the table's number to the bound on device seconds.
  [[nodiscard]] int within(int most, size_t unit, const Zone& zone, int leading,
                           double bound) const {
    if (bound == kNever || most < 0) return most;
    const double left =
        bound * (1 + kRounding) - fixed_of(units_[unit], zone) - leading * line_.leading_seconds;
    if (left < 0) return -1;
    if (line_.following_seconds <= 0) return most;
    return static_cast<int>(std::min(1.0 * most, std::floor(left / line_.following_seconds)));
  }

  // False where the stages of a kind of layer are too few for them, however full: most zones of a
  // model with a few leading layers.
  [[nodiscard]] bool has_stages(const Zone& zone) const {
    const auto enough = [&](int stages, double seconds, int layers) {
      if (seconds <= 0) return stages > 0 || layers == 0;
      return std::max(0, stages) * std::floor(bound_ * (1 + 2 * kRounding) / seconds) >= layers;
    };
    return enough(std::min(zone.turn, zone.modules) + 1, line_.leading_seconds,
                  line_.all.leading) &&
           enough(zone.modules - zone.turn + 1, line_.following_seconds, line_.all.following);
  }

  // True if the devices together take all layers.
  bool reaches(const Zone& zone, double device_bound) {
    if (!has_stages(zone)) return false;
    const auto all = static_cast<size_t>(line_.all.leading);
    std::vector<int> most(all + 1, -1);  // following ones, by leading ones
    most[0] = 0;
    for (size_t unit = 0; unit < units_.size(); ++unit) {
      std::vector<int> next(all + 1, -1);
      const std::vector<int>& of_unit = table(unit, zone);
      for (size_t a = 0; a < of_unit.size(); ++a) {
        const int more = within(of_unit[a], unit, zone, static_cast<int>(a), device_bound);
        for (size_t x = 0; more >= 0 && x + a <= all; ++x) {
          if (most[x] >= 0) next[x + a] = std::max(next[x + a], most[x] + more);
        }
      }
      most = std::move(next);
    }
    return most[all] >= line_.all.following;
  }

  // The most following layers that each unit takes, whatever leading ones stand beside them.
  std::vector<int> most_of_units(const Zone& zone) {
    std::vector<int> most(units_.size(), 0);
    for (size_t unit = 0; unit < units_.size(); ++unit) {
      const std::vector<int>& of_unit = table(unit, zone);
      for (int a = 0; std::cmp_less(a, of_unit.size()); ++a) {
        most[unit] = std::max(most[unit], within(of_unit[a], unit, zone, a, device_bound_));
      }
    }
    return most;
  }

  struct Spread {
    double squares = kNever;
    Zone zone;
    std::vector<LayerCounts> of_unit;
  };

  // The split over devices within both bounds with the least sum of squared times; of equal ones
  // that which leaves more to earlier devices.
  Spread spread(const Zone& zone) {
    const int leading = line_.all.leading;
    const int following = line_.all.following;
    const auto index = [&](int x, int y) { return static_cast<size_t>(x * (following + 1) + y); };
    const size_t states = index(leading, following) + 1;
    std::vector<double> least(states, kNever);
    least[0] = 0;
    std::vector<std::vector<LayerCounts>> taken;
    // The most following layers that the units so far take, and the units to come: a sum that needs
    // more of either is part of no split.
    const std::vector<int> most_of_unit = most_of_units(zone);
    int so_far = 0;
    int to_come = std::accumulate(most_of_unit.begin(), most_of_unit.end(), 0);
    for (size_t unit = 0; unit < units_.size(); ++unit) {
      std::vector<double> next(states, kNever);
      taken.emplace_back(states);
      const std::vector<int>& of_unit = table(unit, zone);
      const double fixed = fixed_of(units_[unit], zone);
      to_come -= most_of_unit[unit];
      for (int a = 0; std::cmp_less(a, of_unit.size()); ++a) {
        const int most = within(of_unit[a], unit, zone, a, device_bound_);
        for (int b = 0; b <= most; ++b) {
          const double seconds = fixed + a * line_.leading_seconds + b * line_.following_seconds;
          const int first = std::max(b, following - to_come);
          const int last = std::min(following, so_far + b);
          for (int x = a; x <= leading; ++x) {
            for (int y = first; y <= last; ++y) {
              const double sum = least[index(x - a, y - b)] + seconds * seconds;
              double& best = next[index(x, y)];
              if (!(sum < best * (1 - kRounding))) continue;
              best = sum;
              taken.back()[index(x, y)] = {a, b};
            }
          }
        }
      }
      so_far += most_of_unit[unit];
      least = std::move(next);
    }
    Spread found{least.back(), zone, std::vector<LayerCounts>(units_.size())};
    LayerCounts left = line_.all;
    for (size_t unit = units_.size(); found.squares < kNever && unit-- > 0;) {
      const LayerCounts counts = taken[unit][index(left.leading, left.following)];
      found.of_unit[unit] = counts;
      left = {left.leading - counts.leading, left.following - counts.following};
    }
    return found;
  }

  Layout layout() {
    Spread best;
    for (const Zone& zone : zones_) {
      if (!reaches(zone, device_bound_)) continue;
      Spread one = spread(zone);
      if (one.squares < best.squares * (1 - kRounding)) best = std::move(one);
    }
    std::vector<LayerCounts> of_stage(line_.stages);
    for (size_t u = 0; u < units_.size(); ++u) {
      const Unit& unit = units_[u];
      const auto counts =
          DeviceFilling(line_, unit, best.zone, bound_, room_).evenest(best.of_unit[u]);
      if (!counts) throw LogicError("a device does not take the layers that it was found to take");
      for (size_t i = 0; i < unit.stages.size(); ++i) {
        of_stage[unit.stages[i]] = (*counts)[i];
      }
    }
    Layout result;
    int first = 0;
    for (int stage = 0; stage < line_.stages; ++stage) {
      const LayerCounts& counts = of_stage[stage];
      result.stages.push_back(layers_on(line_, best.zone, stage, counts));
      result.stages.back().first = first;
      first += result.stages.back().layers;
    }
    return result;
  }

  const Transformer& model_;
  LayerLine line_;
  std::vector<Unit> units_;
  DeviceRoom* room_;
  std::vector<Zone> zones_;
  double bound_ = kNever;         // of a stage
  double device_bound_ = kNever;  // of a device
  DeviceRoom* asked_ = nullptr;   // what the tables were made with
  std::map<std::tuple<size_t, long, bool, int>, std::vector<int>> tables_;  // within bound_
};

// Stages of a linear pipeline, each asked by itself.
class StageRoom : public DeviceRoom {
 public:
  StageRoom(const StageFits& fits, int layers) : fits_(fits), layers_(layers) {}
  bool fits(int device, std::span<const StageLayers> chunks) override {
    return fits_(device, chunks.front());
  }
  int most_more(int, std::span<const StageLayers>, std::span<const int> open) override {
    return open.empty() ? 0 : layers_;
  }

 private:
  const StageFits& fits_;
  int layers_;
};

}  // namespace

Layout balance(const Transformer& model, const Placement& place, const LayerSeconds& seconds,
               DeviceRoom* room) {
  return Balance(model, place, seconds, room).run();
}

Layout balance(const Transformer& model, int stages, const LayerSeconds& seconds,
               const StageFits& fits) {
  const Placement place = Placement::looped(stages, 1);
  if (!fits) return balance(model, place, seconds);
  StageRoom room(fits, model.num_layers);
  return balance(model, place, seconds, &room);
}

}  // namespace pipesim
