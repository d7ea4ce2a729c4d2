#include "validate/calibration/replay_pipeline.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace pipesim::calibration {
namespace {

// Adds the actions and messages of the transfer's own iteration that it waits for.
void add_waits(const TaskGraph& graph, TaskId transfer, Exchange& exchange, Message& message) {
  for (const TaskId other : graph.waits_for(transfer)) {
    if (const std::uint32_t action = exchange.action_of[other]; action != Exchange::kNone) {
      message.after.push_back({graph.task_class(other).device, action});
    } else if (graph.task_class(other).kind == TaskKind::kTransfer &&
               graph.iteration(other) == graph.iteration(transfer)) {
      message.messages.push_back(exchange.message(other));
    }
  }
}

Message message_of(const Result& result, TaskId task, Exchange& exchange, Bytes bytes) {
  const TaskGraph& graph = *result.graph;
  const TaskClass& of = graph.task_class(task);
  Message message;
  message.name = graph.name(task);
  message.from = message.to = of.device;
  if (of.kind == TaskKind::kTransfer) {
    message.to = of.receiver;
    message.bytes = bytes.value();
    message.seconds = result.timeline.end[task] - result.timeline.start[task];
    add_waits(graph, task, exchange, message);
  } else {
    message.after.push_back({of.device, exchange.action_of[task]});
  }
  return message;
}

// By when they start, and where they start together in the graph's own topological order.
std::vector<Step> order_of(const Result& result, const Exchange& exchange) {
  struct Started {
    double start = 0;
    TaskId task = 0;
    bool signal = false;  // comes after the action that it says is over
    Step step;
  };
  const TaskGraph& graph = *result.graph;
  const Timeline& timeline = result.timeline;
  std::vector<Started> all;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const double start = timeline.start[task];
    if (const std::uint32_t action = exchange.action_of[task]; action != Exchange::kNone) {
      all.push_back({start, task, false, {false, graph.task_class(task).device, action}});
    }
    if (const std::uint32_t message = exchange.message_of[task]; message != Exchange::kNone) {
      all.push_back({start, task, true, {true, 0, message}});
    }
  }
  std::ranges::sort(all, [](const Started& a, const Started& b) {
    return std::tie(a.start, a.task, a.signal) < std::tie(b.start, b.task, b.signal);
  });
  std::vector<Step> order;
  order.reserve(all.size());
  for (const Started& each : all) order.push_back(each.step);
  return order;
}

double longest(const ExecutedPipeline& executed) {
  double longest = 0;
  for (const Executed& row : executed.rows) {
    if (row.end.empty()) continue;
    longest = std::max(longest, std::ranges::max(row.end) - std::ranges::min(row.start));
  }
  return longest;
}

}  // namespace

PipelineRows rows_of(const Result& result, const std::vector<StageContent>& stages, Bytes message) {
  PipelineRows made;
  Exchange exchange;
  for (int device = 0; device < result.program->shape().devices; ++device) {
    made.rows.push_back(row_of(result, stages, device, exchange));
  }
  const double origin = std::ranges::min(made.rows, {}, &Row::origin).origin;
  for (Row& row : made.rows) row.origin = origin;
  for (std::size_t i = 0; i < exchange.tasks.size(); ++i) {  // which meets more
    made.messages.push_back(message_of(result, exchange.tasks[i], exchange, message));
  }
  made.order = order_of(result, exchange);
  return made;
}

ExecutedPipeline replay(const PipelineRows& rows, ReplayPipeline& pipeline) {
  std::vector<RowFeeder> feeders;
  feeders.reserve(rows.rows.size());
  for (const Row& row : rows.rows) feeders.emplace_back(row, Arrivals::kSent);
  pipeline.begin(rows);
  for (const Step& step : rows.order) {
    if (step.sends) {
      pipeline.send(step.number);
      continue;
    }
    const Action& action = rows.rows[step.device].actions[step.number];
    for (const std::uint32_t message : action.messages) {
      pipeline.receive(message, step.device, action.lane);
    }
    feeders[step.device].feed(step.number, pipeline.device(step.device));
  }
  return pipeline.finish();
}

std::vector<Comparison> compare(const PipelineRows& rows, const ExecutedPipeline& measured) {
  std::vector<Comparison> comparisons;
  for (std::size_t device = 0; device < rows.rows.size(); ++device) {
    comparisons.push_back(compare(rows.rows[device], Arrivals::kSent, measured.rows[device]));
    Comparison::Line line{"mean message", "s", 0, 0};
    double received = 0;
    for (std::size_t number = 0; number < rows.messages.size(); ++number) {
      const Message& message = rows.messages[number];
      if (message.to != device || message.bytes <= 0) continue;
      received += 1;
      line.simulated += message.seconds;
      line.measured += measured.messages[number];
    }
    if (received == 0) continue;
    line.simulated /= received;
    line.measured /= received;
    comparisons.back().lines.push_back(std::move(line));
  }
  return comparisons;
}

std::vector<Comparison> replay_and_compare(const PipelineRows& rows, int runs,
                                           ReplayPipeline& pipeline) {
  (void)replay(rows, pipeline);
  std::vector<std::pair<double, ExecutedPipeline>> executed;
  for (int run = 0; run < runs; ++run) {
    ExecutedPipeline one = replay(rows, pipeline);
    const double total = longest(one);
    executed.emplace_back(total, std::move(one));
  }
  const auto middle = executed.begin() + (runs - 1) / 2;
  std::ranges::nth_element(executed, middle, {}, &std::pair<double, ExecutedPipeline>::first);
  return compare(rows, middle->second);
}

}  // namespace pipesim::calibration
