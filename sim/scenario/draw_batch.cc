#include "sim/scenario/draw_batch.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

#include "models/layer_work.h"

namespace pipesim {
namespace {

// Of documents that fill `tokens`, the last one cut; of a list all.
Documents enough(const Draw& draw, std::uint64_t seed, long tokens) {
  Documents documents;
  long sum = 0;
  for (size_t asked = 64;; asked *= 2) {
    const std::vector<double> values = drawn(draw, seed, asked);
    for (size_t i = documents.size(); i < values.size(); ++i) {
      const long whole = std::max(1L, std::lround(values[i]));
      if (!draw.listed() && sum >= tokens) return documents;
      documents.push_back(static_cast<int>(draw.listed() ? whole : std::min(whole, tokens - sum)));
      sum += documents.back();
    }
    if (draw.listed()) return documents;
  }
}

// micro_batch_size documents to every microbatch.
std::vector<Documents> one_after_the_other(const UnequalBatch& unequal, const Batch& batch,
                                           std::uint64_t seed) {
  const auto samples = static_cast<size_t>(batch.micro_batch_size.value_or(1));
  const size_t count = samples * static_cast<size_t>(batch.microbatches);
  const std::vector<double> values = drawn(unequal.draw, seed, count);
  if (values.size() != count) {
    throw InputError(unequal.draw.where,
                     fmt::format("{} lengths, but {} microbatches of {} samples need {}",
                                 values.size(), batch.microbatches, samples, count));
  }
  std::vector<Documents> documents(static_cast<size_t>(batch.microbatches));
  for (size_t i = 0; i < count; ++i) {
    documents[i / samples].push_back(static_cast<int>(std::max(1L, std::lround(values[i]))));
  }
  return documents;
}

std::vector<Documents> packed(const UnequalBatch& unequal, const Scenario& scenario,
                              std::uint64_t seed) {
  const Batch& batch = scenario.batch;
  const auto microbatches = static_cast<size_t>(batch.microbatches);
  const long capacity = static_cast<long>(*batch.micro_batch_size) * *batch.seq_length;
  const Documents documents =
      enough(unequal.draw, seed, capacity * static_cast<long>(microbatches));
  const long tokens = std::accumulate(documents.begin(), documents.end(), 0L);
  const long made = (tokens + capacity - 1) / capacity;
  if (made != batch.microbatches) {
    throw InputError(unequal.draw.where, fmt::format("{} tokens fill {} microbatches of {}, not {}",
                                                     tokens, made, capacity, batch.microbatches));
  }
  if (unequal.packing == Packing::kGreedy) {
    return packed_in_order(documents, microbatches, capacity);
  }
  const Modelled& modelled = *scenario.modelled;
  const auto work = [&modelled](int tokens_of_one) {
    return model_flops(modelled.model, tokens_of_one, modelled.context.causal).value();
  };
  if (documents.size() < microbatches) {
    throw InputError(unequal.draw.where,
                     fmt::format("{} documents cannot be packed into {} microbatches",
                                 documents.size(), microbatches));
  }
  return packed_by_work(documents, microbatches, capacity, unequal.room, work);
}

}  // namespace

void draw_batch(Scenario& scenario, std::uint64_t seed) {
  if (!scenario.batch.unequal) return;
  UnequalBatch& unequal = *scenario.batch.unequal;
  if (unequal.lengths) {
    unequal.documents = unequal.packing == Packing::kNone
                            ? one_after_the_other(unequal, scenario.batch, seed)
                            : packed(unequal, scenario, seed);
    return;
  }
  const auto count = static_cast<size_t>(scenario.batch.microbatches);
  unequal.factors = drawn(unequal.draw, seed, count);
  if (unequal.factors.size() == count) return;
  throw InputError(unequal.draw.where, fmt::format("{} factors, but there are {} microbatches",
                                                   unequal.factors.size(), count));
}

}  // namespace pipesim
