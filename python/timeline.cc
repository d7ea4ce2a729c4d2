// A simulation's tasks as columns that Python reads in place.
#include "python/timeline.h"

#include <string>
#include <utility>

#include "library/task_table.h"
#include "sim/graph/critical_path.h"

namespace pipesim {

// Numbers of one type behind each other, which belong to `owner`.
struct Column {
  std::shared_ptr<const void> owner;
  const void* data = nullptr;
  size_t size = 0;
  py::ssize_t bytes = 0;  // of a number
  std::string format;
};

namespace {

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

// The task that waits, for every edge.
std::vector<TaskId> waiting(const TaskGraph& graph) {
  std::vector<TaskId> tasks;
  tasks.reserve(graph.edges().size());
  for (TaskId task = 0; task < graph.size(); ++task) {
    tasks.insert(tasks.end(), graph.waits_for(task).size(), task);
  }
  return tasks;
}

}  // namespace

Column Tasks::column(const std::string& name) {
  if (name == "start") return column_of(result_, result_->timeline.start);
  if (name == "end") return column_of(result_, result_->timeline.end);
  if (name == "awaited") return column_of(result_, graph().edges());
  if (name == "waiting") {
    const auto tasks = std::make_shared<const std::vector<TaskId>>(waiting(graph()));
    return column_of(tasks, *tasks);
  }
  if (!table_) table_ = std::make_shared<const TaskTable>(graph());
  if (name == "kind") return column_of(table_, table_->kind);
  if (name == "pass_kind") return column_of(table_, table_->pass);
  for (const auto& [column, numbers] : {std::pair{"device", &table_->device},
                                        {"receiver", &table_->receiver},
                                        {"stage", &table_->stage},
                                        {"microbatch", &table_->microbatch},
                                        {"iteration", &table_->iteration}}) {
    if (name == column) return column_of(table_, *numbers);
  }
  throw py::key_error(name);
}

std::string Tasks::name(size_t task) const {
  if (task >= graph().size()) throw py::index_error("no such task");
  return graph().name(static_cast<TaskId>(task));
}

std::vector<TaskId> Tasks::critical_path() const {
  return pipesim::critical_path(graph(), result_->timeline);
}

void bind_timeline(py::module_& module) {
  py::class_<Column>(module, "Column", py::buffer_protocol()).def_buffer(buffer_of);
  py::class_<Tasks, std::shared_ptr<Tasks>>(module, "Tasks")
      .def("column", &Tasks::column, py::arg("name"))
      .def("name", &Tasks::name, py::arg("task"))
      .def("critical_path", &Tasks::critical_path);
}

}  // namespace pipesim
