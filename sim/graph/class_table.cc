#include "sim/graph/class_table.h"

#include <algorithm>

#include "sim/execution/evaluate.h"

namespace pipesim {
namespace {

size_t kinds_of(const Problem& problem) { return std::max<size_t>(1, problem.kinds.size()); }

size_t rows_of(const Program& program, const Problem& problem) {
  return kinds_of(problem) * static_cast<size_t>(program.placement().virtual_stages());
}

}  // namespace

ClassTable::ClassTable(std::vector<TaskClass>& classes, const Program& program,
                       const Problem& problem, const std::vector<int>& ranks,
                       const BuildOptions& options, std::uint32_t pipeline)
    : classes_(classes),
      program_(program),
      problem_(problem),
      ranks_(ranks),
      options_(options),
      pipeline_(pipeline),
      compute_(rows_of(program, problem), kPassKinds, kNoClass),
      transfer_(rows_of(program, problem), 2, kNoClass),
      barrier_(kinds_of(problem), kBarriers, kNoClass),
      copy_(rows_of(program, problem), 4, kNoClass),
      overlapped_(problem.kinds.empty()
                      ? Grid<std::uint32_t>(program.placement().virtual_stages(),
                                            program.placement().chunks(), kNoClass)
                      : Grid<std::uint32_t>(program.pairs().size(), 1, kNoClass)) {}

TaskClass ClassTable::made_compute(int device, const Pass& pass) const {
  const bool block = pass.kind == PassKind::kFB;
  TaskClass made = on_device(TaskKind::kCompute, device);
  made.pass = pass.kind;
  made.chunk = block ? program_.pair(pass).forward.chunk : pass.chunk;
  made.chunk_back = block ? program_.pair(pass).backward.chunk : std::uint16_t{0};
  made.seconds = pass_seconds(problem_, program_, device, pass) * slowdown(device);
  const PassBytes bytes = pass_bytes(problem_, program_, device, pass);
  made.acquired = bytes.acquired;
  made.released = bytes.released;
  return made;
}

TaskClass ClassTable::made_transfer(bool forward, int from, int to, std::uint32_t unit) const {
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

std::uint32_t ClassTable::barrier(Barrier barrier, std::uint32_t unit) {
  std::uint32_t& known = barrier_(problem_.kind(unit), static_cast<int>(barrier));
  if (known != kNoClass) return known;
  TaskClass made = on_device(TaskKind::kBarrier, 0);
  made.barrier = barrier;
  made.seconds = problem_.barrier(barrier, unit);
  return known = add(made);
}

std::uint32_t ClassTable::copy(const Copy& copy, bool out) {
  const int vs = program_.placement().virtual_stage(static_cast<int>(copy.device), copy.chunk);
  const bool alone = copy.alone && !options_.contending_copies;
  std::uint32_t& known = copy_(row(vs, copy.unit), (out ? 0 : 2) + (alone ? 1 : 0));
  if (known == kNoClass) known = add(made_copy(copy, out));
  return known;
}

TaskClass ClassTable::made_copy(const Copy& copy, bool out) const {
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

std::uint32_t ClassTable::optimizer(int device) {
  const auto& each = options_.optimizer_of_device;
  return closing(device, each.empty() ? options_.optimizer : each[device]);
}

std::uint32_t ClassTable::gradients(int device) {
  return closing(device, options_.gradients_of_device[device]);
}

std::uint32_t ClassTable::closing(int device, Seconds seconds) {
  TaskClass made = on_device(TaskKind::kOptimizer, device);
  made.seconds = seconds * slowdown(device);
  return add(made);
}

TaskClass ClassTable::on_device(TaskKind kind, int device) const {
  TaskClass made;
  made.kind = kind;
  made.pipeline = pipeline_;
  made.device = number(device);
  return made;
}

std::uint32_t ClassTable::number(int device) const {
  return pipeline_ * static_cast<std::uint32_t>(program_.placement().devices()) +
         static_cast<std::uint32_t>(device);
}

std::uint32_t ClassTable::add(const TaskClass& made) {
  classes_.push_back(made);
  return static_cast<std::uint32_t>(classes_.size() - 1);
}

}  // namespace pipesim
