#include "library/task_table.h"

#include "sim/pipeline/program.h"

namespace pipesim {

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

}  // namespace pipesim
