// Hanayo (Liu et al., arXiv 2308.15762): the model's stages run over the devices in w waves, each
// down and back up, so that the turning points cost no message and no weights are held twice. The
// order is that of the public generator in topal-team/elf; the authors' own was not found.
#include <algorithm>
#include <fmt/format.h>

#include "sim/planning/schedule.h"

namespace pipesim::hanayo {
namespace {

// The turns of one device. Chunks with even numbers go down, odd ones come back up.
class Device {
 public:
  Device(const Shape& shape, std::vector<Pass>& list) : shape_(shape), list_(list) {}

  void plan(int device) {
    const int m = shape_.microbatches;
    for (int i = 0; i < std::min(shape_.devices - device, m); ++i) forward_down();
    for (int chunk = 1; chunk < shape_.chunks; chunk += 2) {
      for (int i = 0; i < m; ++i) {
        list_.push_back(make_pass(PassKind::kF, i, chunk));
        down_ < turns() ? forward_down() : backward_down();
      }
    }
    for (int chunk = shape_.chunks - 2; chunk >= 0; chunk -= 2) {
      for (int i = 0; i < m; ++i) {
        list_.push_back(make_pass(PassKind::kBW, i, chunk));
        if (back_ < turns()) backward_down();
      }
    }
  }

 private:
  [[nodiscard]] int turns() const { return shape_.microbatches * shape_.chunks / 2; }

  void forward_down() {
    const int m = shape_.microbatches;
    list_.push_back(make_pass(PassKind::kF, down_ % m, 2 * (down_ / m)));
    ++down_;
  }
  // Backward goes down where forward came up.
  void backward_down() {
    const int m = shape_.microbatches;
    list_.push_back(make_pass(PassKind::kBW, back_ % m, shape_.chunks - 1 - 2 * (back_ / m)));
    ++back_;
  }

  const Shape& shape_;
  std::vector<Pass>& list_;
  int down_ = 0, back_ = 0;
};

Program plan(const Problem& problem) {
  PassLists lists(problem.shape.devices);
  for (int d = 0; d < problem.shape.devices; ++d) Device(problem.shape, lists[d]).plan(d);
  return {problem.shape, problem.placement, std::move(lists)};
}

std::optional<Refusal> refuse(const Problem& problem) {
  if (problem.shape.chunks % 2 == 0) return std::nullopt;
  Refusal refusal{fmt::format("hanayo has two chunks a wave, and {} is odd", problem.shape.chunks),
                  problem.shape};
  ++refusal.nearest.chunks;
  return refusal;
}

bool fills(const Problem& problem) { return problem.shape.microbatches >= problem.shape.devices; }

const RegisteredSchedule kHanayo{{
    .name = "hanayo",
    .summary =
        "v/2 waves over the devices, down and up: 1F1B's bubble divided, no second copy of weights",
    .source = "Hanayo, arXiv 2308.15762; order: topal-team/elf",
    .order = "v/2 waves: F of an odd chunk and F of an even one (then BW of an odd one) in turn; "
             "BW of an even "
             "chunk and of an odd one in turn",
    .default_chunks = 2,
    .min_chunks = 2,
    .max_chunks = 1024,
    .place = Placement::wave,
    .refuse = refuse,
    .plan = plan,
    .fixed_order = everywhere,
    .whole_backward = true,
    .claims = {.bubble = {.formula = "2(p-1) max(F, B+W), F, B, W of a chunk",
                          .domain = "m >= p; equal stages, free transfers",
                          .holds =
                              [](const Problem& problem) {
                                return fills(problem) && uniform(problem) &&
                                       free_transfers(problem);
                              },
                          .bubble =
                              [](const Problem& problem) {
                                const StageCost& cost = problem.stage(0);
                                return 2 * (problem.shape.devices - 1) *
                                       std::max(cost.forward,
                                                cost.backward_input + cost.backward_weight);
                              }},
               .peak = {.formula = "m v - (p-1-d) chunks",
                        .domain = "m >= p",
                        .holds = fills,
                        .in_flight =
                            [](const Problem& problem, int device) {
                              return problem.shape.microbatches * problem.shape.chunks -
                                     (problem.shape.devices - 1 - device);
                            }}},
    .no_flags = "its authors' runtime is not public",
    .nearest_with_flags = "interleaved-1f1b",
    .left_out_of_plan =
        "it holds nearly every microbatch; interleaved-1f1b divides the bubble in less memory",
}};

}  // namespace
}  // namespace pipesim::hanayo
