// Collectives of tensor ranks around the matrices that they divide, as Megatron-LM has them
// (models/layer_work.h).
#pragma once

#include <optional>

#include "models/layer_context.h"
#include "models/work.h"
#include "sim/pipeline/pass.h"

namespace pipesim {

// The collective of F, B or W where values enter a matrix divided by its outputs, or where they
// leave one divided by its inputs. Empty where the pass has none.
//
// Without sequence parallelism F sums what leaves, and B the gradient of what entered. With it F
// gathers and scatters, B does so the other way round, and W gathers what entered once more.
inline std::optional<CollectiveKind> tensor_exchange(const LayerContext& context, PassKind pass,
                                                     bool enters) {
  if (context.tensor == 1 || (pass == PassKind::kW && !enters)) return std::nullopt;
  if (!context.sequence_parallel) {
    const bool sums = pass == (enters ? PassKind::kB : PassKind::kF);
    return sums ? std::optional(CollectiveKind::kAllReduce) : std::nullopt;
  }
  const bool gathers = enters == (pass != PassKind::kB);
  return gathers ? CollectiveKind::kAllGather : CollectiveKind::kReduceScatter;
}

}  // namespace pipesim
