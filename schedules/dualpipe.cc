// DualPipe and DualPipeV: microbatches travel two ways, and in the steady state a device runs the
// forward of one way together with the backward of the other, so that the communication inside
// either hides behind the compute of both.
//
// DualPipe feeds p devices from both ends and keeps two copies of the model; DualPipeV folds one
// pipeline of 2p stages in the middle, so that the second way is the first one's return. Seen from
// a device they are the same: it stands `rank` steps from the outer end of a half pipeline of
// `ranks` devices (p/2 or p), and knows two phases: phase 0 enters at the outer end, phase 1 comes
// back from the inner one. So one sequence of steps makes both, and DualPipeV on p devices is one
// half of DualPipe on 2p (tests/golden/dualpipe_test.cc).
//
// The steps need 2 `ranks` microbatches in each phase. Fewer are planned as that many and the rest
// left out: what is left out was waited for only by itself, so the order stays executable.
#include <algorithm>
#include <array>
#include <deque>
#include <fmt/format.h>

#include "sim/planning/schedule.h"

namespace pipesim::dualpipe {
namespace {

// Where the microbatches of a phase are found: on which chunk of the device, and their numbers.
struct Way {
  int chunk = 0;
  int first = 0;
  int count = 0;
};

// Appends the passes of one device, counting the microbatches of both phases.
class DeviceOrder {
 public:
  DeviceOrder(const std::array<Way, 2>& ways, bool overlap, std::vector<Pass>& list,
              std::vector<OverlappedPair>& pairs)
      : ways_(ways), overlap_(overlap), list_(list), pairs_(pairs) {}

  void forward(int phase) { add(PassKind::kF, phase, forwards_[index(phase)]++); }
  void backward(int phase) { add(PassKind::kBW, phase, backwards_[index(phase)]++); }
  void split_backward(int phase) {
    owed_.push_back({phase, backwards_[index(phase)]});
    add(PassKind::kB, phase, backwards_[index(phase)]++);
  }
  // The W that has been owed longest, of either phase.
  void weight() {
    const Owed oldest = owed_.front();
    owed_.pop_front();
    add(PassKind::kW, oldest.phase, oldest.number);
  }
  // The next forward of one phase and the next backward of the other, overlapped.
  void overlapped(int forward_phase, int backward_phase) {
    const bool both = overlap_ && runs(forward_phase, forwards_[index(forward_phase)]) &&
                      runs(backward_phase, backwards_[index(backward_phase)]);
    forward(forward_phase);
    backward(backward_phase);
    if (!both) return;
    const OverlappedPair pair{*(list_.end() - 2), list_.back()};
    list_.resize(list_.size() - 2);
    list_.push_back(make_pass(PassKind::kFB, static_cast<int>(pairs_.size())));
    pairs_.push_back(pair);
  }

 private:
  struct Owed {
    int phase;
    int number;
  };

  static size_t index(int phase) { return static_cast<size_t>(phase); }
  [[nodiscard]] bool runs(int phase, int number) const {
    return number < ways_[index(phase)].count;
  }
  void add(PassKind kind, int phase, int number) {
    const Way& way = ways_[index(phase)];
    if (runs(phase, number)) list_.push_back(make_pass(kind, way.first + number, way.chunk));
  }

  std::array<Way, 2> ways_;
  bool overlap_;
  std::vector<Pass>& list_;
  std::vector<OverlappedPair>& pairs_;
  std::array<int, 2> forwards_{};
  std::array<int, 2> backwards_{};
  std::deque<Owed> owed_;
};

void repeat(int count, auto step) {
  for (int i = 0; i < count; ++i) step(i);
}

// `inner` counts the devices between this one and the turning point; `rank` those outside it.
void run_steps(DeviceOrder& order, int rank, int ranks, int microbatches) {
  const int inner = ranks - 1 - rank;
  repeat(2 * inner, [&](int) { order.forward(0); });
  repeat(rank + 1, [&](int) {
    order.forward(0);
    order.forward(1);
  });
  repeat(inner, [&](int) {
    order.split_backward(1);
    order.weight();
    order.forward(1);
  });
  repeat(microbatches - 2 * ranks + rank + 1, [&](int i) {
    if (i == 0 && inner == 0) {  // the next device waits for this F: it is not held up by the BW
      order.forward(0);
      order.backward(1);
    } else {
      order.overlapped(0, 1);
    }
    order.overlapped(1, 0);
  });
  repeat(inner, [&](int) {
    order.backward(1);
    order.overlapped(1, 0);
  });
  // From the middle of these on B and W are split, so that upstream devices get gradients sooner.
  repeat(2 * (rank + 1), [&](int i) {
    const int phase = 1 - i % 2;
    i < rank + 1 ? order.backward(phase) : order.split_backward(phase);
  });
  repeat(inner, [&](int) {
    order.weight();
    order.split_backward(0);
  });
  repeat(rank + 1, [&](int) { order.weight(); });
}

bool overlaps(const Problem& problem) { return problem.option<bool>("overlap").value_or(true); }

// A device's place in its half of the pipeline, and what it runs in either phase.
struct Seat {
  int rank = 0;
  int ranks = 1;
  std::array<Way, 2> ways;
};

// On the second half of DualPipe's devices the direction that enters near by is the second one.
Seat seat(const Problem& problem, int device) {
  const Placement& place = problem.placement;
  const int p = problem.shape.devices;
  const bool two = place.directions() == 2;
  Seat seat{two ? std::min(device, p - 1 - device) : device, two ? p / 2 : p, {}};
  for (int chunk = 0; chunk < 2; ++chunk) {
    const int vs = place.virtual_stage(device, chunk);
    const int first = place.first_unit(vs, problem.shape.units());
    const bool returning = two && device >= p / 2 ? chunk == 0 : chunk == 1;
    seat.ways[returning ? 1 : 0] = {chunk, first,
                                    place.end_unit(vs, problem.shape.units()) - first};
  }
  return seat;
}

Program plan(const Problem& problem) {
  PassLists lists(problem.shape.devices);
  std::vector<OverlappedPair> pairs;
  for (int device = 0; device < problem.shape.devices; ++device) {
    const Seat at = seat(problem, device);
    const int microbatches = std::max({at.ways[0].count, at.ways[1].count, 2 * at.ranks});
    DeviceOrder order(at.ways, overlaps(problem), lists[device], pairs);
    run_steps(order, at.rank, at.ranks, microbatches);
  }
  return {problem.shape, problem.placement, std::move(lists), std::move(pairs)};
}

std::optional<Refusal> refuse_odd(const Problem& problem) {
  const int p = problem.shape.devices;
  if (p % 2 == 0) return std::nullopt;
  Refusal refusal{fmt::format("dualpipe joins two halves of the devices: {} cannot be halved", p),
                  problem.shape};
  refusal.nearest.devices = p == 1 ? 2 : p - 1;
  return refusal;
}

// An overlapped block that takes as long as its passes: what it would hide is not in this sum.
bool blocks_take_their_sum(const Problem& problem) {
  const StageCost& cost = problem.stage(0);
  const Seconds sum = cost.forward + cost.backward_input + cost.backward_weight;
  return uniform(problem) && std::ranges::all_of(problem.stages, [sum](const StageCost& stage) {
           return stage.overlapped == sum;
         });
}

bool bubble_is_known(const Problem& problem) {
  const Seat at = seat(problem, 0);
  const bool enough = at.ways[0].count >= 2 * at.ranks &&
                      (problem.placement.directions() == 1 || problem.shape.microbatches % 2 == 0);
  return overlaps(problem) && enough && free_transfers(problem) && blocks_take_their_sum(problem);
}

// n devices between the outermost and the turning point. The first term of either sum is the
// warm-up that nothing fills; the second, whichever of F and B arrives later in the cool-down.
Seconds bubble(const Problem& problem) {
  const StageCost& cost = problem.stage(0);
  const Seconds f = cost.forward;
  const Seconds b = cost.backward_input;
  const double n = seat(problem, 0).ranks - 1;
  return n * (f + std::max(Seconds(0), b - cost.backward_weight)) + std::max(n * f, n * b - f);
}

int in_flight(const Problem& problem, int device) {
  const Seat at = seat(problem, device);
  const int passed = at.ways[0].count + at.ways[1].count;
  return std::min({at.ways[0].count + at.rank + 1, passed, 2 * at.ranks + 1});
}

const char* const kSource = "DeepSeek-V3 (arXiv 2412.19437, section 3.2.1), deepseek-ai/DualPipe";

const OptionSpec kOverlap{
    .name = "overlap",
    .type = OptionSpec::Type::kFlag,
    .help =
        "run F and BW of the steady state as one overlapped block, which takes "
        "cost.overlapped; false: one after the other",
    .default_text = "true"};

bool everywhere(const Problem&) { return true; }

constexpr auto kOwnRuntime = "it is a runtime of its own (deepseek-ai/DualPipe)";

// DeepSeek's blocks run W apart.
std::optional<BlockRun> always_apart(const ScheduleOptions& /*options*/) { return BlockRun{}; }

const RegisteredSchedule kDualPipe{{
    .name = "dualpipe",
    .summary = "two copies of the model, fed from both ends; F of one way over BW of the other",
    .source = kSource,
    .order = "two copies of the model fed from both ends, chunk = direction; in the steady state F "
             "of one way over BW of the other",
    .default_chunks = 2,
    .min_chunks = 2,
    .max_chunks = 2,
    .place = [](int devices, int) { return Placement::bidirectional(devices); },
    .options = {kOverlap},
    .refuse = refuse_odd,
    .plan = plan,
    .fixed_order = everywhere,
    .claims = {.bubble = {.formula = "n (F + max(0, B-W)) + max(n F, n B - F), n = p/2-1",
                          .domain = "m even, m >= 2p, FB = F+B+W; equal stages, free transfers. "
                                    "The published n (FB+B-2W) is the case F = B, W <= B",
                          .gap = "p odd is refused; m < 2p leaves out part of the steps",
                          .holds = bubble_is_known,
                          .bubble = bubble},
               .peak = {.formula = "min(k+h+1, m, p+1), k microbatches entering at the nearer end, "
                                   "h = min(d, p-1-d)",
                        .domain = "p even",
                        .gap = "p odd is refused",
                        .holds = everywhere,
                        .in_flight = in_flight}},
    .calls = CallGroups::kDualPipe,
    .blocks = always_apart,
    .no_flags = kOwnRuntime,
    .nearest_with_flags = "1f1b-v",
    .left_out_of_plan = "it holds two copies of the model",
}};

const RegisteredSchedule kDualPipeV{{
    .name = "dualpipev",
    .summary = "DualPipe cut in half: one model, folded; F of one way over BW of the other",
    .source = kSource,
    .order = "DualPipe on 2p devices cut in half: chunk 0 goes in, chunk 1 comes back",
    .default_chunks = 2,
    .min_chunks = 2,
    .max_chunks = 2,
    .place = [](int devices, int) { return Placement::vee(devices); },
    .options = {kOverlap},
    .plan = plan,
    .fixed_order = everywhere,
    .claims = {.bubble = {.formula = "n (F + max(0, B-W)) + max(n F, n B - F), n = p-1; F, B, W "
                                     "of a chunk",
                          .domain = "m >= 2p, FB = F+B+W; equal stages, free transfers. The "
                                    "published n (FB+B-2W) is the case F = B, W <= B",
                          .gap = "m < 2p leaves out part of the steps",
                          .holds = bubble_is_known,
                          .bubble = bubble},
               .peak = {.formula = "min(m+d+1, 2m, 2p+1) chunks",
                        .domain = "everywhere",
                        .holds = everywhere,
                        .in_flight = in_flight}},
    .calls = CallGroups::kDualPipe,
    .blocks = always_apart,
    .no_flags = kOwnRuntime,
    .nearest_with_flags = "zb-v",
}};

}  // namespace
}  // namespace pipesim::dualpipe
