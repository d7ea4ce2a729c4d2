// The tasks of one or more pipelines over their iterations, each after all its inputs. Graphs are
// written from this stream (build.h), and runs without a graph go through it
// (sim/engine/replay_program.h).
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/core/error.h"
#include "sim/execution/comm_batches.h"
#include "sim/execution/walk.h"
#include "sim/graph/class_table.h"
#include "sim/graph/renumber.h"
#include "sim/graph/task_visitors.h"

namespace pipesim {

// `parts` gets classes and pipelines; tasks go to `rows` (task_visitors.h). Both, and all else that
// it is given, must outlive it.
template <class Rows>
class TaskStream {
 public:
  TaskStream(TaskGraph::Parts& parts, Rows& rows, const std::shared_ptr<const Program>& program,
             const Problem& problem, const std::vector<std::vector<int>>& ranks,
             const BuildOptions& options)
      : program_(*program),
        options_(options),
        devices_(program->shape().devices),
        last_(devices_ * ranks.size(), Rows::kNothing),
        held_(last_.size()),
        links_(links_of(*program, options)),
        last_of_link_(links_ * ranks.size(), {Rows::kNothing, Rows::kNothing}),
        parts_(parts),
        rows_(rows) {
    if (options.blocking) {
      refuse_blocking(program_);
      batches_.emplace(program_, *options.blocking);
    }
    parts_.iterations = options.iterations;
    parts_.pipelines.reserve(ranks.size());  // the tables keep references into it
    for (size_t i = 0; i < ranks.size(); ++i) {
      parts_.pipelines.push_back({program, ranks[i]});
      tables_.emplace_back(parts_, program_, problem, parts_.pipelines[i].rank_of_device, options_,
                           static_cast<std::uint32_t>(i), Rows::kKeepsClasses);
    }
    reserve(problem);
  }

  void run() {
    make_closing_classes();
    if (options_.stream) return add_stream();
    for (int iteration = 0; iteration < options_.iterations; ++iteration) {
      for (size_t i = 0; i < tables_.size(); ++i) add_pipeline(i, iteration);
      close_iteration(iteration);
    }
  }

 private:
  using Task = typename Rows::Task;

  static void refuse_blocking(const Program& program) {
    if (program.copies() != nullptr) {
      throw InfeasibleError(
          "blocking transfers are not known beside copies to the host: framework.transfers must be "
          "overlapped");
    }
    if (is_sharded(program.vocabulary())) {
      throw InfeasibleError(
          "blocking transfers are not known for a sharded vocabulary, whose frameworks send beside "
          "compute: framework.transfers must be overlapped");
    }
  }

  void add_pipeline(size_t i, int iteration) {
    const std::span<Task> last(last_.data() + i * devices_, devices_);
    if (batches_) {
      const std::span<std::vector<Task>> held(held_.data() + i * devices_, devices_);
      BatchVisitor<Rows> visitor(rows_, tables_[i], last, held, program_, iteration);
      walk_batches(program_, *batches_, visitor);
    } else {
      const std::span<LinkTasks<Rows>> links(last_of_link_.data() + i * links_, links_);
      TaskVisitor<Rows> visitor(rows_, tables_[i], last, links, program_, iteration,
                                options_.contending_copies.has_value());
      walk(program_, visitor);
    }
  }

  // One pipeline, once: its program has all iterations.
  void add_stream() {
    if (batches_ || program_.copies() != nullptr || tables_.size() > 1 ||
        program_.shape().chunks > 1) {
      throw LogicError("a stream of iterations beside blocking transfers, copies or replicas");
    }
    parts_.units = options_.stream->units;
    std::vector<std::vector<std::uint32_t>> steps(devices_);
    for (size_t d = 0; d < devices_; ++d) {
      if (!gradients_.empty()) steps[d].push_back(gradients_[d]);
      if (!optimizer_.empty()) steps[d].push_back(optimizer_[d]);
    }
    TaskVisitor<Rows> tasks(rows_, tables_.front(), std::span(last_), {}, program_, 0);
    StreamVisitor<Rows> visitor(tasks, *options_.stream, std::move(steps));
    walk(program_, visitor);
  }

  static size_t links_of(const Program& program, const BuildOptions& options) {
    if (program.copies() == nullptr) return 0;
    if (options.contending_copies) return program.placement().devices();
    return program.copies()->links.size();
  }

  // Exact sizes: the arrays of a large graph must not be copied while they grow.
  void reserve(const Problem& problem) {
    const size_t iterations = options_.stream ? 1 : options_.iterations;
    const size_t copies = tables_.size() * iterations;
    const size_t steps = options_.stream ? units() / options_.stream->units_per_step : 1;
    const size_t closing = (2 * last_.size() * steps + 2) * copies;
    const size_t sent = messages();
    // At most a rendezvous for each vocabulary pass and a collective after it, one before S and IB.
    const size_t joins = is_sharded(program_.vocabulary()) ? 9 * units() : 0;
    // A copy waits for the one before it and two more, one pass for it and a gated one too.
    size_t to_host = 0;
    if (const CopyPlan* plan = program_.copies()) {
      for (const LinkCopies& link : plan->links) to_host += link.out.size() + link.in.size();
    }
    const size_t tasks = copies * (program_.size() + sent + joins + to_host) + closing;
    const size_t edges = copies * (program_.size() + (batches_ ? 4 : 2) * sent +
                                   3 * joins * (devices_ + 1) + 5 * to_host) +
                         4 * closing;
    rows_.reserve(tasks, edges);
    if (!Rows::kKeepsClasses || problem.kinds.empty()) return;
    // At most three passes and two messages of a stage and unit, and the barriers; blocks are few.
    const size_t most = problem.kinds.size() * (5 * problem.stages.size() + kBarriers);
    parts_.classes.reserve(std::min(tasks, tables_.size() * most + closing));
  }

  [[nodiscard]] size_t units() const { return program_.shape().units(); }

  // Messages of one iteration, forward and backward.
  [[nodiscard]] size_t messages() const {
    const Placement& place = program_.placement();
    const int units = program_.shape().units();
    size_t messages = 0;
    for (int vs = 0; vs < place.virtual_stages(); ++vs) {
      const StagePass next = target_of(place, {PassKind::kF, vs});
      if (place.device(vs) == place.device(next.vs)) continue;
      messages += 2 * (place.end_unit(vs, units) - place.first_unit(vs, units));
    }
    return messages;
  }

  void make_closing_classes() {
    barrier_ = tables_.front().join();
    reduction_ = tables_.front().reduction();
    const bool replicas = options_.sync == OptimizerSync::kPostValidation && tables_.size() > 1;
    const bool steps = structure_of(options_).steps;
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

  // The optimizer steps. Without a reduction that joined all devices, a device still waits for the
  // replicas with which it shares the gradients. They stand at the same position of every pipeline.
  void step(const std::vector<std::uint32_t>& classes, int iteration) {
    const std::vector<Task> ended = last_;
    const bool joined = options_.sync == OptimizerSync::kAllReduce;
    for (size_t i = 0; i < last_.size(); ++i) {
      for (size_t replica = joined ? i : i % devices_; replica < last_.size();
           replica += devices_) {
        rows_.wait_for(ended[replica]);
        rows_.wait_for_all(held_[replica]);
        if (joined) break;
      }
      last_[i] = rows_.close(classes[i], static_cast<std::uint32_t>(iteration));
    }
    for (auto& held : held_) held.clear();
  }

  // One task that waits for the last one of every device, and that every next one waits for.
  void synchronise(std::uint32_t task_class, int iteration) {
    std::vector<Task> waited = last_;
    for (auto& held : held_) {
      waited.insert(waited.end(), held.begin(), held.end());
      held.clear();
    }
    std::ranges::sort(waited);
    waited.erase(std::unique(waited.begin(), waited.end()), waited.end());
    rows_.wait_for_all(waited);
    std::ranges::fill(last_, rows_.close(task_class, static_cast<std::uint32_t>(iteration)));
  }

  const Program& program_;
  const BuildOptions& options_;
  size_t devices_;
  std::vector<Task> last_;  // the latest task on each device's compute stream
  // Blocking transfers that hold it since.
  std::vector<std::vector<Task>> held_;
  size_t links_;  // to hosts, of a pipeline; or its devices, where copies contend
  std::vector<LinkTasks<Rows>> last_of_link_;
  std::optional<CommBatches> batches_;
  TaskGraph::Parts& parts_;
  Rows& rows_;
  std::vector<ClassTable> tables_;
  std::vector<std::uint32_t> optimizer_;
  std::vector<std::uint32_t> gradients_;
  std::uint32_t barrier_ = 0;
  std::uint32_t reduction_ = 0;
};

}  // namespace pipesim
