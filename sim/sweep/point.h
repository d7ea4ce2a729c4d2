// One point of a sweep, evaluated, and as bytes between processes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/prepare/prepare.h"
#include "sim/report/metrics/row.h"
#include "sim/sweep/sweep.h"

namespace pipesim {

struct PointResult {
  enum class Outcome : std::uint8_t {
    kDone,
    kRefused,  // by the reader, the schedule or the engine: `reason` says why
    kFault,    // of this machine or of pipesim; another try may do
  };
  std::uint32_t point = 0;
  Outcome outcome = Outcome::kDone;
  Fingerprint key{};
  ChoiceColumns choice{};  // of a point that cannot be read the schedule's name alone
  MetricRow metrics{};
  std::string reason;  // one line
};

std::string to_bytes(const PointResult& result);
// LogicError for bytes that are not of to_bytes.
PointResult point_from_bytes(std::string_view bytes);

// Evaluates points of one sweep, keeping what the next one of the same setting, or on the same
// engine, can use.
class Evaluator {
 public:
  explicit Evaluator(const Sweep& sweep) : sweep_(sweep) {}

  // The same numbers as `pipesim run` of the resolved scenario. Throws nothing but std::bad_alloc.
  PointResult operator()(std::uint32_t point);

 private:
  void open(std::uint32_t setting);
  void evaluate(std::uint32_t point, PointResult& result);
  const Engine& engine_for(const Scenario& scenario);

  const Sweep& sweep_;
  std::optional<std::uint32_t> setting_;
  std::optional<YamlSource> source_;
  std::vector<Prepared> cases_;  // of all schedules; none where the scenario cannot be read
  Reuse reuse_;
  std::unique_ptr<Engine> engine_;
  EngineKind engine_kind_ = EngineKind::kReplay;
  GpuModel engine_gpu_ = GpuModel::kTimer;
  std::vector<SpeedChange> engine_changes_;
};

}  // namespace pipesim
