// The classes of one pipeline's tasks: each is made when a task of it first comes.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/enum_array.h"
#include "sim/core/grid.h"
#include "sim/graph/build_options.h"
#include "sim/graph/task_graph.h"
#include "sim/pipeline/problem.h"

namespace pipesim {

// Adds to `classes`; keeps references to all that it is given. Every question is O(1).
class ClassTable {
 public:
  ClassTable(std::vector<TaskClass>& classes, const Program& program, const Problem& problem,
             const std::vector<int>& ranks, const BuildOptions& options, std::uint32_t pipeline);

  std::uint32_t compute(int device, const Pass& pass) {
    const bool block = pass.kind == PassKind::kFB;
    const Pass& forward = block ? program_.pair(pass).forward : pass;
    const int vs = program_.placement().virtual_stage(device, forward.chunk);
    std::uint32_t& known = block ? overlapped(vs, pass)
                                 : compute_(row(vs, pass.microbatch), static_cast<int>(pass.kind));
    if (known == kNoClass) known = add(made_compute(device, pass));
    return known;
  }
  std::uint32_t transfer(bool forward, int from, int to, std::uint32_t unit) {
    std::uint32_t& known = transfer_(row(from, unit), forward ? 0 : 1);
    if (known == kNoClass) known = add(made_transfer(forward, from, to, unit));
    return known;
  }
  std::uint32_t barrier(Barrier barrier, std::uint32_t unit);
  std::uint32_t copy(const Copy& copy, bool out);

  // A class of its own with every call.
  std::uint32_t optimizer(int device);
  // What a device does with its gradients; counts as the optimizer's work too.
  std::uint32_t gradients(int device);

 private:
  static constexpr std::uint32_t kNoClass = 0xffffffff;

  [[nodiscard]] TaskClass made_compute(int device, const Pass& pass) const;
  [[nodiscard]] TaskClass made_transfer(bool forward, int from, int to, std::uint32_t unit) const;
  [[nodiscard]] TaskClass made_copy(const Copy& copy, bool out) const;
  std::uint32_t closing(int device, Seconds seconds);
  [[nodiscard]] TaskClass on_device(TaskKind kind, int device) const;
  std::uint32_t add(const TaskClass& made);

  // Of a stage and the unit's kind; where all units cost alike there is one kind.
  [[nodiscard]] int row(int vs, std::uint32_t unit) const {
    if (problem_.kinds.empty()) return vs;
    return static_cast<int>(problem_.kind(unit)) * program_.placement().virtual_stages() + vs;
  }
  // Where units differ every block is a class of its own.
  std::uint32_t& overlapped(int vs, const Pass& block) {
    if (!problem_.kinds.empty()) return overlapped_(static_cast<int>(block.microbatch), 0);
    return overlapped_(vs, program_.pair(block).backward.chunk);
  }

  [[nodiscard]] std::uint32_t number(int device) const;  // among the devices of all pipelines
  [[nodiscard]] int rank(int device) const { return ranks_[device]; }
  [[nodiscard]] double slowdown(int device) const {
    return options_.slowdown_of_rank.empty() ? 1.0 : options_.slowdown_of_rank[rank(device)];
  }

  std::vector<TaskClass>& classes_;
  const Program& program_;
  const Problem& problem_;
  const std::vector<int>& ranks_;
  const BuildOptions& options_;
  std::uint32_t pipeline_;
  Grid<std::uint32_t> compute_;   // by row and kind of pass
  Grid<std::uint32_t> transfer_;  // by row of the sending stage; forward and backward
  Grid<std::uint32_t> barrier_;   // by kind of unit and barrier
  Grid<std::uint32_t> copy_;      // by row; out and back, among others and alone
  // By stage of the forward, and chunk of the backward; where units differ by block.
  Grid<std::uint32_t> overlapped_;
};

}  // namespace pipesim
