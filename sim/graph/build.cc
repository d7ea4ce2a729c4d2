#include "sim/graph/build.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "sim/core/error.h"
#include "sim/execution/comm_batches.h"
#include "sim/execution/evaluate.h"
#include "sim/execution/walk.h"

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
        stages_(program.placement().virtual_stages()),
        chunks_(program.placement().chunks()),
        compute_(stages_ * kPassKinds, kNoClass),
        transfer_(stages_ * 2, kNoClass),
        barrier_class_(kBarriers, kNoClass),
        copy_(program.copies() == nullptr ? 0 : stages_ * 4, kNoClass),
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

  std::uint32_t barrier(Barrier barrier) {
    std::uint32_t& known = barrier_class_[static_cast<size_t>(barrier)];
    if (known != kNoClass) return known;
    TaskClass made = on_device(TaskKind::kBarrier, 0);
    made.barrier = barrier;
    made.seconds = problem_.barriers[static_cast<size_t>(barrier)];
    return known = add(made);
  }

  std::uint32_t copy(const Copy& copy, bool out) {
    const auto device = static_cast<int>(copy.device);
    const auto vs = static_cast<size_t>(program_.placement().virtual_stage(device, copy.chunk));
    const bool planned = !options_.contending_copies.has_value();
    std::uint32_t& known = copy_[vs * 4 + (out ? 0 : 2) + (planned && copy.alone ? 1 : 0)];
    if (known != kNoClass) return known;
    TaskClass made = on_device(out ? TaskKind::kCopyOut : TaskKind::kCopyIn, device);
    made.chunk = copy.chunk;
    made.seconds = planned ? copy_seconds(problem_, program_, copy, out)
                           : *options_.contending_copies *
                                 (out ? problem_.stages[vs].copy_out : problem_.stages[vs].copy_in);
    const Pass forward = make_pass(PassKind::kF, static_cast<int>(copy.unit), copy.chunk);
    const Bytes bytes = pass_bytes(problem_, program_, device, forward).acquired;
    (out ? made.released : made.acquired) = bytes;
    return known = add(made);
  }

  std::uint32_t optimizer(int device) {
    const auto& each = options_.optimizer_of_device;
    return closing(device, each.empty() ? options_.optimizer : each[device]);
  }
  // Counts as the optimizer's work too.
  std::uint32_t gradients(int device) {
    return closing(device, options_.gradients_of_device[device]);
  }

 private:
  [[nodiscard]] std::uint32_t base() const {
    return pipeline_ * static_cast<std::uint32_t>(program_.placement().devices());
  }
  std::uint32_t closing(int device, Seconds seconds) {
    TaskClass made = on_device(TaskKind::kOptimizer, device);
    made.seconds = seconds * slowdown(device);
    return add(made);
  }
  [[nodiscard]] int rank(int device) const { return ranks_[device]; }
  [[nodiscard]] double slowdown(int device) const {
    return options_.slowdown_of_rank.empty() ? 1.0 : options_.slowdown_of_rank[rank(device)];
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
  std::vector<std::uint32_t> barrier_class_;
  std::vector<std::uint32_t> copy_;  // by virtual stage, direction, and whether alone
  std::vector<std::uint32_t> overlapped_;
};

constexpr TaskId kNoTask = std::numeric_limits<TaskId>::max();

// The latest copy out, and back, of those that go one after the other: over a host link, or of a
// device.
using LinkTasks = std::array<TaskId, 2>;

// Appends the tasks of one pipeline and iteration, in the order of the walk.
class TaskVisitor {
 public:
  using Value = TaskId;
  static constexpr Value kNotYet = kNoTask;
  static constexpr Value kNothing = kNoTask - 1;

  TaskVisitor(TaskGraph::Parts& parts, ClassTable& classes, std::span<TaskId> last_of_device,
              std::span<LinkTasks> last_of_link, const Program& program, int iteration,
              bool copies_contend = false)
      : parts_(parts),
        classes_(classes),
        last_(last_of_device),
        last_of_link_(last_of_link),
        copies_(program.copies()),
        copies_contend_(copies_contend),
        place_(program.placement()),
        first_unit_(static_cast<std::uint32_t>(iteration * program.shape().units())),
        first_pair_(static_cast<std::uint32_t>(iteration) *
                    static_cast<std::uint32_t>(program.pairs().size())) {}

  Value run(int device, const Pass& pass, Value input, Value gradient) {
    follow(device);
    parts_.waits_for.insert(parts_.waits_for.end(), awaited_.begin(), awaited_.end());
    awaited_.clear();
    if (input < kNothing) parts_.waits_for.push_back(input);
    if (gradient < kNothing) parts_.waits_for.push_back(gradient);
    return add(device, pass);
  }
  // A pass that waits for `held` besides the one before it.
  void run(int device, const Pass& pass, std::span<const TaskId> held) {
    follow(device);
    parts_.waits_for.insert(parts_.waits_for.end(), held.begin(), held.end());
    add(device, pass);
  }

  Value deliver(Value result, PassKind kind, int from, int to, std::uint32_t unit) {
    // Within a device the program order is the dependency, and handing over is free.
    if (to < 0 || place_.device(from) == place_.device(to)) return kNothing;
    parts_.waits_for.push_back(result);
    return transfer(kind == PassKind::kF, from, to, unit);
  }

  Value join(Barrier barrier, std::uint32_t unit, std::span<const Value> results) {
    const auto row = static_cast<std::ptrdiff_t>(parts_.waits_for.size());
    for (const Value result : results) {
      const auto begin = parts_.waits_for.begin() + row;
      const bool there = std::find(begin, parts_.waits_for.end(), result) != parts_.waits_for.end();
      if (result < kNothing && !there) parts_.waits_for.push_back(result);
    }
    return close(classes_.barrier(barrier), first_unit_ + unit);
  }
  [[nodiscard]] Value last(int device) const {
    const TaskId last = last_[device];
    return last == kNoTask ? kNothing : last;
  }
  void hold(int device, Value until) { last_[device] = until; }

  void await(int /*device*/, Value task) { awaited_.push_back(task); }
  Value copy(const Copy& copy, bool out, Value a, Value b) {
    const size_t link = copies_contend_ ? copy.device : copies_->link_of(copy.device);
    TaskId& last = last_of_link_[link][out ? 0 : 1];
    if (last != kNoTask) parts_.waits_for.push_back(last);
    parts_.waits_for.push_back(a);
    if (b != a) parts_.waits_for.push_back(b);
    return last = close(classes_.copy(copy, out), first_unit_ + copy.unit);
  }

  // A message that waits for the edges that have been appended.
  TaskId transfer(bool forward, int from, int to, std::uint32_t unit) {
    return close(classes_.transfer(forward, from, to), first_unit_ + unit);
  }

 private:
  void follow(int device) {
    const TaskId last = last_[device];
    if (last != kNoTask) parts_.waits_for.push_back(last);
  }
  TaskId add(int device, const Pass& pass) {
    const std::uint32_t first = pass.kind == PassKind::kFB ? first_pair_ : first_unit_;
    return last_[device] = close(classes_.compute(device, pass), first + pass.microbatch);
  }
  // Ends the row of a task whose edges have been appended.
  TaskId close(std::uint32_t task_class, std::uint32_t number) {
    parts_.class_of.push_back(task_class);
    parts_.number.push_back(number);
    parts_.row.push_back(static_cast<std::uint32_t>(parts_.waits_for.size()));
    return static_cast<TaskId>(parts_.class_of.size() - 1);
  }

  TaskGraph::Parts& parts_;
  ClassTable& classes_;
  std::span<TaskId> last_;
  std::span<LinkTasks> last_of_link_;
  const CopyPlan* copies_;
  bool copies_contend_;
  std::vector<TaskId> awaited_;  // by the next pass
  const Placement& place_;
  std::uint32_t first_unit_;
  std::uint32_t first_pair_;
};

// As TaskVisitor, where a device goes on only when all messages of its batch have arrived: they
// wait for what both their devices did last, and what the device does next waits for them.
class BatchVisitor {
 public:
  BatchVisitor(TaskGraph::Parts& parts, ClassTable& classes, std::span<TaskId> last_of_device,
               std::span<std::vector<TaskId>> held, const Program& program, int iteration)
      : parts_(parts),
        last_(last_of_device),
        held_(held),
        open_(held.size()),
        place_(program.placement()),
        tasks_(parts, classes, last_of_device, {}, program, iteration) {}

  void run(int device, const Pass& pass) {
    std::vector<TaskId>& held = held_[device];
    tasks_.run(device, pass, held);
    held.clear();
  }

  void send(const Message& message) {
    const auto sender = static_cast<size_t>(place_.device(message.from));
    const auto receiver = static_cast<size_t>(place_.device(message.to));
    wait_for_device(sender);
    wait_for_device(receiver);
    const TaskId sent = tasks_.transfer(message.forward, message.from, message.to, message.unit);
    open_[sender].push_back(sent);
    open_[receiver].push_back(sent);
  }

  void release(int device) {
    const auto d = static_cast<size_t>(device);
    held_[d].clear();
    std::swap(held_[d], open_[d]);
  }

 private:
  // What the device did last: the messages of its last batch, one of which may be the other
  // device's too, or else a pass.
  void wait_for_device(size_t device) {
    const auto add = [this](TaskId task) {
      const auto begin = parts_.waits_for.begin() + parts_.row.back();
      if (std::find(begin, parts_.waits_for.end(), task) == parts_.waits_for.end()) {
        parts_.waits_for.push_back(task);
      }
    };
    for (const TaskId task : held_[device]) add(task);
    if (held_[device].empty() && last_[device] != kNoTask) add(last_[device]);
  }

  TaskGraph::Parts& parts_;
  std::span<TaskId> last_;
  std::span<std::vector<TaskId>> held_;    // by device: the messages of its last batch
  std::vector<std::vector<TaskId>> open_;  // and of the one that it waits for
  const Placement& place_;
  TaskVisitor tasks_;
};

class GraphBuilder {
 public:
  GraphBuilder(const std::shared_ptr<const Program>& program, const Problem& problem,
               const std::vector<std::vector<int>>& ranks, const BuildOptions& options)
      : program_(*program),
        options_(options),
        devices_(program->shape().devices),
        last_(devices_ * ranks.size(), kNoTask),
        held_(last_.size()),
        links_(links_of(*program, options)),
        last_of_link_(links_ * ranks.size(), {kNoTask, kNoTask}) {
    if (options.blocking && program->copies() != nullptr) {
      throw InfeasibleError(
          "blocking transfers are not known beside copies to the host: framework.transfers must be "
          "overlapped");
    }
    if (options.blocking && is_sharded(program->vocabulary())) {
      throw InfeasibleError(
          "blocking transfers are not known for a sharded vocabulary, whose frameworks send beside "
          "compute: framework.transfers must be overlapped");
    }
    if (options.blocking) batches_.emplace(*program, *options.blocking);
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
        if (batches_) {
          const std::span<std::vector<TaskId>> held(held_.data() + i * devices_, devices_);
          BatchVisitor visitor(parts_, tables_[i], last, held, program_, iteration);
          walk_batches(program_, *batches_, visitor);
        } else {
          const std::span<LinkTasks> links(last_of_link_.data() + i * links_, links_);
          TaskVisitor visitor(parts_, tables_[i], last, links, program_, iteration,
                              options_.contending_copies.has_value());
          walk(program_, visitor);
        }
      }
      close_iteration(iteration);
    }
    return TaskGraph(std::move(parts_));
  }

 private:
  static size_t links_of(const Program& program, const BuildOptions& options) {
    if (program.copies() == nullptr) return 0;
    return options.contending_copies ? static_cast<size_t>(program.placement().devices())
                                     : program.copies()->links.size();
  }

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
        static_cast<size_t>(options_.iterations) * (2 * last_.size() + 2) * tables_.size();
    // At most a rendezvous for each vocabulary pass and a collective after it, one before S and IB.
    const auto units = static_cast<size_t>(program_.shape().units());
    const size_t joins = is_sharded(program_.vocabulary()) ? 9 * units : 0;
    // A copy waits for the one before it and two more, one pass for it and a gated one too.
    size_t to_host = 0;
    if (const CopyPlan* plan = program_.copies()) {
      for (const LinkCopies& link : plan->links) to_host += link.out.size() + link.in.size();
    }
    const size_t tasks = copies * (program_.size() + messages + joins + to_host) + closing;
    const size_t edges = copies * (program_.size() + (batches_ ? 4 : 2) * messages +
                                   3 * joins * (devices_ + 1) + 5 * to_host) +
                         4 * closing;
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
    const bool steps = options_.optimizer > Seconds(0) || !options_.optimizer_of_device.empty();
    for (size_t i = 0; i < last_.size(); ++i) {
      ClassTable& table = tables_[i / devices_];
      const int device = static_cast<int>(i % devices_);
      if (steps || replicas) optimizer_.push_back(table.optimizer(device));
      if (!options_.gradients_of_device.empty()) gradients_.push_back(table.gradients(device));
    }
  }

  void close_iteration(int iteration) {
    const bool all = options_.sync == OptimizerSync::kAllReduce;
    if (options_.sync != OptimizerSync::kNone && !gradients_.empty()) step(gradients_, iteration);
    if (all && options_.collective > Seconds(0)) synchronise(reduction_, iteration);
    if (options_.sync != OptimizerSync::kNone && !optimizer_.empty()) step(optimizer_, iteration);
    if (options_.sync != OptimizerSync::kPostValidation) synchronise(barrier_, iteration);
  }

  // The optimizer steps. Without a reduction that joined all devices, a device still waits for its
  // replicas, with which it shares the gradients: the same position of every pipeline.
  void step(const std::vector<std::uint32_t>& classes, int iteration) {
    const std::vector<TaskId> ended = last_;
    const bool joined = options_.sync == OptimizerSync::kAllReduce;
    for (size_t i = 0; i < last_.size(); ++i) {
      for (size_t replica = joined ? i : i % devices_; replica < last_.size();
           replica += devices_) {
        parts_.waits_for.push_back(ended[replica]);
        wait_for_all(held_[replica]);
        if (joined) break;
      }
      last_[i] = close(classes[i], iteration);
    }
    for (auto& held : held_) held.clear();
  }

  // One task that waits for the last one of every device, and that every next one waits for.
  void synchronise(std::uint32_t task_class, int iteration) {
    std::vector<TaskId> waited = last_;
    for (auto& held : held_) {
      waited.insert(waited.end(), held.begin(), held.end());
      held.clear();
    }
    std::ranges::sort(waited);
    waited.erase(std::unique(waited.begin(), waited.end()), waited.end());
    wait_for_all(waited);
    std::ranges::fill(last_, close(task_class, iteration));
  }

  void wait_for_all(const std::vector<TaskId>& waited) {
    parts_.waits_for.insert(parts_.waits_for.end(), waited.begin(), waited.end());
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
  // Blocking transfers that hold it since.
  std::vector<std::vector<TaskId>> held_;
  size_t links_;  // to hosts, of a pipeline; or its devices, where copies contend
  std::vector<LinkTasks> last_of_link_;
  std::optional<CommBatches> batches_;
  TaskGraph::Parts parts_;
  std::vector<ClassTable> tables_;
  std::vector<std::uint32_t> optimizer_;
  std::vector<std::uint32_t> gradients_;
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
  std::vector<int> ranks(program->shape().devices);
  std::iota(ranks.begin(), ranks.end(), 0);
  return build_task_graph(program, problem, {ranks}, options);
}

}  // namespace pipesim
