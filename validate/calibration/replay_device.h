// A device that can replay: three streams, blocks of memory, and the time of each action.
//
// `replay` enqueues a row action by action; a device executes each stream in order, beside the
// others. Between `begin` and `finish` all calls but `pace` return at once.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "validate/calibration/measurements.h"
#include "validate/calibration/replay_row.h"

namespace pipesim::calibration {

// When each action started and ended, on the row's clock (Row::origin plus what has passed).
struct Executed {
  std::vector<double> start;
  std::vector<double> end;
  // The most bytes that the device's allocator had given out, where it keeps account.
  std::optional<double> allocator_peak = {};
};

class ReplayDevice {
 public:
  virtual ~ReplayDevice() = default;
  [[nodiscard]] virtual Parameters facts() const = 0;  // device, driver and so on
  // Seconds that the work takes while the device does nothing else.
  [[nodiscard]] virtual double seconds_alone(const DeviceWork& work) = 0;

  virtual void begin(const Row& row) = 0;  // which stays until `finish`
  // The lane goes on at this time of the row's clock, or after that action of another lane.
  virtual void hold(Lane lane, double until) = 0;
  virtual void wait(Lane lane, std::uint32_t action) = 0;
  // Takes effect on a block of the row when the lane reaches it.
  virtual void acquire(Lane lane, std::uint32_t block) = 0;
  virtual void release(Lane lane, std::uint32_t block) = 0;
  virtual void run(std::uint32_t action) = 0;
  // The caller does not go on before that action has ended.
  virtual void pace(std::uint32_t action) = 0;
  [[nodiscard]] virtual Executed finish() = 0;
};

// When messages arrive, and whatever else others do: as simulated, all at the start, or when others
// have done it (replay_pipeline.h).
enum class Arrivals : std::uint8_t { kSimulated, kAtStart, kSent };
[[nodiscard]] constexpr const char* to_text(Arrivals arrivals) {
  switch (arrivals) {
    case Arrivals::kSimulated:
      return "simulated";
    case Arrivals::kAtStart:
      return "at-start";
    case Arrivals::kSent:
      return "sent";
  }
  return "";
}

// Hands a row's actions to a device that has begun it; few passes ahead of what has run.
class RowFeeder {
 public:
  RowFeeder(const Row& row, Arrivals arrivals) : row_(row), arrivals_(arrivals) {}
  void feed(std::uint32_t action, ReplayDevice& device);

 private:
  const Row& row_;
  Arrivals arrivals_;
  std::deque<std::uint32_t> ahead_;  // passes
};

// Executes the row once.
[[nodiscard]] Executed replay(const Row& row, Arrivals arrivals, ReplayDevice& device);

// The simulation with passes and copies that take as long as the device takes for them alone, on
// all devices; messages keep their time. Requires an engine that takes seconds by task.
void retime(Result& result, const std::vector<StageContent>& stages, ReplayDevice& device);

}  // namespace pipesim::calibration
