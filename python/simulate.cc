// Simulations of a scenario's schedules: their numbers at once, all else once it is asked for.
#include <chrono>
#include <memory>

#include "library/simulations.h"
#include "python/bindings.h"
#include "python/timeline.h"
#include "sim/report/svg/svg.h"

namespace pipesim {
namespace {

// Passes of a device's forwards that take some milliseconds.
constexpr double kShortPasses = 1 << 15;

class Comparison {
 public:
  explicit Comparison(const std::shared_ptr<const Scenario>& scenario)
      : short_(is_short(*scenario)) {
    const auto begin = std::chrono::steady_clock::now();
    std::atomic<bool> stop = false;
    without_gil(short_, stop, [&] { all_.run(scenario, stop); });
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  [[nodiscard]] size_t size() const { return all_.size(); }
  [[nodiscard]] double seconds() const { return seconds_; }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> refused() const {
    std::vector<std::pair<std::string, std::string>> refused;
    for (const RefusedSchedule& each : all_.refused()) {
      refused.emplace_back(each.label, each.reason);
    }
    return refused;
  }

  [[nodiscard]] py::dict row(size_t index) const {
    const auto& [made, numbers, whole] = all_.at(index);
    py::dict row;
    add_choice(row, columns_of(made.choice));
    row["label"] = made.label;
    add_metrics(row, metrics_of(*made.scenario, numbers));
    row["tasks"] = numbers.report.tasks;
    return row;
  }
  [[nodiscard]] std::string headline(size_t index) const {
    const auto& [made, numbers, whole] = all_.at(index);
    return pipesim::headline(made, numbers, knows_memory(*made.scenario));
  }
  [[nodiscard]] std::vector<std::vector<std::string>> passes(size_t index) const {
    return passes_of(*all_.at(index).numbers.program);
  }

  SharedAnswer answer(size_t index) {
    std::atomic<bool> stop = false;
    return without_gil(short_, stop, [this, index] { return all_.answer(index); });
  }

  std::string json() {
    std::atomic<bool> stop = false;
    return without_gil(short_, stop, [this] { return all_.json(); });
  }

  [[nodiscard]] std::string table() const { return all_.table(); }

 private:
  bool short_;
  double seconds_ = 0;  // that the numbers took, on a clock
  Simulations all_;
};

}  // namespace

bool is_short(const Scenario& scenario) {
  const double passes = 1.0 * scenario.parallel.pipeline * scenario.batch.microbatches *
                        static_cast<double>(scenario.schedules.size());
  return passes < kShortPasses && scenario.engine == EngineKind::kReplay &&
         !asks_for_balance(scenario);
}

void bind_simulate(py::module_& module) {
  py::class_<Answer, std::shared_ptr<Answer>>(module, "Answer")
      .def("tasks",
           [](const std::shared_ptr<Answer>& answer) {
             return std::make_shared<Tasks>(std::shared_ptr<const Result>(answer, &answer->result));
           })
      .def("json", json_of, py::call_guard<py::gil_scoped_release>())
      .def("svg", svg_of, py::arg("pixels") = py::none(), py::call_guard<py::gil_scoped_release>());
  py::class_<Comparison>(module, "Comparison")
      .def(py::init([](const SharedScenario& scenario) {
             return std::make_unique<Comparison>(scenario);
           }),
           py::arg("scenario"))
      .def_property_readonly("size", &Comparison::size)
      .def_property_readonly("refused", &Comparison::refused)
      .def_property_readonly("seconds", &Comparison::seconds)
      .def("row", &Comparison::row, py::arg("index"))
      .def("headline", &Comparison::headline, py::arg("index"))
      .def("passes", &Comparison::passes, py::arg("index"))
      .def(
          "answer",
          [](Comparison& comparison, size_t index) {
            return std::const_pointer_cast<Answer>(comparison.answer(index));
          },
          py::arg("index"))
      .def("table", &Comparison::table)
      .def("json", &Comparison::json);
}

}  // namespace pipesim
