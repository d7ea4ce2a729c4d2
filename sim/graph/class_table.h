// The classes of one pipeline's tasks: each is made when a task of it first comes.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/grid.h"
#include "sim/graph/build_options.h"
#include "sim/graph/task_graph.h"
#include "sim/pipeline/problem.h"

namespace pipesim {

// Makes classes, numbers included. Keeps references to all that it is given.
class ClassMaker {
 public:
  ClassMaker(const Program& program, const Problem& problem, const std::vector<int>& ranks,
             const BuildOptions& options, std::uint32_t pipeline)
      : program_(program),
        problem_(problem),
        ranks_(ranks),
        options_(options),
        pipeline_(pipeline) {}

  [[nodiscard]] TaskClass made(const ClassOrigin& origin) const;

 private:
  [[nodiscard]] TaskClass made_compute(int device, const Pass& pass) const;
  [[nodiscard]] TaskClass made_transfer(bool forward, int from, int to, std::uint32_t unit) const;
  [[nodiscard]] TaskClass made_barrier(Barrier barrier, std::uint32_t unit) const;
  [[nodiscard]] TaskClass made_copy(const Copy& copy, bool out) const;
  [[nodiscard]] TaskClass closing(int device, Seconds seconds) const;
  [[nodiscard]] TaskClass joining(Seconds seconds) const;
  [[nodiscard]] TaskClass on_device(TaskKind kind, int device) const;

  [[nodiscard]] std::uint32_t number(int device) const;  // among the devices of all pipelines
  [[nodiscard]] int rank(int device) const { return ranks_[device]; }
  [[nodiscard]] double slowdown(int device) const {
    return options_.slowdown_of_rank.empty() ? 1.0 : options_.slowdown_of_rank[rank(device)];
  }

  const Program& program_;
  const Problem& problem_;
  const std::vector<int>& ranks_;
  const BuildOptions& options_;
  std::uint32_t pipeline_;
};

// Adds to the classes of `parts`; keeps references to all that it is given. Every question is O(1).
//
// A class serves many tasks where units cost alike. Where more than half of the units differ it
// serves one task, and the next class overwrites it unless classes are kept.
class ClassTable {
 public:
  ClassTable(TaskGraph::Parts& parts, const Program& program, const Problem& problem,
             const std::vector<int>& ranks, const BuildOptions& options, std::uint32_t pipeline,
             bool keeps);

  std::uint32_t compute(int device, const Pass& pass) {
    if (replaces_) return replace({.of = Of::kPass, .device = device, .pass = pass});
    const bool block = pass.kind == PassKind::kFB;
    const Pass& forward = block ? program_.pair(pass).forward : pass;
    const int vs = program_.placement().virtual_stage(device, forward.chunk);
    std::uint32_t& known = block ? overlapped(vs, pass)
                                 : compute_(row(vs, pass.microbatch), static_cast<int>(pass.kind));
    if (known == kNoClass) known = add({.of = Of::kPass, .device = device, .pass = pass});
    return known;
  }
  std::uint32_t transfer(bool forward, int from, int to, std::uint32_t unit) {
    const ClassOrigin origin{
        .of = Of::kMessage, .from = from, .to = to, .forward = forward, .unit = unit};
    if (replaces_) return replace(origin);
    std::uint32_t& known = transfer_(row(from, unit), forward ? 0 : 1);
    if (known == kNoClass) known = add(origin);
    return known;
  }
  std::uint32_t barrier(Barrier barrier, std::uint32_t unit);
  std::uint32_t copy(const Copy& copy, bool out);

  // Each call adds a class of its own. One device has its optimizer step and its work on gradients,
  // all devices the join of an iteration and the reduction.
  std::uint32_t optimizer(int device) { return add({.of = Of::kOptimizer, .device = device}); }
  std::uint32_t gradients(int device) { return add({.of = Of::kGradients, .device = device}); }
  std::uint32_t join() { return add({.of = Of::kJoin}); }
  std::uint32_t reduction() { return add({.of = Of::kReduction}); }

 private:
  using Of = ClassOrigin::Of;
  static constexpr std::uint32_t kNoClass = 0xffffffff;

  // Row of a stage and the unit's kind; where all units cost alike there is one kind.
  [[nodiscard]] int row(int vs, std::uint32_t unit) const {
    if (problem_.kinds.empty()) return vs;
    return static_cast<int>(problem_.kind(unit)) * program_.placement().virtual_stages() + vs;
  }
  // Where units differ every block is a class of its own.
  std::uint32_t& overlapped(int vs, const Pass& block) {
    if (!problem_.kinds.empty()) return overlapped_(static_cast<int>(block.microbatch), 0);
    const Pass& backward = program_.pair(block).backward;
    return overlapped_(vs, backward.chunk * kPassKinds + static_cast<int>(backward.kind));
  }
  std::uint32_t add(ClassOrigin origin);
  std::uint32_t replace(const ClassOrigin& origin) {
    parts_.classes[replaced_] = maker_.made(origin);
    return replaced_;
  }

  TaskGraph::Parts& parts_;
  const Program& program_;
  const Problem& problem_;
  const BuildOptions& options_;
  std::uint32_t pipeline_;
  ClassMaker maker_;
  bool replaces_;
  std::uint32_t replaced_ = kNoClass;  // where it does
  Grid<std::uint32_t> compute_;        // by row and kind of pass
  Grid<std::uint32_t> transfer_;       // by row of the sending stage; forward and backward
  Grid<std::uint32_t> barrier_;        // by kind of unit and barrier
  Grid<std::uint32_t> copy_;           // by row; out and back, among others and alone
  // By stage of the forward, and chunk of the backward; where units differ by block.
  Grid<std::uint32_t> overlapped_;
};

}  // namespace pipesim
