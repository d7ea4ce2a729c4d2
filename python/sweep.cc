// A sweep as something that hands out its points as they are done.
#include "sim/sweep/sweep.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <stop_token>
#include <thread>

#include "python/bindings.h"
#include "sim/sweep/build.h"
#include "sim/sweep/point.h"
#include "sim/sweep/results.h"
#include "sim/sweep/run_sweep.h"
#include "sim/sweep/surroundings.h"

namespace pipesim {
namespace {

class RunningSweep {
 public:
  // Forks `processes`, then runs the sweep on a thread until it is done or `this` ends.
  RunningSweep(Sweep sweep, const std::string& folder, int processes)
      : sweep_(std::move(sweep)),
        evaluate_(sweep_),
        workers_(processes, [this](std::uint32_t point) { return to_bytes(evaluate_(point)); }),
        store_(folder, sweep_, build_of_program(PIPESIM_VERSION), {folder, 0, 0, ""}) {
    progress_.points = sweep_.points();
    store_.visit(ResultStore::Rows::kAll,
                 [this](const PointResult& result) { ready_.push_back(result); });
    progress_.before = static_cast<std::uint32_t>(ready_.size());
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  // The next point that is done; None where none is left. Stored points come first.
  py::object next() {
    while (true) {
      if (const auto result = wait()) return dict_of(*result);
      if (at_end()) break;
      try {
        check_signals();
      } catch (...) {
        stop();
        throw;
      }
    }
    if (failure_) std::rethrow_exception(failure_);
    return py::none();
  }

  [[nodiscard]] py::dict progress() {
    const std::lock_guard lock(mutex_);
    py::dict progress;
    progress["points"] = progress_.points;
    progress["before"] = progress_.before;
    progress["evaluated"] = progress_.evaluated;
    progress["share"] = progress_.share;
    return progress;
  }

  // Ends the run early; what is done is stored then.
  void stop() {
    const py::gil_scoped_release released;
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
  }

  // All points, in their order. Requires that `next` has returned None.
  [[nodiscard]] py::list rows() const {
    std::vector<PointResult> all = lost_points();
    store_.visit(ResultStore::Rows::kAll,
                 [&all](const PointResult& result) { all.push_back(result); });
    std::ranges::sort(all, {}, &PointResult::point);
    py::list rows;
    for (const PointResult& result : all) rows.append(dict_of(result));
    return rows;
  }

  // The document of `pipesim sweep --json`. Requires that `next` has returned None.
  [[nodiscard]] std::string json() const {
    std::ostringstream out;
    write_sweep_json(out, sweep_, store_, run_, PIPESIM_VERSION);
    return std::move(out).str();
  }

 private:
  void run(const std::stop_token& stop) {
    try {
      run_ = run_sweep(sweep_, store_, workers_,
                       {.stopped = [&stop] { return stop.stop_requested(); },
                        .progress =
                            [this](const SweepProgress& progress) {
                              const std::lock_guard lock(mutex_);
                              progress_ = progress;
                            },
                        .result =
                            [this](const PointResult& result) {
                              {
                                const std::lock_guard lock(mutex_);
                                ready_.push_back(result);
                                ++progress_.evaluated;
                              }
                              changed_.notify_one();
                            }});
    } catch (...) {
      failure_ = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      std::ranges::move(lost_points(), std::back_inserter(ready_));
      ended_ = true;
    }
    changed_.notify_one();
  }

  [[nodiscard]] std::vector<PointResult> lost_points() const {
    std::vector<PointResult> lost;
    for (const auto& [point, why] : run_.lost) {
      PointResult& one = lost.emplace_back();
      one.point = point;
      one.outcome = PointResult::Outcome::kFault;
      one.reason = why;
    }
    return lost;
  }

  // A tenth of a second at most, in which Python is free.
  std::optional<PointResult> wait() {
    constexpr std::chrono::milliseconds kMost(100);
    const py::gil_scoped_release released;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kMost, [this] { return ended_ || !ready_.empty(); });
    if (ready_.empty()) return std::nullopt;
    PointResult result = std::move(ready_.front());
    ready_.pop_front();
    return result;
  }

  bool at_end() {
    const std::lock_guard lock(mutex_);
    return ended_ && ready_.empty();
  }

  [[nodiscard]] py::dict dict_of(const PointResult& result) const {
    py::dict row;
    row["point"] = result.point;
    const std::vector<std::string> values = sweep_.values(sweep_.setting(result.point));
    const std::vector<std::string> keys = key_columns(sweep_);
    for (size_t i = 0; i < values.size(); ++i) row[py::str(keys[i])] = values[i];
    add_choice(row, result.choice);
    add_metrics(row, result.metrics);
    const bool done = result.outcome == PointResult::Outcome::kDone;
    row["reason"] = done ? py::object(py::none()) : py::object(py::str(result.reason));
    return row;
  }

  const Sweep sweep_;
  Evaluator evaluate_;
  LocalWorkers workers_;
  ResultStore store_;
  std::mutex mutex_;  // of the next four
  std::condition_variable changed_;
  std::deque<PointResult> ready_;
  SweepProgress progress_;
  bool ended_ = false;
  SweepRun run_;
  std::exception_ptr failure_;
  std::jthread thread_;  // ends before what it works on
};

// Names this build, the files that a scenario's text names, and the catalogue: its numbers depend
// on them too.
std::string surroundings(const std::string& name, const std::string& text, const Changes& changes) {
  return build_of_program(PIPESIM_VERSION) +
         surroundings_of(YamlSource(name, text, overrides_of(changes)), true);
}

}  // namespace

void bind_sweep(py::module_& module) {
  py::class_<Sweep>(module, "Sweep")
      .def_property_readonly("points", &Sweep::points)
      .def_property_readonly("keys", &Sweep::keys)
      .def_property_readonly("columns", &key_columns);
  py::class_<RunningSweep>(module, "RunningSweep")
      .def(py::init<Sweep, const std::string&, int>(), py::arg("sweep"), py::arg("folder"),
           py::arg("processes"))
      .def("next", &RunningSweep::next)
      .def("progress", &RunningSweep::progress)
      .def("stop", &RunningSweep::stop)
      .def("rows", &RunningSweep::rows)
      .def("json", &RunningSweep::json);
  module.def("surroundings", surroundings, py::arg("name"), py::arg("text"), py::arg("changes"));
  module.def("usual_points", [] { return Sweep::kUsualPoints; });
  module.def(
      "sweep_of_text",
      [](const std::string& name, const std::string& text, const Changes& changes) {
        return Sweep(name, text, overrides_of(changes));
      },
      py::arg("name"), py::arg("text"), py::arg("changes"));
}

}  // namespace pipesim
