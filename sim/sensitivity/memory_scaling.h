// A GPU's bytes at other parallel sizes: each size changes alone, the others stay.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/enum_array.h"
#include "sim/core/units.h"
#include "sim/scenario/choice_columns.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// Each of the GPU that holds most of it.
enum class HeldPart : std::uint8_t {
  kWeights,
  kGradients,
  kOptimizer,
  kVocabulary,  // all three of embedding and output, which are no part of the above
  kMicrobatch,  // activations of one microbatch, on all stages of the GPU
  kActivation,  // of all microbatches that the schedule has in flight
  kMemory       // all together, with buffers and overhead
};
inline constexpr std::array<std::string_view, 7> kHeldParts{
    "weights",    "gradients",       "optimizer",  "vocabulary",
    "microbatch", "peak_activation", "peak_memory"};
template <>
inline constexpr std::size_t kSizeOf<HeldPart> = kHeldParts.size();

struct ScaledMemory {
  std::string_view axis;  // the key below `parallel`
  int size = 1;
  int gpus = 1;
  std::optional<EnumArray<HeldPart, Bytes>> held = {};
  std::string refusal = {};  // why there is none
};

struct MemoryScaling {
  std::string schedule;             // its label, for people
  ChoiceColumns choice;             // for tables
  std::vector<ScaledMemory> sizes;  // by axis, then by size
};

// The scenario with another size at a key below `parallel`; throws as reading it does.
using ScenarioAt = std::function<Scenario(std::string_view key, int size)>;

// Scales the scenario's `choice`-th schedule along data, tensor, context and pipeline, and for
// models with experts along expert ranks. It is planned anew and replayed for every power of two up
// to 64 and its own size. InputError where the scenario has no model.
MemoryScaling memory_scaling(const Scenario& scenario, size_t choice, const ScenarioAt& at);

// k of the part ~ size^-k, between the smallest and the largest size that have an answer. It is 1
// where the part follows the size, 0 where it does not. Nothing with fewer than two, or where it
// takes no bytes.
std::optional<double> exponent(const MemoryScaling& scaling, std::string_view axis, HeldPart part);

// A row per size in GiB, the exponents, and what is left out with the reason.
std::string memory_scaling_table(const MemoryScaling& scaling);
// All schedules, a row per size, bytes; cells are empty where a size is refused.
std::string memory_scaling_csv(std::span<const MemoryScaling> all);

}  // namespace pipesim
