// Simulations of a scenario's schedules, and their tasks as columns that Python reads in place.
#include "sim/case/simulate.h"

#include <chrono>
#include <fmt/format.h>
#include <memory>
#include <sstream>

#include "python/bindings.h"
#include "sim/prepare/advice.h"
#include "sim/prepare/prepare.h"
#include "sim/report/json/json.h"
#include "sim/report/svg/svg.h"
#include "sim/report/text/table.h"

namespace pipesim {
namespace {

struct Comparison {
  std::vector<Answer> answers;
  std::vector<RefusedSchedule> refused;
  double seconds = 0;  // that all of it took, on a clock
};
using SharedComparison = std::shared_ptr<Comparison>;
using SharedAnswer = std::shared_ptr<Answer>;  // shares its comparison

void refuse_all(const std::vector<RefusedSchedule>& refused) {
  std::string text = "no schedule can be met";
  for (const RefusedSchedule& each : refused) {
    text += fmt::format("\n{}: refused: {}", each.label, each.reason);
  }
  throw InfeasibleError(text);
}

void simulate_each(const std::shared_ptr<const Scenario>& scenario, Comparison& comparison) {
  (void)make_engine(*scenario, 1);  // says once, not of each schedule, that this build lacks it
  std::vector<Prepared> all = prepare_all(scenario);
  for (Prepared& each : all) {
    try {
      if (each.error) std::rethrow_exception(each.error);
      comparison.answers.push_back(answer(std::move(*each.made)));
    } catch (const InfeasibleError& error) {
      if (all.size() == 1) throw;
      comparison.refused.push_back({each.choice.name, each.label, error.what()});
    }
    const py::gil_scoped_acquire held;
    check_signals();
  }
  if (comparison.answers.empty()) refuse_all(comparison.refused);
}

SharedComparison simulate_schedules(const std::shared_ptr<Scenario>& scenario) {
  const auto begin = std::chrono::steady_clock::now();
  auto comparison = std::make_shared<Comparison>();
  {
    const py::gil_scoped_release released;
    simulate_each(scenario, *comparison);
  }
  comparison->seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return comparison;
}

SharedAnswer answer_of(const SharedComparison& comparison, size_t index) {
  return {comparison, &comparison->answers.at(index)};
}

std::string json_of(const Comparison& comparison) {
  std::ostringstream out;
  write_json(out, comparison.answers, {PIPESIM_VERSION, false, comparison.refused});
  return std::move(out).str();
}

std::string svg_of(const Answer& answer) {
  std::ostringstream out;
  write_svg(out, answer.made, answer.result,
            {.name = answer.made.choice.name, .bytes = knows_memory(*answer.made.scenario)});
  return std::move(out).str();
}

std::vector<std::vector<std::string>> passes_of(const Program& program) {
  std::vector<std::vector<std::string>> lists(program.shape().devices);
  for (int device = 0; device < program.shape().devices; ++device) {
    for (const Pass& pass : program.passes(device)) {
      lists[device].push_back(program.text(device, pass));
    }
  }
  return lists;
}

// Numbers of one type behind each other, which belong to `owner`.
struct Column {
  std::shared_ptr<const void> owner;
  const void* data = nullptr;
  size_t size = 0;
  py::ssize_t bytes = 0;  // of a number
  std::string format;
};

template <class List>
Column column_of(std::shared_ptr<const void> owner, const List& numbers) {
  using Number = std::remove_cvref_t<decltype(*numbers.data())>;
  return {std::move(owner), numbers.data(), numbers.size(), sizeof(Number),
          py::format_descriptor<Number>::format()};
}

py::buffer_info buffer_of(const Column& column) {
  return {const_cast<void*>(column.data),          column.bytes,   column.format, 1,
          {static_cast<py::ssize_t>(column.size)}, {column.bytes}, true};
}

// What of a task is worked out from its class and number.
struct TaskTable {
  explicit TaskTable(const TaskGraph& graph);

  std::vector<std::uint8_t> kind, pass;
  std::vector<std::int32_t> device, receiver, stage, microbatch, iteration;
};

TaskTable::TaskTable(const TaskGraph& graph) {
  const size_t tasks = graph.size();
  kind.reserve(tasks);
  pass.reserve(tasks);
  for (auto* column : {&device, &receiver, &stage, &microbatch, &iteration}) column->reserve(tasks);
  const auto per_pipeline =
      static_cast<std::uint32_t>(graph.pipelines().front().program->shape().devices);
  for (TaskId task = 0; task < tasks; ++task) {
    const TaskClass& of = graph.task_class(task);
    const Placement& placement = graph.pipelines()[of.pipeline].program->placement();
    const bool closes = of.kind == TaskKind::kCollective || of.kind == TaskKind::kOptimizer;
    const bool sends = of.kind == TaskKind::kTransfer;
    const bool on_stage = of.kind == TaskKind::kCompute && !is_vocabulary(of.pass);
    kind.push_back(static_cast<std::uint8_t>(of.kind));
    pass.push_back(static_cast<std::uint8_t>(of.pass));
    device.push_back(of.kind == TaskKind::kCollective ? -1 : static_cast<int>(of.device));
    receiver.push_back(sends ? static_cast<int>(of.receiver) : -1);
    stage.push_back(
        on_stage ? placement.virtual_stage(static_cast<int>(of.device % per_pipeline), of.chunk)
                 : -1);
    microbatch.push_back(closes ? -1 : graph.microbatch(task));
    iteration.push_back(graph.iteration(task));
  }
}

Column table_column(const std::shared_ptr<TaskTable>& table, const std::string& name) {
  if (name == "kind") return column_of(table, table->kind);
  if (name == "pass") return column_of(table, table->pass);
  for (const auto& [column, numbers] : {std::pair{"device", &table->device},
                                        {"receiver", &table->receiver},
                                        {"stage", &table->stage},
                                        {"microbatch", &table->microbatch},
                                        {"iteration", &table->iteration}}) {
    if (name == column) return column_of(table, *numbers);
  }
  throw py::key_error(name);
}

void bind_columns(py::module_& module) {
  py::class_<Column>(module, "Column", py::buffer_protocol()).def_buffer(buffer_of);
  py::class_<TaskTable, std::shared_ptr<TaskTable>>(module, "TaskTable")
      .def("column", [](const std::shared_ptr<TaskTable>& table, const std::string& name) {
        return table_column(table, name);
      });
}

}  // namespace

void bind_simulate(py::module_& module) {
  bind_columns(module);
  py::class_<Answer, SharedAnswer>(module, "Answer")
      .def_property_readonly("label", [](const Answer& answer) { return answer.made.label; })
      .def_property_readonly("name", [](const Answer& answer) { return answer.made.choice.name; })
      .def_property_readonly(
          "start", [](const SharedAnswer& a) { return column_of(a, a->result.timeline.start); })
      .def_property_readonly(
          "end", [](const SharedAnswer& a) { return column_of(a, a->result.timeline.end); })
      .def("table", [](const Answer& a) { return std::make_shared<TaskTable>(*a.result.graph); })
      .def("task_name",
           [](const Answer& answer, size_t task) {
             const TaskGraph& graph = *answer.result.graph;
             if (task >= graph.size()) throw py::index_error("no such task");
             return graph.name(static_cast<TaskId>(task));
           })
      .def("passes", [](const Answer& answer) { return passes_of(*answer.result.program); })
      .def("headline",
           [](const Answer& answer) {
             return headline(answer.made, answer.result, knows_memory(*answer.made.scenario));
           })
      .def("svg", svg_of, py::call_guard<py::gil_scoped_release>());
  py::class_<Comparison, SharedComparison>(module, "Comparison")
      .def_property_readonly("size", [](const Comparison& c) { return c.answers.size(); })
      .def("answer", answer_of)
      .def_property_readonly("refused",
                             [](const Comparison& comparison) {
                               std::vector<std::pair<std::string, std::string>> refused;
                               for (const RefusedSchedule& each : comparison.refused) {
                                 refused.emplace_back(each.label, each.reason);
                               }
                               return refused;
                             })
      .def_readonly("seconds", &Comparison::seconds)
      .def("table", [](const Comparison& c) { return comparison_table(c.answers); })
      .def("json", json_of, py::call_guard<py::gil_scoped_release>());
  module.def("simulate", simulate_schedules);
}

}  // namespace pipesim
