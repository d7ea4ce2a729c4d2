// The input of a schedule: shape, placement, seconds and bytes of every stage, the memory limit,
// which time counts and its own options. Never a cost model, a clock or the name of a GPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/core/units.h"
#include "sim/pipeline/placement.h"
#include "sim/pipeline/shape.h"
#include "sim/pipeline/vocabulary.h"

namespace pipesim {

// Cost of one unit (a microbatch, or one of its sequence splits) on one virtual stage. Nominal
// values: stragglers and jitter change only the run.
struct StageCost {
  Seconds forward;
  Seconds backward_input;
  Seconds backward_weight;  // BW takes backward_input + backward_weight
  // FB of F and BW; without it a schedule with overlapped blocks is refused.
  std::optional<Seconds> overlapped;
  Seconds transfer;    // to or from the downstream stage; 0 on the same device
  Bytes activation;    // acquired by F
  Bytes weight_stash;  // of that, what W still needs after B
  // Under recompute F acquires the checkpoint only (its input), R the rest of the activation.
  std::optional<Seconds> recompute = {};  // R; without it as long as forward
  Bytes checkpoint = {};
  // Seconds to copy an activation's offloaded share to the host and back, while the link carries
  // copies both ways.
  Seconds copy_out = {};
  Seconds copy_in = {};
};

// Units that cost alike, where not all do (batch.lengths, causal slices).
struct UnitKind {
  // Bytes of its messages and collectives and work of its vocabulary passes, to what the problem
  // says of them.
  double size = 1;
  std::vector<StageCost> stages;  // by virtual stage
};

// The time of an order that counts: the iteration. Where iterations overlap it is the longest span
// of a device (Evaluation::cost), else the makespan.
enum class Objective { kCost, kMakespan };

using OptionValue = std::variant<bool, long, double, std::string>;

struct Problem {
  Shape shape;
  Placement placement = Placement::looped(1, 1);
  std::vector<StageCost> stages;  // by virtual stage
  // Where units differ, what each costs; `stages` is then what is planned with: the mean seconds
  // and the largest bytes. Empty: all units cost what `stages` says.
  std::vector<UnitKind> kinds = {};
  std::vector<std::uint32_t> kind_of_unit = {};
  // FB of two chunks of a device, by virtual stage of F and by chunk of BW. A stage has
  // Placement::chunks() values; those of chunks that the device lacks count nothing. Empty: what
  // block_seconds (sim/execution/evaluate.h) makes of the two stages' own.
  std::vector<Seconds> blocks = {};
  std::optional<Bytes> activation_limit;  // per device
  Objective objective = Objective::kCost;
  // Chunks of every device that offload (sim/execution/with_offload.h), and by how many backwards
  // of their stage their copies back end before they are needed.
  int offload_chunks = 0;
  double prefetch = 1;
  double offload_ratio = 1;  // share of an activation that is copied; the rest stays
  int devices_per_host_link = 1;
  double copy_alone_factor = 1;  // on a copy while its link carries none the other way
  // Chunks of every device, from the first, that recompute. A schedule may place their R itself;
  // where it does not, `with_recompute` does so after it.
  int recompute_chunks = 0;
  VocabularyPlacement vocabulary = VocabularyPlacement::kFirstLast;
  std::vector<VocabularyCost> vocabulary_costs;  // by device, when it is sharded
  BarrierSeconds barriers{};
  std::map<std::string, OptionValue, std::less<>>
      options;  // checked against the schedule's own list

  [[nodiscard]] const StageCost& stage(int vs) const { return stages[vs]; }
  [[nodiscard]] const StageCost& stage(int vs, std::uint32_t unit) const {
    return kinds.empty() ? stages[vs] : kinds[kind_of_unit[unit]].stages[vs];
  }
  [[nodiscard]] std::uint32_t kind(std::uint32_t unit) const {
    return kinds.empty() ? 0 : kind_of_unit[unit];
  }
  [[nodiscard]] double size(std::uint32_t unit) const {
    return kinds.empty() ? 1 : kinds[kind_of_unit[unit]].size;
  }

  // Seconds of the message from a stage to its neighbour, either way; 0 within a stage.
  [[nodiscard]] Seconds transfer(int from, int to) const {
    return from == to ? Seconds(0) : stage(std::min(from, to)).transfer;
  }
  [[nodiscard]] Seconds transfer(int from, int to, std::uint32_t unit) const {
    return from == to ? Seconds(0) : stage(std::min(from, to), unit).transfer;
  }
  [[nodiscard]] Seconds barrier(Barrier each, std::uint32_t unit) const {
    return size(unit) * barriers[each];
  }

  // The largest activation that one microbatch keeps on a device: the unit of a relative memory
  // limit.
  [[nodiscard]] Bytes device_activation() const {
    Bytes largest;
    for (int device = 0; device < shape.devices; ++device) {
      Bytes held;
      for (int chunk = 0; chunk < placement.chunks(device); ++chunk) {
        held += stage(placement.virtual_stage(device, chunk)).activation;
      }
      largest = std::max(largest, shape.splits * (held / placement.directions()));
    }
    return largest;
  }

  // The option's value, or nothing when it was not given.
  template <class T>
  [[nodiscard]] std::optional<T> option(std::string_view name) const {
    const auto found = options.find(name);
    return found == options.end() ? std::nullopt : std::optional<T>(std::get<T>(found->second));
  }
};

}  // namespace pipesim
