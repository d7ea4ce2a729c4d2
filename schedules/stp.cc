// STP, "braided": one pipeline folded in the middle, in which a forward runs in one block with a
// backward of the same chunk, all of it or B or W alone, so that the all-reduces of tensor
// parallelism inside either hide behind the compute of both.
//
// The order is that of the authors' code (MICLAB-BUPT/STP, stp/schedule.py). It needs 3p-1
// microbatches: with fewer it takes W from an empty queue or deadlocks. The authors' pairs of two
// forwards of one chunk are two forwards here. Neither waits for the other, and both results leave
// as they do there.
#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <optional>
#include <vector>

#include "sim/planning/schedule.h"

namespace pipesim::stp {
namespace {

// Appends the passes of one device, counting the microbatches of both chunks. W runs in the order
// of its B, whichever chunk that was of.
class BraidedOrder {
 public:
  BraidedOrder(bool overlap, std::vector<Pass>& list, std::vector<OverlappedPair>& pairs)
      : overlap_(overlap), list_(list), pairs_(pairs) {}

  void forward(int chunk) { list_.push_back(next_forward(chunk)); }
  void backward(int chunk) { list_.push_back(next_backward(PassKind::kBW, chunk)); }
  void weight() { list_.push_back(next_weight()); }

  // The next forward of the chunk with its next backward, or with the W that is owed longest.
  void braided(int chunk, PassKind backward) {
    const Pass forward = next_forward(chunk);
    braid({forward, backward == PassKind::kW ? next_weight() : next_backward(backward, chunk)});
  }

 private:
  Pass next_forward(int chunk) { return make_pass(PassKind::kF, forwards_[chunk]++, chunk); }
  Pass next_backward(PassKind kind, int chunk) {
    const Pass pass = make_pass(kind, backwards_[chunk]++, chunk);
    if (kind == PassKind::kB) owed_.push_back({PassKind::kW, pass.chunk, pass.microbatch});
    return pass;
  }
  Pass next_weight() {
    const Pass oldest = owed_.front();
    owed_.pop_front();
    return oldest;
  }
  void braid(const OverlappedPair& pair) {
    if (!overlap_) {
      list_.insert(list_.end(), {pair.forward, pair.backward});
      return;
    }
    list_.push_back(make_pass(PassKind::kFB, static_cast<int>(pairs_.size())));
    pairs_.push_back(pair);
  }

  bool overlap_;
  std::vector<Pass>& list_;
  std::vector<OverlappedPair>& pairs_;
  int forwards_[2] = {};
  int backwards_[2] = {};
  std::deque<Pass> owed_;
};

void repeat(int count, auto step) {
  for (int i = 0; i < count; ++i) step(i);
}

bool overlaps(const Problem& problem) { return problem.option<bool>("overlap").value_or(true); }

void run_steps(BraidedOrder& order, int device, int devices, int microbatches) {
  const int inner = devices - 1 - device;  // devices between this one and the turning point
  repeat(2 * inner, [&](int) { order.forward(0); });
  repeat(device + 1, [&](int) {
    order.forward(0);
    order.forward(1);
  });
  repeat(device + 1, [&](int) { order.forward(0); });
  repeat(inner, [&](int) {
    order.braided(1, PassKind::kB);
    order.braided(0, PassKind::kW);
  });
  // The last of these put off the W that the cool-down fills its gaps with.
  const int whole = 2 * (microbatches - 3 * devices + 1) + 1 + device;
  repeat(whole + device,
         [&](int i) { order.braided(1 - i % 2, i < whole ? PassKind::kBW : PassKind::kB); });
  repeat(2 * inner + device, [&](int) {
    order.backward(0);
    order.braided(1, PassKind::kB);
  });
  repeat(device + 1, [&](int) {
    order.backward(0);
    order.backward(1);
  });
  repeat(1 + 2 * inner, [&](int i) {
    if (i % 2 == 0) {
      order.backward(0);
    } else {
      repeat(2, [&](int) { order.weight(); });
    }
  });
  repeat(2 * device, [&](int) { order.weight(); });
}

Program plan(const Problem& problem) {
  const int p = problem.shape.devices;
  PassLists lists(p);
  std::vector<OverlappedPair> pairs;
  for (int device = 0; device < p; ++device) {
    BraidedOrder order(overlaps(problem), lists[device], pairs);
    run_steps(order, device, p, problem.shape.microbatches);
  }
  return {problem.shape, problem.placement, std::move(lists), std::move(pairs)};
}

int least_microbatches(const Problem& problem) { return 3 * problem.shape.devices - 1; }

std::optional<Refusal> refuse_few(const Problem& problem) {
  const int least = least_microbatches(problem);
  if (problem.shape.microbatches >= least) return std::nullopt;
  Refusal refusal{fmt::format("stp needs 3p-1 microbatches, {} on {} devices: its published order "
                              "runs W before its B, or deadlocks, with fewer",
                              least, problem.shape.devices),
                  problem.shape};
  refusal.nearest.microbatches = least;
  return refusal;
}

// A block that takes as long as its passes: what it would hide is not in this sum. A longer W
// stands in the way of what the next device waits for.
bool bubble_is_known(const Problem& problem) {
  const StageCost& cost = problem.stage(0);
  const Seconds sum = cost.forward + cost.backward_input + cost.backward_weight;
  const bool sums = std::ranges::all_of(
      problem.stages, [sum](const StageCost& stage) { return stage.overlapped == sum; });
  return overlaps(problem) && sums && uniform(problem) && free_transfers(problem) &&
         cost.backward_weight <= std::min(cost.forward, cost.backward_input);
}

Seconds bubble(const Problem& problem) {
  const StageCost& cost = problem.stage(0);
  const Seconds f = cost.forward;
  const Seconds b = cost.backward_input;
  return (problem.shape.devices - 1) * (2 * f + b + std::max(f, b) - 3 * cost.backward_weight);
}

int in_flight(const Problem& problem, int device) {
  return 3 * problem.shape.devices + std::max(1, device);
}

const RegisteredSchedule kStp{{
    .name = "stp",
    .summary = "one pipeline, folded; F braided with B, W or BW of its own chunk",
    .source = "STP (arXiv 2510.27257), MICLAB-BUPT/STP (stp/schedule.py)",
    .order =
        "chunk 0 goes in, chunk 1 comes back; F beside B or W of its chunk, then beside BW; the "
        "last W fill the cool-down",
    .default_chunks = 2,
    .min_chunks = 2,
    .max_chunks = 2,
    .place = [](int devices, int) { return Placement::vee(devices); },
    .options = {{.name = "overlap",
                 .type = OptionSpec::Type::kFlag,
                 .help = "run F with B, W or BW of another microbatch as one block, whose seconds "
                         "follow from cost.overlapped; false: one after the other",
                 .default_text = "true"}},
    .refuse = refuse_few,
    .plan = plan,
    .fixed_order = everywhere,
    .claims = {.bubble = {.formula = "(p-1) (2F + B + max(F, B) - 3W), F, B, W of a chunk",
                          .domain = "m >= 3p-1, W <= F, W <= B, FB = F+B+W; equal stages, free "
                                    "transfers. The published (p-1)(F+B-W) is the case F = B = W",
                          .gap = "m < 3p-1 is refused",
                          .holds = bubble_is_known,
                          .bubble = bubble},
               .peak = {.formula = "3p + max(1, d) chunks",
                        .domain = "everywhere",
                        .gap = "m < 3p-1 is refused",
                        .holds = everywhere,
                        .in_flight = in_flight}},
    .blocks = [](const ScheduleOptions&) { return std::optional(BlockRun{.weight_apart = false}); },
    .no_flags = "it is a trainer of its own (MICLAB-BUPT/STP)",
    .nearest_with_flags = "zb-v",
}};

}  // namespace
}  // namespace pipesim::stp
