#include "sim/graph/class_table.h"

#include <algorithm>

#include "sim/execution/evaluate.h"

namespace pipesim {
namespace {

size_t kinds_of(const Problem& problem) { return std::max<size_t>(1, problem.kinds.size()); }

size_t rows_of(const Program& program, const Problem& problem) {
  return kinds_of(problem) * static_cast<size_t>(program.placement().virtual_stages());
}

bool most_differ(const Problem& problem) {
  return 2 * problem.kinds.size() > problem.kind_of_unit.size();
}

}  // namespace

TaskClass ClassMaker::made(const ClassOrigin& origin) const {
  const auto& step_of_device = options_.optimizer_of_device;
  switch (origin.of) {
    case ClassOrigin::Of::kPass:
      return made_compute(origin.device, origin.pass);
    case ClassOrigin::Of::kMessage:
      return made_transfer(origin.forward, origin.from, origin.to, origin.unit);
    case ClassOrigin::Of::kBarrier:
      return made_barrier(origin.barrier, origin.unit);
    case ClassOrigin::Of::kCopy:
      return made_copy(origin.copy, origin.forward);
    case ClassOrigin::Of::kOptimizer:
      return closing(origin.device,
                     step_of_device.empty() ? options_.optimizer : step_of_device[origin.device]);
    case ClassOrigin::Of::kGradients:
      return closing(origin.device, options_.gradients_of_device[origin.device]);
    case ClassOrigin::Of::kReduction:
      return joining(options_.collective);
    case ClassOrigin::Of::kJoin:
      break;
  }
  return joining(Seconds(0));
}

TaskClass ClassMaker::made_compute(int device, const Pass& pass) const {
  const bool block = pass.kind == PassKind::kFB;
  TaskClass made = on_device(TaskKind::kCompute, device);
  made.pass = pass.kind;
  made.chunk = block ? program_.pair(pass).forward.chunk : pass.chunk;
  made.chunk_back = block ? program_.pair(pass).backward.chunk : pass.chunk;
  made.seconds = pass_seconds(problem_, program_, device, pass) * slowdown(device);
  const PassBytes bytes = pass_bytes(problem_, program_, device, pass);
  made.acquired = bytes.acquired;
  made.released = bytes.released;
  return made;
}

TaskClass ClassMaker::made_transfer(bool forward, int from, int to, std::uint32_t unit) const {
  const Placement& place = program_.placement();
  TaskClass made = on_device(TaskKind::kTransfer, place.device(from));
  made.pass = forward ? PassKind::kF : PassKind::kB;
  made.chunk = static_cast<std::uint16_t>(place.chunk(from));
  made.receiver = number(place.device(to));
  if (options_.message) {
    const MessageCost cost =
        options_.message(from, to, rank(place.device(from)), rank(place.device(to)), unit);
    made.seconds = cost.seconds;
    made.latency = cost.latency;
  } else {
    made.seconds = problem_.transfer(from, to, unit);
  }
  return made;
}

TaskClass ClassMaker::made_barrier(Barrier barrier, std::uint32_t unit) const {
  TaskClass made = on_device(TaskKind::kBarrier, 0);
  made.barrier = barrier;
  made.seconds = problem_.barrier(barrier, unit);
  return made;
}

TaskClass ClassMaker::made_copy(const Copy& copy, bool out) const {
  const auto device = static_cast<int>(copy.device);
  TaskClass made = on_device(out ? TaskKind::kCopyOut : TaskKind::kCopyIn, device);
  made.chunk = copy.chunk;
  if (options_.contending_copies) {
    const int vs = program_.placement().virtual_stage(device, copy.chunk);
    const StageCost& cost = problem_.stage(vs, copy.unit);
    made.seconds = *options_.contending_copies * (out ? cost.copy_out : cost.copy_in);
  } else {
    made.seconds = copy_seconds(problem_, program_, copy, out);
  }
  (out ? made.released : made.acquired) = copied_bytes(problem_, program_, copy);
  return made;
}

TaskClass ClassMaker::closing(int device, Seconds seconds) const {
  TaskClass made = on_device(TaskKind::kOptimizer, device);
  made.seconds = seconds * slowdown(device);
  return made;
}

TaskClass ClassMaker::joining(Seconds seconds) const {
  TaskClass made;
  made.kind = TaskKind::kCollective;
  made.seconds = seconds;
  return made;
}

TaskClass ClassMaker::on_device(TaskKind kind, int device) const {
  TaskClass made;
  made.kind = kind;
  made.pipeline = pipeline_;
  made.device = number(device);
  return made;
}

std::uint32_t ClassMaker::number(int device) const {
  return pipeline_ * static_cast<std::uint32_t>(program_.placement().devices()) +
         static_cast<std::uint32_t>(device);
}

ClassTable::ClassTable(TaskGraph::Parts& parts, const Program& program, const Problem& problem,
                       const std::vector<int>& ranks, const BuildOptions& options,
                       std::uint32_t pipeline, bool keeps)
    : parts_(parts),
      program_(program),
      problem_(problem),
      options_(options),
      pipeline_(pipeline),
      maker_(program, problem, ranks, options, pipeline),
      replaces_(!keeps && most_differ(problem)),
      compute_(replaces_ ? 0 : rows_of(program, problem), kPassKinds, kNoClass),
      transfer_(replaces_ ? 0 : rows_of(program, problem), 2, kNoClass),
      barrier_(kinds_of(problem), kBarriers, kNoClass),
      copy_(rows_of(program, problem), 4, kNoClass),
      overlapped_(problem.kinds.empty()
                      ? Grid<std::uint32_t>(program.placement().virtual_stages(),
                                            program.placement().chunks() * kPassKinds, kNoClass)
                      : Grid<std::uint32_t>(program.pairs().size(), 1, kNoClass)) {
  if (replaces_) replaced_ = add({});
}

std::uint32_t ClassTable::barrier(Barrier barrier, std::uint32_t unit) {
  std::uint32_t& known = barrier_(problem_.kind(unit), static_cast<int>(barrier));
  if (known == kNoClass) known = add({.of = Of::kBarrier, .unit = unit, .barrier = barrier});
  return known;
}

std::uint32_t ClassTable::copy(const Copy& copy, bool out) {
  const int vs = program_.placement().virtual_stage(static_cast<int>(copy.device), copy.chunk);
  const bool alone = copy.alone && !options_.contending_copies;
  std::uint32_t& known = copy_(row(vs, copy.unit), (out ? 0 : 2) + (alone ? 1 : 0));
  if (known == kNoClass) known = add({.of = Of::kCopy, .forward = out, .copy = copy});
  return known;
}

std::uint32_t ClassTable::add(ClassOrigin origin) {
  origin.pipeline = pipeline_;
  parts_.classes.push_back(maker_.made(origin));
  if (problem_.kinds.empty()) parts_.origins.push_back(origin);
  return static_cast<std::uint32_t>(parts_.classes.size() - 1);
}

}  // namespace pipesim
