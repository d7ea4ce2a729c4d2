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

void add_new(double value, std::vector<double>& few) {
  if (std::ranges::find(few, value) == few.end()) few.push_back(value);
}

// Units of equal kinds take the same layers where nothing limits their room: each unit has the
// number of the first of its kind.
std::vector<size_t> kinds_of(const std::vector<Unit>& units, int stages) {
  std::vector<std::tuple<size_t, bool, bool, bool>> known;
  std::vector<size_t> kinds;
  for (const Unit& unit : units) {
    const auto holds = [&](int stage) {
      return std::ranges::find(unit.stages, stage) != unit.stages.end();
    };
    known.emplace_back(unit.stages.size(), holds(0), holds(stages - 2), holds(stages - 1));
    kinds.push_back(std::ranges::find(known, known.back()) - known.begin());
  }
  return kinds;
}

class Balance {
 public:
  Balance(const Transformer& model, const Placement& place, const LayerSeconds& seconds,
          DeviceRoom* room)
      : model_(model),
        line_(model, seconds, place.model_stages()),
        units_(units_of(place)),
        kinds_(kinds_of(units_, line_.stages)),
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
  // Seconds beside decoder layers, of every stage and of every device.
  [[nodiscard]] std::vector<double> fixed_of_stages() const {
    std::vector<double> fixed;
    for (const Zone& zone : zones_) {
      for (int stage = 0; stage < line_.stages; ++stage) {
        add_new(fixed_seconds(line_, zone, stage), fixed);
      }
    }
    return fixed;
  }
  [[nodiscard]] std::vector<double> fixed_of_units() const {
    std::vector<double> fixed;
    for (const Zone& zone : zones_) {
      for (const Unit& unit : units_) add_new(fixed_of(unit, zone), fixed);
    }
    return fixed;
  }

  // The times beside `fixed` that lie in [from, to), each once.
  [[nodiscard]] std::vector<double> times_of(const std::vector<double>& fixed, double from,
                                             double to) const {
    std::vector<double> times;
    for (const double beside : fixed) {
      for (int a = 0; a <= line_.all.leading; ++a) {
        for (int b = 0; b <= line_.all.following; ++b) {
          const double time = beside + a * line_.leading_seconds + b * line_.following_seconds;
          if (time >= from && time < to) times.push_back(time);
        }
      }
    }
    std::ranges::sort(times);
    times.erase(std::unique(times.begin(), times.end()), times.end());
    return times;
  }

  [[nodiscard]] double fixed_of(const Unit& unit, const Zone& zone) const {
    double sum = 0;
    for (const int stage : unit.stages) sum += fixed_seconds(line_, zone, stage);
    return sum;
  }

  void settle_stage_bound() {
    const std::vector<double> fixed = fixed_of_stages();
    const auto holds = [&](double time, DeviceRoom* room) {
      bound_ = time;
      asked_ = room;
      tables_.clear();
      return std::ranges::any_of(zones_, [&](const Zone& zone) { return reaches(zone, kNever); });
    };
    // Large bounds leave many ways to fill a device: without limits of room the least is quickly
    // found, and it is most often near the one with them.
    std::optional<double> found = least_time(fixed, mean_seconds(line_.stages),
                                             [&](double at) { return holds(at, nullptr); });
    if (room_ != nullptr && found) {
      found = least_time(fixed, *found, [&](double at) { return holds(at, room_); });
    }
    if (!found) {
      throw InfeasibleError(
          fmt::format("no split of {}'s layers over {} stages fits", model_.name, line_.stages));
    }
    if (bound_ != *found || asked_ != room_) (void)holds(*found, room_);
  }

  // No split's slowest part takes less than the mean of so many.
  [[nodiscard]] double mean_seconds(int parts) const {
    double least = kNever;
    for (const Zone& zone : zones_) {
      double sum =
          line_.all.leading * line_.leading_seconds + line_.all.following * line_.following_seconds;
      for (int stage = 0; stage < line_.stages; ++stage) sum += fixed_seconds(line_, zone, stage);
      least = std::min(least, sum / parts);
    }
    return (1 - 1e-9) * least;
  }

  void settle_device_bound() {
    device_bound_ = bound_;
    if (units_.size() == static_cast<size_t>(line_.stages)) return;
    const auto holds = [&](double time) {
      return std::ranges::any_of(zones_, [&](const Zone& zone) { return reaches(zone, time); });
    };
    const int units = static_cast<int>(units_.size());
    device_bound_ = least_time(fixed_of_units(), mean_seconds(units), holds).value_or(kNever);
  }

  // The least time beside `fixed`, from `from` on, that holds, as all behind it do. It is most
  // often near `from`: times are listed up to twice that, then up to four times that.
  template <class Holds>
  [[nodiscard]] std::optional<double> least_time(const std::vector<double>& fixed, double from,
                                                 const Holds& holds) const {
    for (double to = 2 * from; from < kNever; from = to, to *= 2) {
      if (from <= 0 || to > longest(fixed)) to = kNever;
      const std::vector<double> times = times_of(fixed, from, to);
      if (times.empty()) continue;
      const auto at = first_near(0, times.size() - 1, [&](size_t i) { return holds(times[i]); });
      if (at) return times[*at];
    }
    return std::nullopt;
  }
  [[nodiscard]] double longest(const std::vector<double>& fixed) const {
    return *std::ranges::max_element(fixed) + line_.all.leading * line_.leading_seconds +
           line_.all.following * line_.following_seconds;
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
    const auto [at, fresh] = tables_.try_emplace(
        std::tuple{asked_ == nullptr ? kinds_[unit] : unit, before, inside, zone.modules},
        std::vector<int>{});
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
    std::vector<int> next;
    for (size_t unit = 0; unit < units_.size(); ++unit) {
      next.assign(all + 1, -1);
      const std::vector<int>& of_unit = table(unit, zone);
      for (size_t a = 0; a < of_unit.size(); ++a) {
        const int more = within(of_unit[a], unit, zone, static_cast<int>(a), device_bound);
        for (size_t x = 0; more >= 0 && x + a <= all; ++x) {
          if (most[x] >= 0) next[x + a] = std::max(next[x + a], most[x] + more);
        }
      }
      most.swap(next);
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
  std::vector<size_t> kinds_;
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
