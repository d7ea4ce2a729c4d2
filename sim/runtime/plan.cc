#include "sim/runtime/plan.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "sim/case/graph_options.h"
#include "sim/case/program.h"
#include "sim/engine/engine.h"
#include "sim/graph/build.h"
#include "sim/graph/critical_path.h"

namespace pipesim::runtime {
namespace {

// Where a task of the graph stands in scripts: a pass or copy by its lane and number, a message by
// its id.
struct Where {
  enum class Kind : std::uint8_t { kPass, kMessage, kBarrier, kCopy, kNone };
  Kind kind = Kind::kNone;
  std::uint32_t row = 0;     // device; of a copy its link; of a collective which
  std::uint32_t number = 0;  // position, MessageId, unit, or number of the copy
  bool out = false;
};

std::vector<Where> places_of(const TaskGraph& graph, const Program& program) {
  const NoteIds ids(program);
  const std::vector<int> links = graph.host_links();
  std::vector<std::uint32_t> passed(program.placement().devices(), 0);
  std::vector<std::array<std::uint32_t, 2>> copied(links.size());
  std::vector<Where> places;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const TaskClass& of = graph.task_class(task);
    const auto unit = static_cast<std::uint32_t>(graph.microbatch(task));
    Where where;
    if (of.kind == TaskKind::kCompute) {
      where = {Where::Kind::kPass, of.device, passed[of.device]++};
    } else if (of.kind == TaskKind::kTransfer) {
      const int vs = program.placement().virtual_stage(static_cast<int>(of.device), of.chunk);
      where = {Where::Kind::kMessage, of.device, ids.message(of.pass, vs, unit)};
    } else if (of.kind == TaskKind::kBarrier) {
      where = {Where::Kind::kBarrier, static_cast<std::uint32_t>(of.barrier), unit};
    } else if (of.kind == TaskKind::kCopyOut || of.kind == TaskKind::kCopyIn) {
      const bool out = of.kind == TaskKind::kCopyOut;
      const auto link = static_cast<std::uint32_t>(links[of.device]);
      where = {Where::Kind::kCopy, link, copied[link][out ? 0 : 1]++, out};
    }
    places.push_back(where);
  }
  return places;
}

Durations durations_of(const ExecutionPlan& plan, Pace pace) {
  const Program& program = *plan.program;
  Durations durations;
  durations.messages.assign(2UL * program.placement().virtual_stages() * program.shape().units(),
                            0);
  durations.passes.resize(program.placement().devices());
  durations.barriers.resize(program.shape().units());
  durations.copies.resize(program.placement().devices());  // one has a link at most
  const auto places = places_of(*plan.graph, program);
  for (TaskId task = 0; task < plan.graph->size(); ++task) {
    const Where& where = places[task];
    const double seconds = pace == Pace::kTimed ? plan.seconds[task] : 0;
    if (where.kind == Where::Kind::kPass) {
      durations.passes[where.row].push_back(seconds);
    } else if (where.kind == Where::Kind::kMessage) {
      durations.messages[where.number] = seconds;
    } else if (where.kind == Where::Kind::kBarrier) {
      durations.barriers[where.number][static_cast<Barrier>(where.row)] = seconds;
    } else if (where.kind == Where::Kind::kCopy) {
      durations.copies[where.row][where.out ? 0 : 1].push_back(seconds);
    }
  }
  return durations;
}

double mean_pass_of(const TaskGraph& graph) {
  double sum = 0;
  double passes = 0;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const TaskClass& of = graph.task_class(task);
    if (of.kind != TaskKind::kCompute) continue;
    sum += of.seconds.value();
    passes += 1;
  }
  return sum / std::max(1.0, passes);
}

void simulate(ExecutionPlan& plan, double mean_pass) {
  const TaskGraph& graph = *plan.graph;
  const double mean = mean_pass_of(graph);
  plan.scale = mean_pass > 0 && mean > 0 ? mean_pass / mean : 1;
  for (TaskId task = 0; task < graph.size(); ++task) {
    plan.seconds.push_back(plan.scale * graph.task_class(task).seconds.value());
  }
  plan.timeline = make_replay_engine()->run(graph, Cluster{}, plan.seconds);
  for (TaskId task = 0; task < graph.size(); ++task) {
    if (graph.task_class(task).kind == TaskKind::kCompute) {
      plan.simulated = std::max(plan.simulated, plan.timeline.end[task]);
    }
  }
  for (const TaskId task : critical_path(graph, plan.timeline)) {
    if (plan.seconds[task] > 0) ++plan.waits;
  }
}

// One iteration as it is before what closes it.
BuildOptions options_of(const Case& made) {
  if (made.stream) {
    throw InfeasibleError(made.label + ": iterations that run into each other are not executed");
  }
  BuildOptions options = graph_options(made, 1);
  options.sync = OptimizerSync::kNone;
  options.collective = options.optimizer = Seconds(0);
  options.optimizer_of_device.clear();
  options.gradients_of_device.clear();
  options.contending_copies.reset();
  return options;
}

// When tasks ran, by what devices recorded; a collective ends its time after the last of its parts.
class Measured {
 public:
  Measured(const ExecutionPlan& plan, std::span<const DeviceRecord> records)
      : plan_(plan), graph_(*plan.graph), places_(places_of(graph_, *plan.program)) {
    spans_.assign(graph_.size(), {-1, -1});
    const std::size_t messages =
        2UL * plan.program->placement().virtual_stages() * plan.program->shape().units();
    std::vector<DeviceRecord::Span> left(messages, {-1, -1});
    for (const DeviceRecord& record : records) {
      for (const auto& [message, span] : record.messages) left.at(message) = span;
    }
    std::vector<std::array<std::size_t, kLanes>> next(records.size());
    for (TaskId task = 0; task < graph_.size(); ++task) {
      const TaskClass& of = graph_.task_class(task);
      const Where& where = places_[task];
      if (where.kind == Where::Kind::kPass) {
        const auto item = plan.scripts[of.device].item_of_position[where.number];
        spans_[task] = records[of.device].items[0][item];
      } else if (where.kind == Where::Kind::kMessage) {
        spans_[task] = left[where.number];
      } else if (where.kind == Where::Kind::kCopy) {
        const auto lane = static_cast<std::size_t>(where.out ? Lane::kCopyOut : Lane::kCopyIn);
        spans_[task] = records[of.device].items[lane].at(next[of.device][lane]++);
      } else if (where.kind == Where::Kind::kBarrier) {
        spans_[task] = after_all(task);
      }
    }
  }

  [[nodiscard]] std::string disorder() const {
    for (TaskId task = 0; task < graph_.size(); ++task) {
      if (places_[task].kind == Where::Kind::kNone) continue;
      if (spans_[task].start < 0) return graph_.name(task) + " did not run";
      for (const TaskId other : graph_.waits_for(task)) {
        if (places_[other].kind == Where::Kind::kNone) continue;
        const double early = spans_[other].end - spans_[task].start;
        if (early > 0) {
          return fmt::format("{} started {:.3g} ms before the end of {}", graph_.name(task),
                             1e3 * early, graph_.name(other));
        }
      }
    }
    return "";
  }

 private:
  [[nodiscard]] DeviceRecord::Span after_all(TaskId task) const {
    double start = 0;
    for (const TaskId other : graph_.waits_for(task)) start = std::max(start, spans_[other].end);
    return {start, start + plan_.seconds[task]};
  }

  const ExecutionPlan& plan_;
  const TaskGraph& graph_;
  std::vector<Where> places_;
  std::vector<DeviceRecord::Span> spans_;
};

}  // namespace

ExecutionPlan plan_execution(const Case& made, Pace pace, double mean_pass, bool torch) {
  ExecutionPlan plan;
  plan.program = make_program(made);
  plan.graph = std::make_unique<TaskGraph>(build_task_graph(
      plan.program, made.problem, {ranks_of(*made.scenario).front()}, options_of(made)));
  simulate(plan, pace == Pace::kTimed ? mean_pass : 0);
  plan.semantics = semantics_of(made, torch);
  plan.scripts = scripts_of(*plan.program, durations_of(plan, pace), plan.semantics, made);
  return plan;
}

std::string disorder_of(const ExecutionPlan& plan, std::span<const DeviceRecord> records) {
  return Measured(plan, records).disorder();
}

}  // namespace pipesim::runtime
