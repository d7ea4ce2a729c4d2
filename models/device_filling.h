// How many layers the stages of a device can take, and which of them on which stage: the inside of
// models/balance.h.
#pragma once

#include <optional>
#include <vector>

#include "models/device_room.h"
#include "models/layout.h"
#include "sim/pipeline/placement.h"

namespace pipesim {

inline constexpr double kRounding = 1e-12;  // sums of the same times differ by so much

// The model's decoder layers: leading ones of a kind, then following ones of another. A model of
// one kind has following ones only.
struct LayerCounts {
  int leading = 0;
  int following = 0;
};

struct LayerLine {
  LayerLine(const Transformer& model, const LayerSeconds& seconds, int stages);

  int stages;
  LayerCounts all;
  int modules;  // MTP
  LayerSeconds seconds;
  double leading_seconds;
  double following_seconds;
};

// Where a kind of layer may stand: leading layers up to stage `turn`, following layers from it to
// stage `modules`. The MTP modules stand on stage `modules`.
struct Zone {
  int turn = 0;
  int modules = 0;
};

StageLayers layers_on(const LayerLine& line, const Zone& zone, int stage,
                      const LayerCounts& counts);
// Seconds of the stage that no decoder layer takes: embedding, output and MTP modules.
double fixed_seconds(const LayerLine& line, const Zone& zone, int stage);

// Stages that the same devices hold: those of one device, or of two that hold copies.
struct Unit {
  struct Holder {
    int device = 0;
    std::vector<std::vector<int>> chunks;  // by stage of the unit
  };
  std::vector<int> stages;
  std::vector<Holder> holders;
};
std::vector<Unit> units_of(const Placement& place);

// Tries for one question to a unit. Far more than a question takes, unless memory is so tight that
// every chunk counts, with many layers on many chunks.
inline constexpr int kMostTries = 2000;

// A unit whose stages take at most `bound` seconds each.
class DeviceFilling {
 public:
  // `room` may be null.
  DeviceFilling(const LayerLine& line, const Unit& unit, const Zone& zone, double bound,
                DeviceRoom* room);

  // The most following layers beside so many leading ones; -1 where those do not fit. Branch and
  // bound, ended after kMostTries with the most that was found by then.
  int most(int leading);
  // Layers by stage of the unit, of the least sum of squared seconds; nothing where all do not fit.
  std::optional<std::vector<LayerCounts>> evenest(const LayerCounts& all);

 private:
  void put(size_t at, const LayerCounts& counts);
  [[nodiscard]] bool fits() const;
  // Layers that stages from `at` on can still take, by seconds and by room.
  [[nodiscard]] int most_more(size_t at) const;
  [[nodiscard]] int most_leading(size_t at) const;
  [[nodiscard]] int most_following(size_t at, int leading) const;
  void order_by_room();
  void fill(size_t at, int leading, int following);
  [[nodiscard]] std::vector<LayerCounts> cut_down(int following) const;
  struct Level {
    double squares = 0;
    int first = 0;  // layers of the first of the stages
  };
  [[nodiscard]] Level level(size_t at, int following) const;
  void even_out(size_t at, const LayerCounts& left, double squares);

  const LayerLine& line_;
  const Unit& unit_;
  Zone zone_;
  double bound_;
  DeviceRoom* room_;
  std::vector<size_t> order_;                        // of the unit's stages, as they are filled
  std::vector<std::vector<StageLayers>> held_;       // by holder and chunk
  std::vector<std::vector<std::vector<int>>> open_;  // chunks by holder and place in the order
  std::vector<LayerCounts> counts_;                  // by stage of the unit
  int tries_ = 0;
  int most_ = -1;
  std::vector<LayerCounts> filled_;  // with most_
  double least_ = 0;
  std::optional<std::vector<LayerCounts>> evenest_;
};

}  // namespace pipesim
