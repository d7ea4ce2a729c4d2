#include "models/device_filling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace pipesim {
namespace {

// How many times `seconds` go into `room`, at most `most`; -1 where the room is negative.
int times(double room, double seconds, int most) {
  if (room < 0) return -1;
  return seconds > 0 ? static_cast<int>(std::min(std::floor(room / seconds), 1.0 * most)) : most;
}

}  // namespace

LayerLine::LayerLine(const Transformer& model, const LayerSeconds& of, int number)
    : stages(number), modules(model.mtp_layers), seconds(of) {
  const int leading = leading_layers(model);
  all.leading = leading < model.num_layers ? leading : 0;
  all.following = model.num_layers - all.leading;
  leading_seconds = of.dense.value();
  following_seconds = (leading < model.num_layers ? of.moe : of.dense).value();
}

StageLayers layers_on(const LayerLine& line, const Zone& zone, int stage,
                      const LayerCounts& counts) {
  return {.first = line.all.leading - counts.leading,
          .layers = counts.leading + counts.following,
          .mtp = stage == zone.modules ? line.modules : 0,
          .embedding = stage == 0,
          .output = stage == line.stages - 1};
}

double fixed_seconds(const LayerLine& line, const Zone& zone, int stage) {
  double sum = 0;
  if (stage == 0) sum += line.seconds.embedding.value();
  if (stage == zone.modules) sum += line.modules * line.seconds.mtp.value();
  if (stage == line.stages - 1) sum += line.seconds.output.value();
  return sum;
}

std::vector<Unit> units_of(const Placement& place) {
  std::vector<Unit> units;
  for (int device = 0; device < place.devices(); ++device) {
    std::vector<int> stages;
    for (int chunk = 0; chunk < place.chunks(device); ++chunk) {
      stages.push_back(place.model_stage(place.virtual_stage(device, chunk)));
    }
    const auto same = [&](const Unit& unit) {
      return std::ranges::find(unit.stages, stages.front()) != unit.stages.end();
    };
    auto unit = std::ranges::find_if(units, same);
    if (unit == units.end()) {
      std::vector<int> distinct = stages;
      std::ranges::sort(distinct);
      distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
      units.push_back({std::move(distinct), {}});
      unit = units.end() - 1;
    }
    Unit::Holder holder{device, std::vector<std::vector<int>>(unit->stages.size())};
    for (int chunk = 0; chunk < place.chunks(device); ++chunk) {
      const auto at = std::ranges::find(unit->stages, stages[chunk]);
      holder.chunks[at - unit->stages.begin()].push_back(chunk);
    }
    unit->holders.push_back(std::move(holder));
  }
  return units;
}

DeviceFilling::DeviceFilling(const LayerLine& line, const Unit& unit, const Zone& zone,
                             double bound, DeviceRoom* room)
    : line_(line),
      unit_(unit),
      zone_(zone),
      bound_(bound * (1 + kRounding)),
      room_(room),
      order_(unit.stages.size()),
      counts_(unit.stages.size()) {
  std::iota(order_.begin(), order_.end(), 0);
  for (const Unit::Holder& holder : unit.holders) {
    size_t chunks = 0;
    for (const auto& of_stage : holder.chunks) chunks += of_stage.size();
    held_.emplace_back(chunks);
  }
  for (size_t at = 0; at < order_.size(); ++at) put(at, {});
  if (room != nullptr) order_by_room();
}

// Stages on which layers weigh least come first: what is found first is then seldom surpassed.
void DeviceFilling::order_by_room() {
  std::vector<int> alone;
  for (size_t stage = 0; stage < order_.size(); ++stage) {
    int most = std::numeric_limits<int>::max();
    for (size_t h = 0; h < held_.size(); ++h) {
      const Unit::Holder& holder = unit_.holders[h];
      most = std::min(most, room_->most_more(holder.device, held_[h], holder.chunks[stage]));
    }
    alone.push_back(most);
  }
  std::ranges::stable_sort(order_, [&](size_t a, size_t b) { return alone[a] > alone[b]; });
  for (const Unit::Holder& holder : unit_.holders) {
    std::vector<std::vector<int>> open(order_.size() + 1);
    for (size_t at = order_.size(); at-- > 0;) {
      open[at] = open[at + 1];
      const auto& chunks = holder.chunks[order_[at]];
      open[at].insert(open[at].end(), chunks.begin(), chunks.end());
    }
    open_.push_back(std::move(open));
  }
}

void DeviceFilling::put(size_t at, const LayerCounts& counts) {
  const size_t index = order_[at];
  counts_[index] = counts;
  const StageLayers layers = layers_on(line_, zone_, unit_.stages[index], counts);
  for (size_t h = 0; h < held_.size(); ++h) {
    for (const int chunk : unit_.holders[h].chunks[index]) {
      held_[h][chunk] = layers;
    }
  }
}

bool DeviceFilling::fits() const {
  if (room_ == nullptr) return true;
  for (size_t h = 0; h < held_.size(); ++h) {
    if (!room_->fits(unit_.holders[h].device, held_[h])) return false;
  }
  return true;
}

int DeviceFilling::most_leading(size_t at) const {
  const int stage = unit_.stages[order_[at]];
  if (stage > zone_.turn || stage > zone_.modules) return 0;
  return std::max(0, times(bound_ - fixed_seconds(line_, zone_, stage), line_.leading_seconds,
                           line_.all.leading));
}

int DeviceFilling::most_following(size_t at, int leading) const {
  const int stage = unit_.stages[order_[at]];
  const double room = bound_ - fixed_seconds(line_, zone_, stage) - leading * line_.leading_seconds;
  const bool open = stage >= zone_.turn && stage <= zone_.modules;
  return times(room, line_.following_seconds, open ? line_.all.following : 0);
}

int DeviceFilling::most_more(size_t at) const {
  int most = 0;
  for (size_t i = at; i < order_.size(); ++i) {
    most += std::max(0, most_following(i, 0)) + most_leading(i);
  }
  for (size_t h = 0; room_ != nullptr && h < held_.size(); ++h) {
    most = std::min(most, room_->most_more(unit_.holders[h].device, held_[h], open_[h][at]));
  }
  return most;
}

int DeviceFilling::most(int leading) {
  most_ = -1;
  tries_ = 0;
  fill(0, leading, 0);
  for (size_t at = 0; at < order_.size(); ++at) put(at, {});
  return most_;
}

void DeviceFilling::fill(size_t at, int leading, int following) {
  if (++tries_ > kMostTries) return;
  if (!fits() || following + most_more(at) - leading <= most_) return;
  if (at == order_.size()) {
    if (leading > 0) return;
    most_ = following;
    filled_ = counts_;
    return;
  }
  for (int a = std::min(leading, most_leading(at)); a >= 0; --a) {
    for (int b = most_following(at, a); b >= 0; --b) {
      put(at, {a, b});
      fill(at + 1, leading - a, following + b);
    }
  }
  put(at, {});
}

std::optional<std::vector<LayerCounts>> DeviceFilling::evenest(const LayerCounts& all) {
  least_ = std::numeric_limits<double>::infinity();
  evenest_.reset();
  tries_ = 0;
  even_out(0, all, 0);
  for (size_t at = 0; at < order_.size(); ++at) put(at, {});
  if (!evenest_ && most(all.leading) >= all.following) evenest_ = cut_down(all.following);
  return evenest_;
}

// The layers of most(), less those beyond `following`, taken from the fullest stages.
std::vector<LayerCounts> DeviceFilling::cut_down(int following) const {
  std::vector<LayerCounts> counts = filled_;
  for (int more = most_ - following; more > 0; --more) {
    --std::ranges::max_element(counts, {}, &LayerCounts::following)->following;
  }
  return counts;
}

// The least sum of squares that stages from `at` on can have with these layers, each given to the
// stage that has least so far.
DeviceFilling::Level DeviceFilling::level(size_t at, int following) const {
  std::vector<double> seconds;
  std::vector<int> more;
  for (size_t i = at; i < order_.size(); ++i) {
    seconds.push_back(fixed_seconds(line_, zone_, unit_.stages[order_[i]]));
    more.push_back(most_following(i, 0));
  }
  Level found;
  for (int layer = 0; layer < following; ++layer) {
    size_t least = seconds.size();
    for (size_t i = 0; i < seconds.size(); ++i) {
      if (more[i] > 0 && (least == seconds.size() || seconds[i] < seconds[least])) least = i;
    }
    if (least == seconds.size()) return {std::numeric_limits<double>::infinity(), 0};
    --more[least];
    seconds[least] += line_.following_seconds;
    if (least == 0) ++found.first;
  }
  for (const double each : seconds) found.squares += each * each;
  return found;
}

void DeviceFilling::even_out(size_t at, const LayerCounts& left, double squares) {
  if (++tries_ > kMostTries) return;
  const Level least = level(at, left.following);
  if (squares + least.squares >= least_ * (1 - kRounding)) return;
  if (!fits() || most_more(at) < left.leading + left.following) return;
  if (at == order_.size()) {
    least_ = squares;
    evenest_ = counts_;
    return;
  }
  const double fixed = fixed_seconds(line_, zone_, unit_.stages[order_[at]]);
  for (int a = std::min(left.leading, most_leading(at)); a >= 0; --a) {
    const int most = std::min(left.following, most_following(at, a));
    const auto give = [&](int b) {
      if (b < 0 || b > most) return;
      const double seconds = fixed + a * line_.leading_seconds + b * line_.following_seconds;
      put(at, {a, b});
      even_out(at + 1, {left.leading - a, left.following - b}, squares + seconds * seconds);
    };
    // From what is best, were there no other limit, outwards.
    const int first = std::clamp(least.first, 0, std::max(0, most));
    give(first);
    for (int away = 1; away <= most; ++away) {
      give(first + away);
      give(first - away);
    }
  }
  put(at, {});
}

}  // namespace pipesim
