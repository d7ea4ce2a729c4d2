#include "sim/runtime/execution.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <limits>

#include "sim/core/error.h"
#include "sim/execution/evaluate.h"
#include "sim/runtime/computed_work.h"
#include "sim/runtime/plan.h"
#include "sim/runtime/processes.h"
#include "sim/runtime/timed_work.h"

namespace pipesim::runtime {
namespace {

// The default deadline allows for start, a busy machine, and the end.
constexpr double kPatience = 20;
constexpr double kSlowest = 5;  // times the simulated time
// Sums of float32 in another order differ by about as much.
constexpr double kSameGradients = 1e-5;

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

// Makes the work of a device, in its own process.
using MakeWork = std::function<std::unique_ptr<Work>(int device)>;

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

std::vector<DeviceRecord> run_locally(const ExecutionPlan& plan, double deadline,
                                      SharedBoards& boards, const MakeWork& make) {
  return run_processes(
      plan.program->placement().devices(), boards, deadline,
      [&](int device, Board& board) {
        const auto work = make(device);
        return execute(*plan.program, plan.scripts[device], device, *work, board);
      },
      [&plan](int device, std::uint32_t item) { return place_of(plan, device, item); });
}

SharedBoards boards_for(const ExecutionPlan& plan, std::size_t note, std::size_t record) {
  return {plan.program->placement().devices(), NoteIds(*plan.program).count(), note,
          record_bytes(plan) + record};
}

double deadline_of(const ExecutionPlan& plan, const ExecutionOptions& options) {
  return options.deadline > 0 ? options.deadline : kPatience + kSlowest * plan.simulated;
}

Execution compared(const Case& made, const ExecutionPlan& plan,
                   std::span<const DeviceRecord> records) {
  Execution execution{.schedule = made.choice.name,
                      .label = made.label,
                      .devices = plan.program->placement().devices(),
                      .semantics = plan.semantics,
                      .scale = plan.scale,
                      .wall = wall_of(records),
                      .waits = plan.waits,
                      .simulated = plan.simulated,
                      .disorder = disorder_of(plan, records)};
  for (const DeviceRecord& record : records) {
    execution.overhead += record.wait_overhead / static_cast<double>(records.size());
  }
  return execution;
}

// Gradients of all devices, in the model's order.
std::vector<float> gradients_in_order(const ExecutionPlan& plan, const SmallModel& model,
                                      const Layout& layout, std::span<const DeviceRecord> records) {
  const Placement& place = plan.program->placement();
  std::vector<std::size_t> next(records.size(), 0);
  std::vector<std::vector<float>> of_stage(static_cast<std::size_t>(place.virtual_stages()));
  for (int device = 0; device < place.devices(); ++device) {
    for (int chunk = 0; chunk < place.chunks(device); ++chunk) {
      const int vs = place.virtual_stage(device, chunk);
      Ledger ledger;
      const auto size = static_cast<std::ptrdiff_t>(
          StageMath(model, layout.stages[vs], ledger).gradients().size());
      const auto first =
          records[device].gradients.begin() + static_cast<std::ptrdiff_t>(next[device]);
      of_stage[vs].assign(first, first + size);
      next[device] += static_cast<std::size_t>(size);
    }
  }
  std::vector<float> all;
  for (const auto& each : of_stage) all.insert(all.end(), each.begin(), each.end());
  return all;
}

}  // namespace

std::optional<Execution> execute_timed(const Case& made, const ExecutionOptions& options) {
  const ExecutionPlan plan = plan_execution(made, Pace::kTimed, options.mean_pass, options.torch);
  std::vector<DeviceRecord> records;
  if (options.peers != nullptr) {
    records = run_ranks(plan, *options.peers, deadline_of(plan, options));
    if (records.empty()) return std::nullopt;
  } else {
    SharedBoards boards = boards_for(plan, kNoteBytes, 0);
    records = run_locally(plan, deadline_of(plan, options), boards,
                          [&plan](int device) { return make_timed_work(*plan.program, device); });
  }
  Execution execution = compared(made, plan, records);
  const auto expected = expected_digests(*plan.program);
  execution.same_results = true;
  for (std::size_t device = 0; device < records.size(); ++device) {
    execution.same_results &= records[device].digest == expected[device];
  }
  return execution;
}

Execution execute_computed(const Case& made, const ExecutionOptions& options) {
  if (options.peers != nullptr) {
    throw InfeasibleError("passes are computed by local processes: start it without mpirun");
  }
  const ExecutionPlan plan = plan_execution(made, Pace::kFree, 0, options.torch);
  const SmallModel model = small_model_of(made, *plan.program);
  const auto alone = gradients_of_one_process(model, plan.program->shape().microbatches);
  SharedBoards boards = boards_for(plan, message_bytes_of(model), sizeof(float) * alone.size());
  const auto records = run_locally(plan, deadline_of(plan, options), boards, [&](int device) {
    return make_computed_work(made, *plan.program, device);
  });
  Execution execution = compared(made, plan, records);
  execution.overhead = 0;  // nothing waits for a time
  execution.gradient_error =
      largest_difference(gradients_in_order(plan, model, *made.layout, records), alone);
  execution.same_results = *execution.gradient_error < kSameGradients;
  const Evaluation simulated = evaluate(*plan.program, made.problem);
  for (std::size_t device = 0; device < records.size(); ++device) {
    execution.peak_bytes.push_back(records[device].peak_bytes);
    execution.simulated_peak_bytes.push_back(simulated.devices[device].peak_activation.value());
  }
  return execution;
}

}  // namespace pipesim::runtime
