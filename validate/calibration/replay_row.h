// One device's row of a simulated schedule, as actions that a device can execute.
//
// A row holds the passes of one iteration and the copies of their activations. Every action comes
// after its inputs. Work of other devices (messages, collectives, their copies over the same host
// link) becomes an arrival time. Memory becomes blocks: one action acquires each when it starts,
// and one releases it when it ends. Times are seconds of the result. Errors: InfeasibleError for
// passes that cannot be replayed (overlapped blocks, sharded vocabularies). O(tasks).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/case/simulate.h"
#include "sim/scenario/scenario.h"

namespace pipesim::calibration {

// The parts of a stage that kernels run for.
struct StageContent {
  int layers = 0;
  bool output = false;  // the logits and the loss
  friend bool operator==(const StageContent&, const StageContent&) = default;
};

// Timed work of a device, independent of its place in a row.
struct DeviceWork {
  TaskKind task = TaskKind::kCompute;  // or a copy
  PassKind pass = PassKind::kF;
  StageContent stage;
  double bytes = 0;  // of a copy
  friend bool operator==(const DeviceWork&, const DeviceWork&) = default;
};

// Streams of a device; what is on one runs in order.
enum class Lane : std::uint8_t { kCompute, kCopyOut, kCopyIn };
inline constexpr std::size_t kLanes = 3;

struct Action {
  DeviceWork work;
  Lane lane = Lane::kCompute;
  std::string name;    // as traces have it
  double seconds = 0;  // simulated
  double start = 0;    // simulated, as `end`
  double end = 0;
  double arrival = 0;  // of the last thing that other devices do for it; Row::origin: nothing
  std::vector<std::uint32_t> messages;   // of a whole pipeline's that it waits for
  std::vector<std::uint32_t> waits_for;  // actions of other lanes
  std::vector<std::uint32_t> acquires;   // blocks
  std::vector<std::uint32_t> releases;
};

struct Row {
  std::string schedule;
  int device = 0;
  double origin = 0;  // the start of the first action
  std::vector<Action> actions;
  std::vector<double> blocks;  // bytes
};

// By model stage; empty where the scenario has no model.
[[nodiscard]] std::vector<StageContent> stage_contents(const Case& made);

// The row of a device of the first pipeline in the iteration that reports are about.
[[nodiscard]] Row row_of(const Result& result, const std::vector<StageContent>& stages, int device);

// Rows of one simulation that are replayed beside each other: what their tasks do for another row
// is no arrival but a message, numbered in the order in which rows meet it.
struct Exchange {
  static constexpr std::uint32_t kNone = 0xffffffff;
  // The task's message, which is made where it is met first.
  std::uint32_t message(TaskId task);

  std::vector<TaskId> tasks;              // of the messages
  std::vector<std::uint32_t> message_of;  // by task, kNone for all that are none
  std::vector<std::uint32_t> action_of;   // by task, in its device's row
};
[[nodiscard]] Row row_of(const Result& result, const std::vector<StageContent>& stages, int device,
                         Exchange& exchange);

// The work of a task of the graph that is a pass or a copy.
[[nodiscard]] DeviceWork device_work(const TaskClass& task, const Program& program,
                                     const std::vector<StageContent>& stages);

}  // namespace pipesim::calibration
