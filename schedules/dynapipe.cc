// DynaPipe's order for microbatches of unequal cost (Jiang et al., arXiv 2311.10418, section 5): in
// every cycle a device runs the first backward and the first forward that wait for it, and their
// results are there in the next one. A device so keeps up to twice what it keeps under 1F1B, which
// lets it go on while a long microbatch is under way elsewhere.
#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <optional>

#include "sim/core/error.h"
#include "sim/core/text.h"
#include "sim/planning/room.h"
#include "sim/planning/schedule.h"

namespace pipesim::dynapipe {
namespace {

// DynaPipe's name.
constexpr auto kMostInFlight = "max_otf_microbatches";

std::optional<long> most_ahead(const Problem& problem) {
  return problem.option<long>(kMostInFlight);
}

class Cycles {
 public:
  explicit Cycles(const Problem& problem)
      : problem_(problem),
        devices_(problem.shape.devices),
        most_ahead_(most_ahead(problem)),
        lists_(devices_),
        forwards_(devices_),
        backwards_(devices_),
        held_(devices_),
        newest_(devices_) {
    for (int i = 0; i < problem.shape.microbatches; ++i) forwards_.front().push_back(i);
  }

  PassLists run() {
    const size_t all = 2 * static_cast<size_t>(devices_) * problem_.shape.microbatches;
    for (size_t ran = 0; ran < all;) {
      const size_t before = ran;
      std::vector<int> forward(devices_, kNone);
      std::vector<int> backward(devices_, kNone);
      for (int d = 0; d < devices_; ++d) {
        backward[d] = take(backwards_[d]);
        if (backward[d] != kNone) run_pass(d, PassKind::kBW, backward[d], ran);
        forward[d] = has_room(d) ? take(forwards_[d]) : kNone;
        if (forward[d] != kNone) run_pass(d, PassKind::kF, forward[d], ran);
      }
      if (ran == before) throw LogicError("dynapipe: a cycle in which nothing runs");
      for (int d = 0; d < devices_; ++d) hand_on(d, forward[d], backward[d]);
    }
    return std::move(lists_);
  }

 private:
  static constexpr int kNone = -1;

  // Microbatches whose passes ran last; the first before any has.
  struct Newest {
    int forward = 0;
    int backward = 0;
  };

  static int take(std::deque<int>& queue) {
    if (queue.empty()) return kNone;
    const int first = queue.front();
    queue.pop_front();
    return first;
  }

  [[nodiscard]] Bytes activation(int device, int microbatch) const {
    return problem_.stage(device, static_cast<std::uint32_t>(microbatch)).activation;
  }

  // The first microbatch goes anyway.
  [[nodiscard]] bool has_room(int device) const {
    if (forwards_[device].empty() || forwards_[device].front() == 0) return true;
    const Newest& newest = newest_[device];
    if (most_ahead_ && newest.forward - newest.backward >= *most_ahead_) return false;
    if (!problem_.activation_limit) return true;
    const int next = forwards_[device].front();
    // Unequal bytes that came and went leave rounding behind.
    const Bytes limit = kRounding * *problem_.activation_limit;
    return held_[device] + activation(device, next) <= limit;
  }

  void run_pass(int device, PassKind kind, int microbatch, size_t& ran) {
    lists_[device].push_back(make_pass(kind, microbatch));
    const Bytes bytes = activation(device, microbatch);
    held_[device] += kind == PassKind::kF ? bytes : -bytes;
    (kind == PassKind::kF ? newest_[device].forward : newest_[device].backward) = microbatch;
    ++ran;
  }

  void hand_on(int device, int forward, int backward) {
    if (backward != kNone && device > 0) backwards_[device - 1].push_back(backward);
    if (forward == kNone) return;
    if (device + 1 < devices_) {
      forwards_[device + 1].push_back(forward);
    } else {
      backwards_[device].push_back(forward);
    }
  }

  const Problem& problem_;
  int devices_;
  std::optional<long> most_ahead_;
  PassLists lists_;
  std::vector<std::deque<int>> forwards_, backwards_;  // that wait for a device
  std::vector<Bytes> held_;
  std::vector<Newest> newest_;
};

Program plan(const Problem& problem) {
  return {problem.shape, problem.placement, Cycles(problem).run()};
}

std::optional<Refusal> refuse(const Problem& problem) {
  const Bytes one = problem.device_activation();
  if (!problem.activation_limit || *problem.activation_limit >= one) return std::nullopt;
  return Refusal{fmt::format("dynapipe needs memory_limit {} at least, what its largest microbatch "
                             "keeps on a device; it is {}",
                             human(one), human(*problem.activation_limit)),
                 problem.shape};
}

bool unlimited(const Problem& problem) { return !problem.activation_limit && !most_ahead(problem); }

const RegisteredSchedule kDynaPipe{{
    .name = "dynapipe",
    .summary =
        "1F1B with nearly twice the microbatches in flight, for microbatches of unequal cost",
    .source = "DynaPipe, arXiv 2311.10418; order: awslabs/optimizing-multitask-training-through-"
              "dynamic-pipelines",
    .order = "2(p-1-d)+1 F; BW and F in turn; within memory_limit an F waits until there is room",
    .options = {{.name = kMostInFlight,
                 .help = "an F waits while its device's newest F is so many microbatches ahead of "
                         "its newest backward",
                 .minimum = 1,
                 .maximum = 1 << 20,
                 .default_text = "no bound"}},
    .memory_limit = true,
    .refuse = refuse,
    .plan = plan,
    .whole_backward = true,
    .claims = {.bubble = {.formula = "(p-1) (F+B+W)",
                          .domain = "no memory_limit or bound; equal stages, free transfers",
                          .holds =
                              [](const Problem& problem) {
                                return unlimited(problem) && uniform(problem) &&
                                       free_transfers(problem);
                              },
                          .bubble =
                              [](const Problem& problem) {
                                const StageCost& cost = problem.stage(0);
                                return (problem.shape.devices - 1) *
                                       (cost.forward + cost.backward_input + cost.backward_weight);
                              }},
               .peak = {.formula = "min(2(p-d)-1, m)",
                        .domain = "no memory_limit or bound",
                        .holds = unlimited,
                        .in_flight =
                            [](const Problem& problem, int device) {
                              return std::min(2 * (problem.shape.devices - device) - 1,
                                              problem.shape.microbatches);
                            }}},
    .each_unit = true,
    .no_flags =
        "its own runtime stands on DeepSpeed and an older Megatron-LM, which has no flag for "
        "the order",
    .nearest_with_flags = "1f1b",
    .left_out_of_plan = "where microbatches cost alike it is 1f1b with more memory",
}};

}  // namespace
}  // namespace pipesim::dynapipe
