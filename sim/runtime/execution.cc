#include "sim/runtime/execution.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "sim/core/error.h"
#include "sim/runtime/plan.h"
#include "sim/runtime/processes.h"
#include "sim/runtime/timed_work.h"

namespace pipesim::runtime {
namespace {

// What is left of a deadline that nobody names: for start, a busy machine, and the end.
constexpr double kPatience = 20;
constexpr double kSlowest = 5;  // times the simulated time

double wall_of(std::span<const DeviceRecord> records) {
  double first = std::numeric_limits<double>::infinity();
  double last = 0;
  for (const DeviceRecord& record : records) {
    for (const DeviceRecord::Span& span : record.items[0]) {
      first = std::min(first, span.start);
      last = std::max(last, span.end);
    }
  }
  return last - first;
}

std::size_t record_bytes(const ExecutionPlan& plan) {
  std::size_t items = 0;
  for (const DeviceScript& script : plan.scripts) {
    for (const auto& lane : script.lanes) items += lane.size();
  }
  const std::size_t messages = 2UL * plan.program->placement().virtual_stages() *
                               static_cast<std::size_t>(plan.program->shape().units());
  return 4096 + items * sizeof(DeviceRecord::Span) + messages * sizeof(DeviceRecord::Received);
}

// Where a device stands, for people.
std::string place_of(const ExecutionPlan& plan, int device, std::uint32_t item) {
  const auto& items = plan.scripts[device].lanes[0];
  if (item >= items.size()) return "at its end";
  const auto pass = std::find_if(items.begin() + item, items.end(),
                                 [](const Item& each) { return each.kind == Item::Kind::kPass; });
  if (pass == items.end()) return "at its last call";
  return "before " + plan.program->text(device, plan.program->passes(device)[pass->position]);
}

std::vector<DeviceRecord> run_ranks(const ExecutionPlan& plan, MpiPeers& peers, double deadline) {
  if (peers.size() != plan.program->placement().devices()) {
    throw InfeasibleError(fmt::format("{} ranks were started for {} devices: one each is needed",
                                      peers.size(), plan.program->placement().devices()));
  }
  const auto board = peers.next_board(NoteIds(*plan.program).count(), deadline);
  const auto work = make_timed_work(*plan.program, peers.rank());
  const DeviceRecord mine =
      execute(*plan.program, plan.scripts[peers.rank()], peers.rank(), *work, *board);
  std::vector<DeviceRecord> records;
  for (const std::string& bytes : peers.gather(to_bytes(mine))) {
    records.push_back(record_from(bytes));
  }
  return records;
}

std::vector<DeviceRecord> run_locally(const ExecutionPlan& plan, double deadline) {
  const NoteIds ids(*plan.program);
  const int devices = plan.program->placement().devices();
  SharedBoards boards(devices, ids.count(), kNoteBytes, record_bytes(plan));
  return run_processes(
      devices, boards, deadline,
      [&plan](int device, Board& board) {
        const auto work = make_timed_work(*plan.program, device);
        return execute(*plan.program, plan.scripts[device], device, *work, board);
      },
      [&plan](int device, std::uint32_t item) { return place_of(plan, device, item); });
}

}  // namespace

std::optional<Execution> execute_timed(const Case& made, const ExecutionOptions& options) {
  const ExecutionPlan plan = plan_execution(made, options.mean_pass, options.torch);
  const double deadline =
      options.deadline > 0 ? options.deadline : kPatience + kSlowest * plan.simulated;
  const auto records = options.peers == nullptr ? run_locally(plan, deadline)
                                                : run_ranks(plan, *options.peers, deadline);
  if (records.empty()) return std::nullopt;
  Execution execution{.schedule = made.name,
                      .devices = plan.program->placement().devices(),
                      .semantics = plan.semantics,
                      .scale = plan.scale,
                      .wall = wall_of(records),
                      .waits = plan.waits,
                      .simulated = plan.simulated,
                      .disorder = disorder_of(plan, records)};
  execution.same_results = true;
  const auto expected = expected_digests(*plan.program);
  for (std::size_t device = 0; device < records.size(); ++device) {
    execution.overhead += records[device].wait_overhead / static_cast<double>(records.size());
    execution.same_results &= records[device].digest == expected[device];
  }
  return execution;
}

}  // namespace pipesim::runtime
