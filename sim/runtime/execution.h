// A case executed for real: a process for every device, real messages, and how it compares with the
// simulation of the same passes.
//
// It tests that orders, calls, copies and collectives end as simulated; it says nothing about a
// GPU. Messages take their simulated time from when they leave, and share no network. The first
// pipeline runs, one iteration without its closing step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/case/case.h"
#include "sim/runtime/device.h"

namespace pipesim::runtime {

struct ExecutionOptions {
  double mean_pass = 20e-3;  // seconds that a pass takes at the mean: all times are scaled alike
  bool torch = false;        // messages as PyTorch's runtime sends them (Semantics::kTorch)
  double deadline = 0;       // seconds; 0: from the simulation
  // Where this process is one rank of MPI, of as many as there are devices.
  MpiPeers* peers = nullptr;
};

struct Execution {
  std::string schedule;
  std::string label;  // as Case's
  int devices = 0;
  Semantics semantics = Semantics::kAsynchronous;
  double scale = 1;      // of the times below to those of the scenario
  double wall = 0;       // seconds from the first pass's start to the last one's end
  double overhead = 0;   // by which one timed wait comes late, measured before
  int waits = 0;         // on the simulated critical path
  double simulated = 0;  // seconds
  // How the execution departs from the simulation. Empty when every task ran once, after all that
  // it waits for in the task graph.
  std::string disorder;
  // True if every device computed the results of one process without a pipeline.
  bool same_results = false;

  // For computed passes: the largest error of gradients against one process, relative to the
  // largest. By device the most bytes of activations (as bf16), counted and simulated.
  std::optional<double> gradient_error = {};
  std::vector<double> peak_bytes = {};
  std::vector<double> simulated_peak_bytes = {};

  // Without what waits come late.
  [[nodiscard]] double measured() const { return wall - overhead * waits; }
};

// On ranks but the first: nothing. Throws as run_processes and make_program do.
std::optional<Execution> execute_timed(const Case& made, const ExecutionOptions& options);

// With passes that compute the case's model, which has to be a small one (computed_work.h), in the
// time that they need. Only local processes. Throws as small_model_of does too.
Execution execute_computed(const Case& made, const ExecutionOptions& options);

}  // namespace pipesim::runtime
