// Declarations that the parts of the module pipesim._pipesim share. They convert between Python's
// values and the library's, and nothing else; python/pipesim/ makes of them what people call.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <string>
#include <utility>
#include <vector>

#include "library/scenario_text.h"
#include "sim/core/stop.h"
#include "sim/report/metrics/row.h"

namespace pipesim {

namespace py = pybind11;

using SharedScenario = std::shared_ptr<Scenario>;

void bind_rows(py::module_& module);
void bind_scenario(py::module_& module);
void bind_timeline(py::module_& module);
void bind_simulate(py::module_& module);
void bind_commands(py::module_& module);
void bind_search(py::module_& module);
void bind_sweep(py::module_& module);
void bind_plan(py::module_& module);
void bind_validate(py::module_& module);

// A metric's value as JSON has it: whole where it counts, the name of a fit, None for nothing.
py::object value_of(const Metric& metric, std::optional<double> value);
// The columns of a choice as JSON has them, None where one is empty.
void add_choice(py::dict& row, const ChoiceColumns& choice);
// The metrics of a run, by name.
void add_metrics(py::dict& row, const MetricRow& metrics);

// Throws what a signal's handler in Python raises: KeyboardInterrupt on Ctrl-C.
inline void check_signals() {
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

// Runs `work` on a thread of its own. Calls `tick` some ten times a second and once at the end, so
// that Python's signals are handled meanwhile. `stop` is set when the tick or a signal raises; work
// that checks it, or calls check_stop(), then ends early. Call it with the GIL, which `work` does
// without.
template <class Work>
auto heard_by_python(std::atomic<bool>& stop, Work work, const std::function<void()>& tick) {
  auto running = std::async(std::launch::async, [&stop, work = std::move(work)]() mutable {
    const StopOn stopping(stop);
    return work();
  });
  const auto ended = [&running] {
    constexpr std::chrono::milliseconds kBetween(100);
    const py::gil_scoped_release released;
    return running.wait_for(kBetween) == std::future_status::ready;
  };
  try {
    while (!ended()) {
      tick();
      check_signals();
    }
    tick();
  } catch (...) {
    stop = true;
    const py::gil_scoped_release released;
    running.wait();
    throw;
  }
  return running.get();
}

// True where all schedules are simulated before a person would ask to stop.
bool is_short(const Scenario& scenario);

// Runs `work` without the GIL: here where it is short, else as heard_by_python does.
template <class Work>
auto without_gil(bool is_short, std::atomic<bool>& stop, Work work) {
  if (is_short) {
    const py::gil_scoped_release released;
    return work();
  }
  return heard_by_python(stop, std::move(work), [] {});
}

}  // namespace pipesim
