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
    std::uint32_t& known = block ? overlapped_(vs, program_.pair(pass).backward.chunk)
                                 : compute_(vs, static_cast<int>(pass.kind));
    if (known == kNoClass) known = add(made_compute(device, pass));
    return known;
  }
  std::uint32_t transfer(bool forward, int from, int to) {
    std::uint32_t& known = transfer_(from, forward ? 0 : 1);
    if (known == kNoClass) known = add(made_transfer(forward, from, to));
    return known;
  }
  std::uint32_t barrier(Barrier barrier);
  std::uint32_t copy(const Copy& copy, bool out);

  // A class of its own with every call.
  std::uint32_t optimizer(int device);
  // What a device does with its gradients; counts as the optimizer's work too.
  std::uint32_t gradients(int device);

 private:
  static constexpr std::uint32_t kNoClass = 0xffffffff;

  [[nodiscard]] TaskClass made_compute(int device, const Pass& pass) const;
  [[nodiscard]] TaskClass made_transfer(bool forward, int from, int to) const;
  [[nodiscard]] TaskClass made_copy(const Copy& copy, bool out) const;
  std::uint32_t closing(int device, Seconds seconds);
  [[nodiscard]] TaskClass on_device(TaskKind kind, int device) const;
  std::uint32_t add(const TaskClass& made);

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
  Grid<std::uint32_t> compute_;   // by virtual stage and kind of pass
  Grid<std::uint32_t> transfer_;  // by sending stage; forward and backward
  EnumArray<Barrier, std::uint32_t> barrier_{};
  Grid<std::uint32_t> copy_;        // by virtual stage; out and back, among others and alone
  Grid<std::uint32_t> overlapped_;  // by stage of the forward, and chunk of the backward
};

}  // namespace pipesim
