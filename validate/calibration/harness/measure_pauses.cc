#include <array>
#include <chrono>
#include <fmt/format.h>
#include <string>
#include <thread>
#include <utility>

#include "validate/calibration/harness/session.h"

namespace pipesim::calibration {
namespace {

// How often F, B and W follow each other between two pauses, and the share of time that pauses
// take.
constexpr std::array<int, 2> kBetweenPauses{1, 8};
constexpr std::array<double, 4> kIdle{0.1, 0.25, 0.5, 0.75};
constexpr double kPausesS = 1.2;
constexpr int kPasses = 3;  // F, B and W

Point pauses_point(const LayerSlice& slice, std::string name, double idle, int passes) {
  Point point = point_of(slice, "pauses", 'F');
  point.name = std::move(name);
  point.parameters.emplace_back("idle", fmt::format("{:g}", idle));
  point.parameters.emplace_back("passes", std::to_string(passes));
  return point;
}

}  // namespace

// Speed that a GPU with limited power gains while it waits: its clocks follow recent power.
void measure_pauses(Session& session) {
  if (session.plan.burn_in_s <= 0) return;
  const LayerSlice& slice = session.plan.layers.front();
  const Work passes = layer_work(session, slice);
  const Work all = [&](cudaStream_t stream, int launch) {
    for (int i = 0; i < kPasses; ++i) passes(stream, launch);
  };
  constexpr double kRestS = 1;
  std::this_thread::sleep_for(std::chrono::duration<double>(kRestS));
  session.attempt(pauses_point(slice, "from_rest", 0, kPasses), [&](Point& point) {
    point.samples_us = session.timer.keep_busy(all, kPausesS);
    point.time_us = summarize_times(point.samples_us);
  });
  double busy_us = 0;
  session.attempt(pauses_point(slice, "layer", 0, kPasses), [&](Point& point) {
    session.timer.measure_with_pauses(point, all, {.seconds = kPausesS});
    busy_us = point.time_us.median;
  });
  if (busy_us <= 0) return;
  for (const int times : kBetweenPauses) {
    for (const double idle : kIdle) {
      session.attempt(pauses_point(slice, "layer", idle, times * kPasses), [&](Point& point) {
        session.timer.measure_with_pauses(point, all,
                                          {.launches = times,
                                           .pause_us = times * busy_us * idle / (1 - idle),
                                           .seconds = kPausesS});
      });
    }
  }
}

}  // namespace pipesim::calibration
