// Simulations of a scenario's schedules: their numbers at once, all else once it is asked for.
#include "sim/case/simulate.h"

#include <chrono>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <sstream>

#include "python/bindings.h"
#include "python/timeline.h"
#include "sim/prepare/advice.h"
#include "sim/prepare/prepare.h"
#include "sim/report/json/json.h"
#include "sim/report/svg/svg.h"
#include "sim/report/text/table.h"

namespace pipesim {
namespace {

using SharedAnswer = std::shared_ptr<const Answer>;

// Passes of a device's forwards that take some milliseconds.
constexpr double kShortPasses = 1 << 15;

[[noreturn]] void refuse_all(const std::vector<RefusedSchedule>& refused) {
  std::string text = "no schedule can be met";
  for (const RefusedSchedule& each : refused) {
    text += fmt::format("\n{}: refused: {}", each.label, each.reason);
  }
  throw InfeasibleError(text);
}

// The answer without graph and timeline: enough for documents, at a few bytes a device.
Answer without_timeline(const Answer& answer) {
  const Result& result = answer.result;
  return {answer.made,
          {.program = result.program,
           .graph = {},
           .timeline = {},
           .report = result.report,
           .throughput = result.throughput,
           .fits = result.fits,
           .host = result.host,
           .seconds = result.seconds},
          answer.advice};
}

// A schedule's numbers, and the whole answer where it was asked for.
struct Simulated {
  Case made;
  Result numbers;
  SharedAnswer whole = {};
};

class Comparison {
 public:
  explicit Comparison(const std::shared_ptr<const Scenario>& scenario)
      : short_(is_short(*scenario)) {
    const auto begin = std::chrono::steady_clock::now();
    std::atomic<bool> stop = false;
    without_gil(short_, stop, [&] {
      (void)make_engine(*scenario, 1);  // says once, not of each schedule, that it is not there
      refused_ = each_feasible(scenario, stop, [this](Case made) { add(std::move(made)); });
    });
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  [[nodiscard]] size_t size() const { return all_.size(); }
  [[nodiscard]] double seconds() const { return seconds_; }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> refused() const {
    std::vector<std::pair<std::string, std::string>> refused;
    for (const RefusedSchedule& each : refused_) refused.emplace_back(each.label, each.reason);
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

  // Simulates in full what was not.
  SharedAnswer answer(size_t index) {
    Simulated& one = all_.at(index);
    std::atomic<bool> stop = false;
    without_gil(short_, stop, [this, &one] {
      const std::lock_guard lock(busy_);
      if (!one.whole) one.whole = std::make_shared<const Answer>(pipesim::answer(one.made));
    });
    return one.whole;
  }

  std::string json() {
    std::vector<Answer> all;
    for (size_t i = 0; i < all_.size(); ++i) all.push_back(without_timeline(*answer(i)));
    const py::gil_scoped_release released;
    std::ostringstream out;
    write_json(out, all, {PIPESIM_VERSION, false, refused_});
    return std::move(out).str();
  }

  [[nodiscard]] std::string table() const {
    std::vector<Answer> answers;
    for (const auto& [made, numbers, whole] : all_) answers.push_back({made, numbers});
    return comparison_table(answers);
  }

 private:
  // SimGrid gives numbers and timeline at once; replay without a timeline takes half as long.
  void add(Case made) {
    if (made.scenario->engine == EngineKind::kSimGrid) {
      auto whole = std::make_shared<const Answer>(pipesim::answer(made));
      all_.push_back({std::move(made), without_timeline(*whole).result, std::move(whole)});
      return;
    }
    const Answer numbers{made, simulate(made, nullptr, nullptr, Detail::kNumbers)};
    all_.push_back({std::move(made), without_timeline(numbers).result});
  }

  bool short_;
  double seconds_ = 0;  // that the numbers took, on a clock
  std::vector<Simulated> all_;
  std::vector<RefusedSchedule> refused_;
  std::mutex busy_;  // of what is simulated in full
};

// `pixels`: of the time axis; without them as many as numbers in boxes need.
std::string svg_of(const Answer& answer, std::optional<double> pixels) {
  SvgOptions options{.name = answer.made.choice.name, .bytes = knows_memory(*answer.made.scenario)};
  if (pixels) options.axis = {axis_of(answer.result).seconds, *pixels};
  std::ostringstream out;
  write_svg(out, answer.made, answer.result, options);
  return std::move(out).str();
}

// The document of `pipesim run --json` of one schedule.
std::string json_of(const Answer& answer) {
  std::ostringstream out;
  write_json(out, std::span(&answer, 1), {PIPESIM_VERSION, false, {}});
  return std::move(out).str();
}

}  // namespace

bool is_short(const Scenario& scenario) {
  const double passes = 1.0 * scenario.parallel.pipeline * scenario.batch.microbatches *
                        static_cast<double>(scenario.schedules.size());
  return passes < kShortPasses && scenario.engine == EngineKind::kReplay &&
         !asks_for_balance(scenario);
}

std::vector<RefusedSchedule> each_feasible(const std::shared_ptr<const Scenario>& scenario,
                                           const std::atomic<bool>& stop,
                                           const std::function<void(Case)>& work) {
  std::vector<RefusedSchedule> refused;
  std::vector<Prepared> all = prepare_all(scenario);
  for (Prepared& each : all) {
    if (stop) break;
    try {
      if (each.error) std::rethrow_exception(each.error);
      work(std::move(*each.made));
    } catch (const InfeasibleError& error) {
      if (all.size() == 1) throw;
      refused.push_back({each.choice.name, each.label, error.what()});
    }
  }
  if (refused.size() == all.size()) refuse_all(refused);
  return refused;
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
