#include "validate/calibration/replay_device.h"

#include <deque>

namespace pipesim::calibration {
namespace {

// Passes that are enqueued and have not ended: enough for launches to be hidden behind work, few
// enough that memory is asked for about when it is needed.
constexpr std::size_t kAhead = 3;

}  // namespace

Executed replay(const Row& row, Arrivals arrivals, ReplayDevice& device) {
  device.begin(row);
  std::deque<std::uint32_t> ahead;
  for (std::uint32_t number = 0; number < row.actions.size(); ++number) {
    const Action& action = row.actions[number];
    if (action.lane == Lane::kCompute) {
      if (ahead.size() == kAhead) {
        device.pace(ahead.front());
        ahead.pop_front();
      }
      ahead.push_back(number);
    }
    for (const std::uint32_t other : action.waits_for) device.wait(action.lane, other);
    if (arrivals == Arrivals::kSimulated && action.arrival > row.origin) {
      device.hold(action.lane, action.arrival);
    }
    for (const std::uint32_t block : action.acquires) device.acquire(action.lane, block);
    device.run(number);
    for (const std::uint32_t block : action.releases) device.release(action.lane, block);
  }
  return device.finish();
}

}  // namespace pipesim::calibration
