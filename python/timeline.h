// A simulation's tasks for Python.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings.h"
#include "sim/case/simulate.h"

namespace pipesim {

struct Column;
struct TaskTable;

// The tasks of a result with a timeline, which lives as long as a column of it.
class Tasks {
 public:
  explicit Tasks(std::shared_ptr<const Result> result) : result_(std::move(result)) {}

  // Throws KeyError where no column has the name.
  [[nodiscard]] Column column(const std::string& name);
  [[nodiscard]] std::string name(size_t task) const;
  [[nodiscard]] std::vector<TaskId> critical_path() const;

 private:
  [[nodiscard]] const TaskGraph& graph() const { return *result_->graph; }

  std::shared_ptr<const Result> result_;
  std::shared_ptr<const TaskTable> table_;  // once a column of it is asked for
};

}  // namespace pipesim
