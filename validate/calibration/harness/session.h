// One run of the harness: the GPU, the libraries, the clock that bounds it, its findings.
//
// Measurements call `attempt` for each point. It skips the point when the mode's time is over, and
// turns a refusal by a library or by the GPU's memory into a not-measured entry with the reason.
// Any other CUDA error leaves the device unusable and is passed on. Arenas are made on first use.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "validate/calibration/harness/arena.h"
#include "validate/calibration/harness/attention.h"
#include "validate/calibration/harness/card.h"
#include "validate/calibration/harness/linear.h"
#include "validate/calibration/harness/timer.h"
#include "validate/calibration/measurements.h"
#include "validate/calibration/shapes.h"
#include "validate/calibration/switches.h"

namespace pipesim::calibration {

class Session {
 public:
  using Progress = std::function<void(const std::string& line)>;

  Session(const Card& card, Plan plan, Progress progress);

  // Measures one point by `fill`, which sets its times; false when it was not measured.
  bool attempt(Point point, const std::function<void(Point&)>& fill);
  void announce(const std::string& line) const { progress_(line); }
  void not_measured(std::string what, std::string reason);
  [[nodiscard]] double elapsed_s() const;
  // Runs passes of a layer for as long as the plan says. From then on some run ahead of every
  // batch, so that the GPU has its clocks of training.
  void burn_in();
  // The same for a moment, after what the host took for itself.
  void settle();
  // Writes what was skipped for time, one entry per group; call once, at the end.
  void close();

  [[nodiscard]] const Arena& operands(Precision precision);
  [[nodiscard]] const Arena& scratch();

  const Card& card;
  const Plan plan;
  Timer timer;
  CublasHandle cublas;
  AttentionLibrary attention;
  Measurements measured;
  // Around every stage, where they are set: what ends a process that hangs, and what keeps what has
  // been measured so far.
  std::function<std::shared_ptr<void>(const char* stage)> watch;
  std::function<void(const Session&)> stage_ended;
  // Where the device on a PCI bus stands.
  std::function<std::string(const std::string& bus)> path_of = pci_path;

 private:
  Progress progress_;
  std::chrono::steady_clock::time_point start_;
  std::map<std::string, int> skipped_;
  std::optional<Arena> bf16_, fp8_, scratch_;
  Work load_;
};

// One matmul of the plan's kind over rotating operands: a measurement, or what disturbs another.
[[nodiscard]] Work matmul_work(Session& session, const MatmulSpec& spec);

// A layer's passes, one a launch: F, B and W in turn. Throws OutOfMemory, and LibraryError for a
// shape that a library refuses.
[[nodiscard]] Work layer_work(Session& session, const LayerSlice& slice);

// The stages, in the order in which a calibration runs them.
void measure_launches(Session& session);
void measure_kernels(Session& session);
void measure_attention(Session& session);
void measure_copies(Session& session);
void measure_copies_together(Session& session);
void measure_interference(Session& session);
void measure_layers(Session& session);
void measure_pauses(Session& session);
void measure_collectives(Session& session);
void measure_matmuls(Session& session);
void compose_layers(Session& session);

// All of them, then the composition. A stage that fails as a whole is listed as not measured; one
// that loses the device ends the measuring, and what was measured stays.
void run_stages(Session& session);

}  // namespace pipesim::calibration
