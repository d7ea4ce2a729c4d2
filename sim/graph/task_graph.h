// The tasks of one or more pipelines over one or more iterations, and what each of them waits for.
//
// Tasks are numbered in a topological order. A task comes after all that it waits for, and the
// compute tasks of one device come in program order. An edge leads from a task to one that it waits
// for. The edges of a task are adjacent (program order first), as compressed rows of Boost.Graph,
// whose algorithms run on them (boost_rows.h). Device, pass kind, duration and bytes that tasks
// share are stored once, in a TaskClass. A task costs 8 bytes, 4 for its row and 4 per edge.
// Immutable after `build_task_graph` (build.h), except for its numbers (renumber.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/core/units.h"
#include "sim/pipeline/program.h"

namespace pipesim {

enum class TaskKind : std::uint8_t {
  kCompute,     // a pass on a device's compute stream
  kTransfer,    // a message between two devices
  kCollective,  // of all devices at the end of an iteration; starts when all are ready
  kOptimizer,   // the optimizer step on a device's compute stream
  kBarrier,     // a collective of a sharded vocabulary, among a pipeline's devices, beside compute
  kCopyOut,     // an activation on its way to the host, on a device's copy stream
  kCopyIn,      // and back
};

// True if such a task takes nothing of a device's compute stream.
constexpr bool is_beside_compute(TaskKind kind) {
  return kind == TaskKind::kTransfer || kind == TaskKind::kBarrier || kind == TaskKind::kCopyOut ||
         kind == TaskKind::kCopyIn;
}

using TaskId = std::uint32_t;

struct TaskClass {
  TaskKind kind = TaskKind::kCompute;
  PassKind pass = PassKind::kF;  // of a transfer: kF carries activations, kB gradients
  Barrier barrier = Barrier::kEmbedding;
  std::uint32_t pipeline = 0;
  std::uint32_t device = 0;      // pipeline * devices + position; of a transfer: the sender
  std::uint32_t receiver = 0;    // of a transfer, numbered alike
  std::uint16_t chunk = 0;       // of an overlapped block: of its forward
  std::uint16_t chunk_back = 0;  // of an overlapped block: of its backward; else `chunk`
  Seconds seconds;               // alone and undisturbed; of a transfer: latency included
  Seconds latency;               // of a transfer
  Bytes acquired;                // activations, at the start
  Bytes released;                // activations, at the end
};

// The source of a class's numbers (class_table.h).
struct ClassOrigin {
  enum class Of : std::uint8_t {
    kPass,
    kMessage,
    kBarrier,
    kCopy,
    kOptimizer,
    kGradients,
    kJoin,       // of all devices at the end of an iteration, at no cost
    kReduction,  // the same with the collective
  };
  Of of = Of::kJoin;
  std::uint32_t pipeline = 0;
  int device = 0;  // of a pass, an optimizer step or gradients: position in the pipeline
  Pass pass = {};  // one of them
  int from = 0;    // virtual stages of a message
  int to = 0;
  bool forward = false;    // of a message; of a copy: out
  std::uint32_t unit = 0;  // of a message and a barrier: one of those that cost alike
  Barrier barrier = Barrier::kEmbedding;
  Copy copy = {};
};

// One pipeline as it was put into the graph.
struct PipelineInstance {
  std::shared_ptr<const Program> program;
  std::vector<int> rank_of_device;  // position in the cluster of each device
};

class TaskGraph {
 public:
  struct Rows;  // boost_rows.h

  struct Parts {
    std::vector<TaskClass> classes;
    std::vector<ClassOrigin> origins;  // of each class; none where units cost unequally
    std::vector<std::uint32_t> class_of;
    std::vector<std::uint32_t>
        number;                      // iteration * units (or pairs, of FB) + microbatch (or pair)
    std::vector<std::uint32_t> row;  // begin of each task's edges, and the end of the last
    std::vector<TaskId> waits_for;
    std::vector<PipelineInstance> pipelines;
    int iterations = 1;
    // Units of one iteration, where the programs hold those of all iterations; 0 where each program
    // repeats.
    std::uint32_t units = 0;
  };
  explicit TaskGraph(Parts parts);

  [[nodiscard]] size_t size() const { return class_of_.size(); }
  [[nodiscard]] const std::vector<TaskClass>& classes() const { return classes_; }
  [[nodiscard]] std::span<const std::uint32_t> class_of() const { return class_of_; }
  [[nodiscard]] const TaskClass& task_class(TaskId task) const { return classes_[class_of_[task]]; }
  [[nodiscard]] std::span<const TaskId> waits_for(TaskId task) const {
    return edges_.subspan(row_starts_[task], row_starts_[task + 1] - row_starts_[task]);
  }
  [[nodiscard]] std::span<const std::uint32_t> row_starts() const { return row_starts_; }
  [[nodiscard]] std::span<const TaskId> edges() const { return edges_; }
  [[nodiscard]] const Rows& rows() const { return *rows_; }

  [[nodiscard]] const std::vector<PipelineInstance>& pipelines() const { return pipelines_; }
  [[nodiscard]] int iterations() const { return iterations_; }
  // True if an iteration begins while passes of the one before it are in flight.
  [[nodiscard]] bool streams() const { return units_ != 0; }
  [[nodiscard]] int devices() const;  // of all pipelines
  [[nodiscard]] int rank(std::uint32_t device) const;

  // By device the host link that its copies go over, numbered over all pipelines, whose links are
  // their own. Empty without copies.
  [[nodiscard]] std::vector<int> host_links() const;

  [[nodiscard]] int iteration(TaskId task) const;
  // The unit (see Shape::units) that the task works on; of an overlapped block: of its forward.
  [[nodiscard]] int microbatch(TaskId task) const;
  // The pass of a compute task, as it stands in its program.
  [[nodiscard]] Pass pass(TaskId task) const;
  // "3F2", "3F2 -> device 4", "optimizer of device 1": for messages and traces.
  [[nodiscard]] std::string name(TaskId task) const;

  [[nodiscard]] const std::vector<ClassOrigin>& origins() const { return origins_; }
  // Replaces the classes: the same number, for the same tasks, with other seconds and bytes.
  void set_classes(std::vector<TaskClass> classes);

  // Bytes that the graph's arrays occupy.
  [[nodiscard]] size_t resident_bytes() const;

 private:
  void set_rows(std::vector<std::uint32_t> row, std::vector<TaskId> waits_for);  // boost_rows.cc
  [[nodiscard]] const Program& program(const TaskClass& task) const {
    return *pipelines_[task.pipeline].program;
  }
  [[nodiscard]] std::uint32_t numbers_per_iteration(const TaskClass& task) const;

  std::vector<TaskClass> classes_;
  std::vector<ClassOrigin> origins_;
  std::vector<std::uint32_t> class_of_;
  std::vector<std::uint32_t> number_;
  std::shared_ptr<const Rows> rows_;  // never changed: copies of the graph share them
  std::span<const std::uint32_t> row_starts_;
  std::span<const TaskId> edges_;
  std::vector<PipelineInstance> pipelines_;
  int iterations_;
  std::uint32_t units_;
};

}  // namespace pipesim
