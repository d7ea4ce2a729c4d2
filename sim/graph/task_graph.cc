#include "sim/graph/task_graph.h"

#include <fmt/format.h>

#include "sim/core/error.h"

namespace pipesim {

TaskGraph::TaskGraph(Parts parts)
    : classes_(std::move(parts.classes)),
      origins_(std::move(parts.origins)),
      class_of_(std::move(parts.class_of)),
      number_(std::move(parts.number)),
      pipelines_(std::move(parts.pipelines)),
      iterations_(parts.iterations),
      units_(parts.units) {
  if (parts.row.size() != class_of_.size() + 1 || number_.size() != class_of_.size()) {
    throw LogicError("task graph: arrays of unequal length");
  }
  set_rows(std::move(parts.row), std::move(parts.waits_for));
}

void TaskGraph::set_classes(std::vector<TaskClass> classes) {
  if (classes.size() != classes_.size()) throw LogicError("task graph: other classes");
  classes_ = std::move(classes);
}

int TaskGraph::devices() const {
  int devices = 0;
  for (const auto& pipeline : pipelines_) devices += pipeline.program->shape().devices;
  return devices;
}

int TaskGraph::rank(std::uint32_t device) const {
  const auto per_pipeline = static_cast<std::uint32_t>(pipelines_.front().program->shape().devices);
  return pipelines_[device / per_pipeline].rank_of_device[device % per_pipeline];
}

std::uint32_t TaskGraph::numbers_per_iteration(const TaskClass& task) const {
  if (task.kind == TaskKind::kCollective || task.kind == TaskKind::kOptimizer) return 1;
  if (streams()) return units_;
  const Program& of = program(task);
  return task.kind == TaskKind::kCompute && task.pass == PassKind::kFB
             ? static_cast<std::uint32_t>(of.pairs().size())
             : static_cast<std::uint32_t>(of.shape().units());
}

std::vector<int> TaskGraph::host_links() const {
  std::vector<int> links;
  int first = 0;
  for (const PipelineInstance& pipeline : pipelines_) {
    const CopyPlan* plan = pipeline.program->copies();
    if (plan == nullptr) return {};
    for (std::uint32_t d = 0; d < pipeline.rank_of_device.size(); ++d) {
      links.push_back(first + static_cast<int>(plan->link_of(d)));
    }
    first += static_cast<int>(plan->links.size());
  }
  return links;
}

int TaskGraph::iteration(TaskId task) const {
  return static_cast<int>(number_[task] / numbers_per_iteration(task_class(task)));
}

Pass TaskGraph::pass(TaskId task) const {
  const TaskClass& of = task_class(task);
  return {of.pass, of.pass == PassKind::kFB ? std::uint16_t{0} : of.chunk,
          number_[task] % numbers_per_iteration(of)};
}

int TaskGraph::microbatch(TaskId task) const {
  const TaskClass& of = task_class(task);
  const std::uint32_t number = number_[task] % numbers_per_iteration(of);
  if (of.kind != TaskKind::kCompute || of.pass != PassKind::kFB) return static_cast<int>(number);
  return static_cast<int>(program(of).pairs()[number].forward.microbatch);
}

std::string TaskGraph::name(TaskId task) const {
  const TaskClass& of = task_class(task);
  const auto per_pipeline = static_cast<std::uint32_t>(program(of).shape().devices);
  const std::uint32_t device = of.device % per_pipeline;
  switch (of.kind) {
    case TaskKind::kCompute:
      return program(of).text(static_cast<int>(device), pass(task));
    case TaskKind::kTransfer:
      return fmt::format("{}{}{} -> device {}",
                         program(of).placement().virtual_stage(static_cast<int>(device), of.chunk),
                         to_text(of.pass), microbatch(task), of.receiver % per_pipeline);
    case TaskKind::kOptimizer:
      return fmt::format("optimizer of device {}", device);
    case TaskKind::kCopyOut:
    case TaskKind::kCopyIn:
      return fmt::format("{}F{} {} host",
                         program(of).placement().virtual_stage(static_cast<int>(device), of.chunk),
                         microbatch(task), of.kind == TaskKind::kCopyOut ? "to" : "from");
    case TaskKind::kBarrier:
      return fmt::format("{} {}", to_text(of.barrier), microbatch(task));
    case TaskKind::kCollective:
      break;
  }
  return "all-reduce";
}

size_t TaskGraph::resident_bytes() const {
  return classes_.size() * sizeof(TaskClass) + origins_.size() * sizeof(ClassOrigin) +
         (class_of_.size() + number_.size()) * 4 + row_starts().size_bytes() + edges().size_bytes();
}

}  // namespace pipesim
