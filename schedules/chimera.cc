// Chimera (Li and Hoefler, arXiv 2107.06925): two pipelines in opposite directions over the same
// devices, which hold two stages each; the forwards of one fill the bubble of the other. More than
// p microbatches run as units of p in direct concatenation: the next unit's forwards fill the drain
// of the one before (order: kazukiosawa/pipe-fisher).
#include <array>
#include <cstdlib>
#include <fmt/format.h>

#include "sim/planning/schedule.h"

namespace pipesim::chimera {
namespace {

// The passes of one device, whose chunks are the directions; each counts its own microbatches.
class Device {
 public:
  Device(int half, std::vector<Pass>& list) : half_(half), list_(list) {}

  void forward(int direction) { add(PassKind::kF, direction, forwards_[direction]); }
  void backward(int direction) { add(PassKind::kBW, direction, backwards_[direction]); }

 private:
  void add(PassKind kind, int direction, int& count) {
    list_.push_back(make_pass(kind, direction * half_ + count++, direction));
  }

  int half_;  // microbatches of a direction
  std::vector<Pass>& list_;
  std::array<int, 2> forwards_{}, backwards_{};
};

// `own` is the direction that enters at the device's end of the pipeline: the nearer the device
// stands to the middle, the sooner it turns from that direction to the other.
void run_units(Device& device, int own, int to_middle, int rest, int units) {
  for (int unit = 0; unit < units; ++unit) {
    for (int i = 0; i < to_middle; ++i) {
      if (unit > 0) device.backward(own);
      device.forward(own);
    }
    for (int i = 0; i < rest; ++i) {
      device.forward(1 - own);
      device.forward(own);
    }
    for (int i = 0; i < to_middle; ++i) {
      device.forward(1 - own);
      device.backward(1 - own);
    }
    for (int i = 0; i < rest; ++i) {
      device.backward(own);
      device.backward(1 - own);
    }
  }
  for (int i = 0; i < to_middle; ++i) device.backward(own);
}

Program plan(const Problem& problem) {
  const Shape& shape = problem.shape;
  const int half = shape.devices / 2;
  PassLists lists(shape.devices);
  for (int d = 0; d < shape.devices; ++d) {
    Device device(shape.microbatches / 2, lists[d]);
    const int to_middle = d < half ? half - d : d - half + 1;
    run_units(device, d < half ? 0 : 1, to_middle, half - to_middle,
              shape.microbatches / shape.devices);
  }
  return {shape, problem.placement, std::move(lists)};
}

std::optional<Refusal> refuse(const Problem& problem) {
  const auto& [p, v, m, splits] = problem.shape;
  if (p % 2 == 0 && m % p == 0) return std::nullopt;
  Refusal refusal{fmt::format("chimera needs an even number of devices and units of as many "
                              "microbatches; here {} devices, {} microbatches",
                              p, m),
                  problem.shape};
  refusal.nearest.devices = p % 2 == 0 ? p : p + 1;
  const int units = std::max(1, (m + refusal.nearest.devices / 2) / refusal.nearest.devices);
  refusal.nearest.microbatches = units * refusal.nearest.devices;
  return refusal;
}

Seconds bubble(const Problem& problem) {
  const auto& [p, v, m, splits] = problem.shape;
  const Seconds forward = problem.stage(0).forward;
  const Seconds backward = problem.stage(0).backward_input + problem.stage(0).backward_weight;
  const Seconds difference = std::max(forward, backward) - std::min(forward, backward);
  const int units = m / p;
  return (p - 2) * (std::min(forward, backward) + units * difference);
}

const RegisteredSchedule kChimera{{
    .name = "chimera",
    .summary =
        "two pipelines in opposite directions: half of 1F1B's bubble for two copies of the weights",
    .source = "Chimera, arXiv 2107.06925, direct concatenation; order: kazukiosawa/pipe-fisher",
    .order = "units of p microbatches, half of them each way, chunk = direction; the next unit's F "
             "fill the drain",
    .default_chunks = 2,
    .min_chunks = 2,
    .max_chunks = 2,
    .place = [](int devices, int) { return Placement::bidirectional(devices); },
    .refuse = refuse,
    .plan = plan,
    .fixed_order = everywhere,
    .whole_backward = true,
    .claims = {.bubble = {.formula = "(p-2) (min(F, B+W) + m/p |B+W-F|)",
                          .domain = "p even, m a multiple of p; equal stages, free transfers",
                          .gap = "p odd is refused",
                          .holds =
                              [](const Problem& problem) {
                                return uniform(problem) && free_transfers(problem);
                              },
                          .bubble = bubble},
               .peak = {.formula = "p/2 + 1 + min(d, p-1-d)",
                        .domain = "p even, m a multiple of p",
                        .gap = "p odd is refused",
                        .holds = [](const Problem&) { return true; },
                        .in_flight =
                            [](const Problem& problem, int device) {
                              const int p = problem.shape.devices;
                              return p / 2 + 1 + std::min(device, p - 1 - device);
                            }}},
    .no_flags = "it is a runtime of its own (Shigangli/Chimera)",
    .nearest_with_flags = "1f1b-v",
    .left_out_of_plan = "it holds two copies of the model",
}};

}  // namespace
}  // namespace pipesim::chimera
