// What the parts of the module pipesim._pipesim share. They convert between Python's values and the
// library's, and nothing else; python/pipesim/ makes of them what people call.
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

#include "sim/read/yaml.h"

namespace pipesim {

namespace py = pybind11;

// "path.to.key" and its value as YAML.
using Changes = std::vector<std::pair<std::string, std::string>>;
std::vector<Override> overrides_of(const Changes& changes);

void bind_scenario(py::module_& module);
void bind_simulate(py::module_& module);
void bind_search(py::module_& module);
void bind_sweep(py::module_& module);
void bind_plan(py::module_& module);
void bind_validate(py::module_& module);

// Throws what a signal's handler in Python raises: KeyboardInterrupt on Ctrl-C.
inline void check_signals() {
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

// Runs `work` on a thread of its own and calls `tick` some ten times a second and once at the end,
// so that Python is heard meanwhile. `stop` is set when the tick or a signal raises; work that asks
// for it ends early then. Call it with the GIL, which `work` does without.
template <class Work>
auto heard_by_python(std::atomic<bool>& stop, Work work, const std::function<void()>& tick) {
  auto running = std::async(std::launch::async, std::move(work));
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

}  // namespace pipesim
