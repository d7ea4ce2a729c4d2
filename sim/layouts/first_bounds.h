// The first bounds of points that wait in a plan's queue: cheap, and shared by those of one size.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "sim/layouts/bound.h"
#include "sim/layouts/space.h"

namespace pipesim {

struct FirstBound {
  Seconds iteration;
  Bytes memory;
  std::shared_ptr<const LayerCosts> costs;  // of the point's passes
};

// Asked for points in the order of the space: those of one size stand together and share what their
// layers take.
class FirstBounds {
 public:
  explicit FirstBounds(const PlanQuestion& question) : question_(question) {}

  FirstBound of(PlanPoint point);

 private:
  struct Known {
    Seconds iteration;
    LeastMemory memory;
    std::shared_ptr<const LayerCosts> costs;
  };
  [[nodiscard]] Known known_of(const PlanPoint& point) const;

  using Kind = std::tuple<bool, bool, bool, bool, VocabularyPlacement, RecomputeGranularity,
                          std::string, std::optional<ShardingStrategy>>;
  const PlanQuestion& question_;
  std::optional<PlanPoint> last_;
  std::map<Kind, Known> known_;  // of points of the last one's size
};

}  // namespace pipesim
