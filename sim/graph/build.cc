#include "sim/graph/build.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "sim/core/error.h"
#include "sim/pipeline/evaluate.h"
#include "sim/pipeline/walk.h"

namespace pipesim {
namespace {

constexpr std::uint32_t kNoClass = std::numeric_limits<std::uint32_t>::max();

// Everything that one pipeline's tasks look up, by virtual stage.
class ClassTable {
 public:
  ClassTable(std::vector<TaskClass>& classes, const Program& program, const Problem& problem,
             const std::vector<int>& ranks, const BuildOptions& options, std::uint32_t pipeline)
      : classes_(classes),
        program_(program),
        problem_(problem),
        ranks_(ranks),
        options_(options),
        pipeline_(pipeline),
        stages_(static_cast<size_t>(program.placement().virtual_stages())),
        chunks_(static_cast<size_t>(program.placement().chunks())),
        compute_(stages_ * kPassKinds, kNoClass),
        transfer_(stages_ * 2, kNoClass),
        overlapped_(program.pairs().empty() ? 0 : stages_ * chunks_, kNoClass) {}

  std::uint32_t compute(int device, const Pass& pass) {
    const Placement& place = program_.placement();
    const bool block = pass.kind == PassKind::kFB;
    const Pass& forward = block ? program_.pair(pass).forward : pass;
    const auto vs = static_cast<size_t>(place.virtual_stage(device, forward.chunk));
    const std::uint16_t back = block ? program_.pair(pass).backward.chunk : std::uint16_t{0};
    std::uint32_t& known = block ? overlapped_[vs * chunks_ + back]
                                 : compute_[vs * kPassKinds + static_cast<size_t>(pass.kind)];
    if (known != kNoClass) return known;
    TaskClass made = on_device(TaskKind::kCompute, device);
    made.pass = pass.kind;
    made.chunk = forward.chunk;
    made.chunk_back = back;
    made.seconds = pass_seconds(problem_, program_, device, pass) * slowdown(device);
    const PassBytes bytes = pass_bytes(problem_, program_, device, pass);
    made.acquired = bytes.acquired;
    made.released = bytes.released;
    return known = add(made);
  }

  std::uint32_t transfer(bool forward, int from, int to) {
    std::uint32_t& known = transfer_[static_cast<size_t>(from) * 2 + (forward ? 0 : 1)];
    if (known != kNoClass) return known;
    const Placement& place = program_.placement();
    TaskClass made = on_device(TaskKind::kTransfer, place.device(from));
    made.pass = forward ? PassKind::kF : PassKind::kB;
    made.chunk = static_cast<std::uint16_t>(place.chunk(from));
    made.receiver = base() + static_cast<std::uint32_t>(place.device(to));
    if (options_.message) {
      const MessageCost cost =
          options_.message(from, to, rank(place.device(from)), rank(place.device(to)));
      made.seconds = cost.seconds;
      made.latency = cost.latency;
    } else {
      made.seconds = problem_.stage(forward ? from : to).transfer;
    }
    return known = add(made);
  }

  std::uint32_t optimizer(int device) {
    TaskClass made = on_device(TaskKind::kOptimizer, device);
    made.seconds = options_.optimizer * slowdown(device);
    return add(made);
  }

 private:
  [[nodiscard]] std::uint32_t base() const {
    return pipeline_ * static_cast<std::uint32_t>(program_.placement().devices());
  }
  [[nodiscard]] int rank(int device) const { return ranks_[static_cast<size_t>(device)]; }
  [[nodiscard]] double slowdown(int device) const {
    return options_.slowdown_of_rank.empty()
               ? 1.0
               : options_.slowdown_of_rank[static_cast<size_t>(rank(device))];
  }
  [[nodiscard]] TaskClass on_device(TaskKind kind, int device) const {
    TaskClass made;
    made.kind = kind;
    made.pipeline = pipeline_;
    made.device = base() + static_cast<std::uint32_t>(device);
    return made;
  }
  std::uint32_t add(const TaskClass& made) {
    classes_.push_back(made);
    return static_cast<std::uint32_t>(classes_.size() - 1);
  }

  std::vector<TaskClass>& classes_;
  const Program& program_;
  const Problem& problem_;
  const std::vector<int>& ranks_;
  const BuildOptions& options_;
  std::uint32_t pipeline_;
  size_t stages_;
  size_t chunks_;
  std::vector<std::uint32_t> compute_;
  std::vector<std::uint32_t> transfer_;
  std::vector<std::uint32_t> overlapped_;
};

constexpr TaskId kNoTask = std::numeric_limits<TaskId>::max();

// Appends the tasks of one pipeline and iteration, in the order of the walk.
class TaskVisitor {
 public:
  using Value = TaskId;
  static constexpr Value kNotYet = kNoTask;
  static constexpr Value kNothing = kNoTask - 1;

  TaskVisitor(TaskGraph::Parts& parts, ClassTable& classes, std::span<TaskId> last_of_device,
              const Program& program, int iteration)
      : parts_(parts),
        classes_(classes),
        last_(last_of_device),
        place_(program.placement()),
        first_unit_(static_cast<std::uint32_t>(iteration * program.shape().units())),
        first_pair_(static_cast<std::uint32_t>(iteration) *
                    static_cast<std::uint32_t>(program.pairs().size())) {}

  Value run(int device, const Pass& pass, Value input, Value gradient) {
    TaskId& last = last_[static_cast<size_t>(device)];
    if (last != kNoTask) parts_.waits_for.push_back(last);
    if (input < kNothing) parts_.waits_for.push_back(input);
    if (gradient < kNothing) parts_.waits_for.push_back(gradient);
    const std::uint32_t first = pass.kind == PassKind::kFB ? first_pair_ : first_unit_;
    return last = close(classes_.compute(device, pass), first + pass.microbatch);
  }

  Value deliver(Value result, PassKind kind, int from, int to, std::uint32_t unit) {
    // Within a device the program order is the dependency, and handing over is free.
    if (to < 0 || place_.device(from) == place_.device(to)) return kNothing;
    parts_.waits_for.push_back(result);
    return close(classes_.transfer(kind == PassKind::kF, from, to), first_unit_ + unit);
  }

  // Ends the row of a task whose edges have been appended.
  TaskId close(std::uint32_t task_class, std::uint32_t number) {
    parts_.class_of.push_back(task_class);
    parts_.number.push_back(number);
    parts_.row.push_back(static_cast<std::uint32_t>(parts_.waits_for.size()));
    return static_cast<TaskId>(parts_.class_of.size() - 1);
  }

 private:
  TaskGraph::Parts& parts_;
  ClassTable& classes_;
  std::span<TaskId> last_;
  const Placement& place_;
  std::uint32_t first_unit_;
  std::uint32_t first_pair_;
};

class GraphBuilder {
 public:
  GraphBuilder(const std::shared_ptr<const Program>& program, const Problem& problem,
               const std::vector<std::vector<int>>& ranks, const BuildOptions& options)
      : program_(*program),
        options_(options),
        devices_(static_cast<size_t>(program->shape().devices)),
        last_(devices_ * ranks.size(), kNoTask) {
    parts_.iterations = options.iterations;
    parts_.row.push_back(0);
    parts_.pipelines.reserve(ranks.size());  // the tables keep references into it
    for (size_t i = 0; i < ranks.size(); ++i) {
      parts_.pipelines.push_back({program, ranks[i]});
      tables_.emplace_back(parts_.classes, program_, problem, parts_.pipelines[i].rank_of_device,
                           options_, static_cast<std::uint32_t>(i));
    }
    reserve();
  }

  TaskGraph build() && {
    make_closing_classes();
    for (int iteration = 0; iteration < options_.iterations; ++iteration) {
      for (size_t i = 0; i < tables_.size(); ++i) {
        const std::span<TaskId> last(last_.data() + i * devices_, devices_);
        TaskVisitor visitor(parts_, tables_[i], last, program_, iteration);
        walk(program_, visitor);
      }
      close_iteration(iteration);
    }
    return TaskGraph(std::move(parts_));
  }

 private:
  // Exact sizes: the arrays of a large graph must not be copied while they grow.
  void reserve() {
    const Placement& place = program_.placement();
    size_t messages = 0;
    for (int vs = 0; vs < place.virtual_stages(); ++vs) {
      const int down = place.downstream(vs);
      if (down < 0 || place.device(vs) == place.device(down)) continue;
      const int units = program_.shape().units();
      messages += 2 * static_cast<size_t>(place.end_unit(vs, units) - place.first_unit(vs, units));
    }
    const size_t copies = tables_.size() * static_cast<size_t>(options_.iterations);
    const size_t closing =
        static_cast<size_t>(options_.iterations) * (last_.size() + 2) * tables_.size();
    const size_t tasks = copies * (program_.size() + messages) + closing;
    const size_t edges = copies * (program_.size() + 2 * messages) + 4 * closing;
    if (edges >= kNoTask - 1)
      throw InfeasibleError("more than 2^32 dependencies: too large to simulate");
    parts_.class_of.reserve(tasks);
    parts_.number.reserve(tasks);
    parts_.row.reserve(tasks + 1);
    parts_.waits_for.reserve(edges);
  }

  void make_closing_classes() {
    TaskClass barrier;
    barrier.kind = TaskKind::kCollective;
    barrier_ = static_cast<std::uint32_t>(parts_.classes.size());
    parts_.classes.push_back(barrier);
    TaskClass reduction = barrier;
    reduction.seconds = options_.collective;
    reduction_ = static_cast<std::uint32_t>(parts_.classes.size());
    parts_.classes.push_back(reduction);
    const bool replicas = options_.sync == OptimizerSync::kPostValidation && tables_.size() > 1;
    if (options_.optimizer > Seconds(0) || replicas) {
      for (size_t i = 0; i < last_.size(); ++i) {
        optimizer_.push_back(tables_[i / devices_].optimizer(static_cast<int>(i % devices_)));
      }
    }
  }

  void close_iteration(int iteration) {
    const bool all = options_.sync == OptimizerSync::kAllReduce;
    if (all && options_.collective > Seconds(0)) synchronise(reduction_, iteration);
    if (!optimizer_.empty() && options_.sync != OptimizerSync::kNone) step(iteration);
    if (options_.sync != OptimizerSync::kPostValidation) synchronise(barrier_, iteration);
  }

  // The optimizer steps. Without a reduction that joined all devices, a device still waits for its
  // replicas, with which it shares the gradients: the same position of every pipeline.
  void step(int iteration) {
    const std::vector<TaskId> ended = last_;
    const bool joined = options_.sync == OptimizerSync::kAllReduce;
    for (size_t i = 0; i < last_.size(); ++i) {
      for (size_t replica = joined ? i : i % devices_; replica < last_.size();
           replica += devices_) {
        parts_.waits_for.push_back(ended[replica]);
        if (joined) break;
      }
      last_[i] = close(optimizer_[i], iteration);
    }
  }

  // One task that waits for the last one of every device, and that every next one waits for.
  void synchronise(std::uint32_t task_class, int iteration) {
    std::vector<TaskId> waited = last_;
    std::ranges::sort(waited);
    waited.erase(std::unique(waited.begin(), waited.end()), waited.end());
    parts_.waits_for.insert(parts_.waits_for.end(), waited.begin(), waited.end());
    std::ranges::fill(last_, close(task_class, iteration));
  }

  TaskId close(std::uint32_t task_class, int iteration) {
    parts_.class_of.push_back(task_class);
    parts_.number.push_back(static_cast<std::uint32_t>(iteration));
    parts_.row.push_back(static_cast<std::uint32_t>(parts_.waits_for.size()));
    return static_cast<TaskId>(parts_.class_of.size() - 1);
  }

  const Program& program_;
  const BuildOptions& options_;
  size_t devices_;
  std::vector<TaskId> last_;  // the latest task on each device's compute stream
  TaskGraph::Parts parts_;
  std::vector<ClassTable> tables_;
  std::vector<std::uint32_t> optimizer_;
  std::uint32_t barrier_ = 0;
  std::uint32_t reduction_ = 0;
};

}  // namespace

TaskGraph build_task_graph(const std::shared_ptr<const Program>& program, const Problem& problem,
                           const std::vector<std::vector<int>>& ranks,
                           const BuildOptions& options) {
  return GraphBuilder(program, problem, ranks, options).build();
}

TaskGraph build_task_graph(const std::shared_ptr<const Program>& program, const Problem& problem,
                           const BuildOptions& options) {
  std::vector<int> ranks(static_cast<size_t>(program->shape().devices));
  std::iota(ranks.begin(), ranks.end(), 0);
  return build_task_graph(program, problem, {ranks}, options);
}

}  // namespace pipesim
