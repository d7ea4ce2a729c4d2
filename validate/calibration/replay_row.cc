#include "validate/calibration/replay_row.h"

#include <algorithm>
#include <deque>
#include <fmt/format.h>

#include "sim/core/error.h"

namespace pipesim::calibration {
namespace {

constexpr std::uint32_t kNone = Exchange::kNone;

bool is_copy(TaskKind kind) { return kind == TaskKind::kCopyOut || kind == TaskKind::kCopyIn; }

Lane lane_of(TaskKind kind) {
  if (kind == TaskKind::kCompute) return Lane::kCompute;
  return kind == TaskKind::kCopyOut ? Lane::kCopyOut : Lane::kCopyIn;
}

// Cuts what the actions of one activation acquire and release, first in first out, into blocks.
class Activation {
 public:
  void acquire(const Row& row, double bytes) {
    if (bytes > 0) open_.push_back({action_number(row), bytes});
  }
  void release(Row& row, Action& action, double bytes) {
    // Less than half a byte is rounding of sums, not memory.
    constexpr double kNothing = 0.5;
    while (bytes > kNothing) {
      if (open_.empty()) throw LogicError(action.name + " releases memory that nobody acquired");
      Part& part = open_.front();
      const double taken = part.bytes - bytes > kNothing ? bytes : part.bytes;
      const auto block = static_cast<std::uint32_t>(row.blocks.size());
      row.blocks.push_back(taken);
      (part.by == action_number(row) ? action : row.actions[part.by]).acquires.push_back(block);
      action.releases.push_back(block);
      bytes -= taken;
      part.bytes -= taken;
      if (part.bytes <= 0) open_.pop_front();
    }
  }

 private:
  struct Part {
    std::uint32_t by = 0;
    double bytes = 0;
  };
  // The number of the next action.
  static std::uint32_t action_number(const Row& row) {
    return static_cast<std::uint32_t>(row.actions.size());
  }

  std::deque<Part> open_;
};

class RowBuilder {
 public:
  RowBuilder(const Result& result, const std::vector<StageContent>& stages, int device,
             Exchange* exchange)
      : exchange_(exchange),
        graph_(*result.graph),
        timeline_(result.timeline),
        stages_(stages),
        device_(static_cast<std::uint32_t>(device)),
        iteration_(graph_.iterations() / 2),
        local_(graph_.size(), kNone) {
    const Shape& shape = graph_.pipelines().front().program->shape();
    units_ = static_cast<std::size_t>(shape.units());
    activations_.resize(static_cast<std::size_t>(shape.chunks) * units_);
    row_.device = device;
  }

  Row build() {
    std::vector<TaskId> tasks;
    for (TaskId task = 0; task < graph_.size(); ++task) {
      if (mine(task)) tasks.push_back(task);
    }
    // A host's order: copies between the passes beside which they run.
    std::ranges::stable_sort(tasks, {}, [this](TaskId task) { return timeline_.start[task]; });
    row_.origin = tasks.empty() ? 0 : timeline_.start[tasks.front()];
    for (const TaskId task : tasks) add(task);
    return std::move(row_);
  }

 private:
  [[nodiscard]] bool replayed(TaskId task) const {
    const TaskClass& of = graph_.task_class(task);
    return (of.kind == TaskKind::kCompute || is_copy(of.kind)) && of.pipeline == 0 &&
           graph_.iteration(task) == iteration_;
  }
  [[nodiscard]] bool mine(TaskId task) const {
    return graph_.task_class(task).device == device_ && replayed(task);
  }
  // True for messages of this iteration, whose passes are replayed too.
  [[nodiscard]] bool sent(TaskId task) const {
    const TaskClass& of = graph_.task_class(task);
    return of.kind == TaskKind::kTransfer && of.pipeline == 0 &&
           graph_.iteration(task) == iteration_;
  }

  void add(TaskId task) {
    const TaskClass& of = graph_.task_class(task);
    Action action;
    action.work = device_work(of, *graph_.pipelines().front().program, stages_);
    action.lane = lane_of(of.kind);
    action.name = graph_.name(task);
    action.start = timeline_.start[task];
    action.end = timeline_.end[task];
    // Exactly what the engine added, where it is that: equal times then stay equal.
    action.seconds = action.start + of.seconds.value() == action.end ? of.seconds.value()
                                                                     : action.end - action.start;
    add_waits(task, action);
    const auto unit = static_cast<std::size_t>(graph_.microbatch(task));
    Activation& activation = activations_[of.chunk * units_ + unit];
    // A B that keeps more for its W than its F had left releases less than nothing.
    const double released = of.released.value();
    activation.acquire(row_, of.acquired.value() + std::max(0.0, -released));
    activation.release(row_, action, released);
    local_[task] = static_cast<std::uint32_t>(row_.actions.size());
    if (exchange_ != nullptr) exchange_->action_of[task] = local_[task];
    row_.actions.push_back(std::move(action));
  }

  void add_waits(TaskId task, Action& action) {
    action.arrival = row_.origin;
    for (const TaskId other : graph_.waits_for(task)) {
      const std::uint32_t local = local_[other];
      if (local == kNone && exchange_ != nullptr && (sent(other) || replayed(other))) {
        action.messages.push_back(exchange_->message(other));
      } else if (local == kNone) {
        action.arrival = std::max(action.arrival, timeline_.end[other]);
      } else if (row_.actions[local].lane != action.lane) {
        action.waits_for.push_back(local);
      }
    }
  }

  Exchange* exchange_;  // null: all that others do is an arrival
  const TaskGraph& graph_;
  const Timeline& timeline_;
  const std::vector<StageContent>& stages_;
  std::uint32_t device_;
  int iteration_;
  std::size_t units_ = 0;
  std::vector<std::uint32_t> local_;  // number in the row, by task
  std::vector<Activation> activations_;
  Row row_;
};

}  // namespace

std::uint32_t Exchange::message(TaskId task) {
  std::uint32_t& number = message_of[task];
  if (number == kNone) {
    number = static_cast<std::uint32_t>(tasks.size());
    tasks.push_back(task);
  }
  return number;
}

std::vector<StageContent> stage_contents(const Case& made) {
  std::vector<StageContent> contents;
  if (!made.layout) return contents;
  for (const StageLayers& stage : made.layout->stages) {
    contents.push_back({stage.layers, stage.output});
  }
  return contents;
}

DeviceWork device_work(const TaskClass& task, const Program& program,
                       const std::vector<StageContent>& stages) {
  DeviceWork work;
  work.task = task.kind;
  if (task.kind == TaskKind::kCompute) {
    if (task.pass == PassKind::kFB || is_vocabulary(task.pass)) {
      throw InfeasibleError(
          fmt::format("{} passes cannot be replayed, only F, B, W, BW and R", to_text(task.pass)));
    }
    work.pass = task.pass;
    const Placement& place = program.placement();
    const auto position = static_cast<int>(task.device) % place.devices();
    const int stage = place.model_stage(place.virtual_stage(position, task.chunk));
    if (!stages.empty()) work.stage = stages.at(static_cast<std::size_t>(stage));
  } else {
    work.bytes = task.kind == TaskKind::kCopyOut ? task.released.value() : task.acquired.value();
  }
  return work;
}

Row row_of(const Result& result, const std::vector<StageContent>& stages, int device) {
  const int devices = result.program->shape().devices;
  if (device < 0 || device >= devices) {
    throw InfeasibleError(fmt::format("there is no device {}, only 0 to {}", device, devices - 1));
  }
  return RowBuilder(result, stages, device, nullptr).build();
}

Row row_of(const Result& result, const std::vector<StageContent>& stages, int device,
           Exchange& exchange) {
  exchange.message_of.resize(result.graph->size(), kNone);
  exchange.action_of.resize(result.graph->size(), kNone);
  return RowBuilder(result, stages, device, &exchange).build();
}

}  // namespace pipesim::calibration
