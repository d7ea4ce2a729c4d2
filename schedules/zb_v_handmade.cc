// ZB-V, made by hand (Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241, section 6):
// the order in which PyTorch's native ScheduleZBVZeroBubble runs it. Two chunks per device in
// V-shape: device 0 holds the first and the last stage, so that the first backward starts there and
// 1F1B's memory is enough for no bubble where F = B = W.
//
// The order is made for at least 2p-1 microbatches; with fewer, the passes of those that are not
// there are left out.
#include <algorithm>
#include <array>

#include "sim/planning/schedule.h"

namespace pipesim::zb_v_handmade {
namespace {

// Writes one device's list; each kind of pass of each chunk comes in order of microbatches.
class Order {
 public:
  Order(std::vector<Pass>& list, int microbatches) : list_(list), microbatches_(microbatches) {}

  void run(PassKind kind, int chunk) {
    const int microbatch = count(kind, chunk)++;
    if (microbatch < microbatches_) list_.push_back(make_pass(kind, microbatch, chunk));
  }
  void backward_whole(int chunk) {
    run(PassKind::kB, chunk);
    run(PassKind::kW, chunk);
  }
  int& count(PassKind kind, int chunk) { return counts_[static_cast<size_t>(kind)][chunk]; }

 private:
  std::vector<Pass>& list_;
  int microbatches_;
  std::array<std::array<int, 2>, 3> counts_{};
};

void order_device(Order& order, int device, int devices, int microbatches) {
  for (int i = 0; i < 2 * (devices - device) - 1; ++i) order.run(PassKind::kF, 0);
  for (int i = 0; i < device; ++i) {
    order.run(PassKind::kF, 1);
    order.run(PassKind::kF, 0);
  }
  for (int i = 0; i < devices - device; ++i) {
    order.run(PassKind::kF, 1);
    order.backward_whole(1);
  }
  while (order.count(PassKind::kF, 1) < microbatches) {
    if (order.count(PassKind::kF, 0) < microbatches) order.run(PassKind::kF, 0);
    order.backward_whole(0);
    order.run(PassKind::kF, 1);
    order.backward_whole(1);
  }
  for (int i = 0; i < device; ++i) {
    order.run(PassKind::kB, 0);
    order.run(PassKind::kB, 1);
  }
  for (int i = 0; i < devices - device; ++i) order.backward_whole(0);
  for (const int chunk : {1, 0}) {
    while (order.count(PassKind::kW, chunk) < microbatches) order.run(PassKind::kW, chunk);
  }
}

Program plan(const Problem& problem) {
  const Shape& shape = problem.shape;
  PassLists lists(shape.devices);
  for (int device = 0; device < shape.devices; ++device) {
    auto& list = lists[device];
    list.reserve(6 * shape.microbatches);
    Order order(list, shape.microbatches);
    order_device(order, device, shape.devices, std::max(2 * shape.devices - 1, shape.microbatches));
  }
  return {shape, problem.placement, std::move(lists)};
}

const RegisteredSchedule kZbVHandmade{{
    .name = "zb-v-handmade",
    .summary = "1F1B's memory and no bubble where F = B = W, over two chunks in V-shape",
    .source = "Zero Bubble, arXiv 2401.10241, section 6; PyTorch's ScheduleZBVZeroBubble",
    .order = "V-shape, two chunks; 2(p-d)-1 F0, d times F1 and F0, p-d times F1, B1, W1, then a "
             "whole microbatch's passes in turn",
    .default_chunks = 2,
    .min_chunks = 2,
    .max_chunks = 2,
    .place = [](int devices, int) { return Placement::vee(devices); },
    .plan = plan,
    .fixed_order = everywhere,
    .claims = {.bubble = {.formula = "max(0, 2 (2p-1-m)) F, F of a chunk",
                          .domain = "F = B = W; equal stages, free transfers",
                          .gap = "with unequal times no closed form is known",
                          .holds =
                              [](const Problem& problem) {
                                const StageCost& cost = problem.stage(0);
                                return uniform(problem) && free_transfers(problem) &&
                                       cost.forward == cost.backward_input &&
                                       cost.forward == cost.backward_weight;
                              },
                          .bubble =
                              [](const Problem& problem) {
                                const Shape& shape = problem.shape;
                                const int missing = 2 * shape.devices - 1 - shape.microbatches;
                                return 2 * std::max(0, missing) * problem.stage(0).forward;
                              }},
               .peak = {.formula = "min(2p-1-d, m) + min(d+1, m) chunks",
                        .domain = "everywhere",
                        .holds = [](const Problem&) { return true; },
                        .in_flight =
                            [](const Problem& problem, int device) {
                              const Shape& shape = problem.shape;
                              return std::min(2 * shape.devices - 1 - device, shape.microbatches) +
                                     std::min(device + 1, shape.microbatches);
                            }}},
    .nearest_with_flags = "zb-v",
    .left_out_of_plan = "best plans for the memory that there is, and counts this order",
}};

}  // namespace
}  // namespace pipesim::zb_v_handmade
