#include "sim/scenario/draw_batch.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <numeric>

#include "models/layer_work.h"
#include "sim/scenario/delayed_packing.h"

namespace pipesim {
namespace {

// Draws documents that fill `tokens`, the last one cut; from a list, takes all.
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

size_t samples_of(const Batch& batch) {
  return static_cast<size_t>(batch.micro_batch_size.value_or(1));
}

// One of every sample.
std::vector<double> drawn_of_samples(const Draw& draw, const Batch& batch, std::uint64_t seed,
                                     std::string_view what) {
  const size_t samples = samples_of(batch);
  const size_t count = samples * static_cast<size_t>(batch.microbatches);
  std::vector<double> values = drawn(draw, seed, count);
  if (values.size() == count) return values;
  throw InputError(draw.where,
                   fmt::format("{} {}, but {} microbatches of {} samples need {}", values.size(),
                               what, batch.microbatches, samples, count));
}

// micro_batch_size documents to every microbatch.
std::vector<Documents> one_after_the_other(const UnequalBatch& unequal, const Batch& batch,
                                           std::uint64_t seed) {
  const std::vector<double> values = drawn_of_samples(unequal.draw, batch, seed, "lengths");
  std::vector<Documents> documents(static_cast<size_t>(batch.microbatches));
  for (size_t i = 0; i < values.size(); ++i) {
    documents[i / samples_of(batch)].push_back(
        static_cast<int>(std::max(1L, std::lround(values[i]))));
  }
  return documents;
}

double tokens_of_image(const Scenario& scenario) {
  const Encoder& encoder = *scenario.modelled->model.encoder;
  return 1.0 * encoder.patches / encoder.merged;
}

std::vector<int> images_of_microbatches(const Draw& draw, const Scenario& scenario,
                                        std::uint64_t seed) {
  const Batch& batch = scenario.batch;
  const double of_image = tokens_of_image(scenario);
  std::vector<int> images(static_cast<size_t>(batch.microbatches));
  const std::vector<double> values = drawn_of_samples(draw, batch, seed, "numbers of images");
  for (size_t i = 0; i < values.size(); ++i) {
    const long own = std::lround(values[i]);
    if (static_cast<double>(own) * of_image > *batch.seq_length) {
      throw InputError(draw.where,
                       fmt::format("{} images of {:g} tokens do not go into seq_length {}", own,
                                   of_image, *batch.seq_length));
    }
    images[i / samples_of(batch)] += static_cast<int>(own);
  }
  return images;
}

// Keeps as many drawn images as the documents of a microbatch have room for.
void fit_images(const Draw& draw, const Scenario& scenario, UnequalBatch& unequal) {
  const double of_image = tokens_of_image(scenario);
  for (size_t i = 0; i < unequal.images.size(); ++i) {
    const Documents& documents = unequal.documents[i];
    const long tokens = std::accumulate(documents.begin(), documents.end(), 0L);
    const int room = static_cast<int>(static_cast<double>(tokens) / of_image);
    if (unequal.images[i] <= room) continue;
    if (draw.listed()) {
      throw InputError(draw.where,
                       fmt::format("{} images of {:g} tokens do not go into the {} tokens of "
                                   "microbatch {}",
                                   unequal.images[i], of_image, tokens, i));
    }
    unequal.images[i] = room;
  }
}

// Tokens of an even microbatch.
long capacity_of(const Batch& batch) {
  return static_cast<long>(*batch.micro_batch_size) * *batch.seq_length;
}

// Documents of one batch, which fills the microbatches.
Documents batch_of(const UnequalBatch& unequal, const Batch& batch, std::uint64_t seed) {
  const long capacity = capacity_of(batch);
  Documents documents = enough(unequal.draw, seed, capacity * batch.microbatches);
  const long tokens = std::accumulate(documents.begin(), documents.end(), 0L);
  const long made = (tokens + capacity - 1) / capacity;
  if (made != batch.microbatches) {
    throw InputError(unequal.draw.where, fmt::format("{} tokens fill {} microbatches of {}, not {}",
                                                     tokens, made, capacity, batch.microbatches));
  }
  return documents;
}

std::function<double(int)> work_of(const Scenario& scenario) {
  const Modelled& modelled = *scenario.modelled;
  return [&modelled](int tokens) {
    return model_flops(modelled.model, tokens, modelled.context.causal).value();
  };
}

std::vector<Documents> packed(const UnequalBatch& unequal, const Scenario& scenario,
                              std::uint64_t seed) {
  const auto microbatches = static_cast<size_t>(scenario.batch.microbatches);
  const long capacity = capacity_of(scenario.batch);
  const Documents documents = batch_of(unequal, scenario.batch, seed);
  if (unequal.packing == Packing::kGreedy) {
    return packed_in_order(documents, microbatches, capacity);
  }
  if (documents.size() < microbatches) {
    throw InputError(unequal.draw.where,
                     fmt::format("{} documents cannot be packed into {} microbatches",
                                 documents.size(), microbatches));
  }
  return packed_by_work(documents, microbatches, capacity, unequal.room, work_of(scenario));
}

// Continues a stream that began with the draw's first seed.
std::vector<Documents> delayed(const UnequalBatch& unequal, const Scenario& scenario,
                               std::uint64_t seed) {
  DelayedPacking stream(static_cast<size_t>(scenario.batch.microbatches),
                        capacity_of(scenario.batch), unequal.room, unequal.outliers,
                        work_of(scenario));
  std::vector<Documents> packed;
  for (std::uint64_t now = std::min(unequal.draw.seed, seed); now <= seed; ++now) {
    packed = stream.next(batch_of(unequal, scenario.batch, now));
  }
  if (std::ranges::count(packed, Documents()) == 0) return packed;
  throw InputError(
      unequal.draw.where,
      fmt::format("of the batch of seed {} so many documents wait that a microbatch is "
                  "empty: give fewer outliers, or longer ones",
                  seed));
}

}  // namespace

void draw_batch(Scenario& scenario, std::uint64_t seed) {
  if (!scenario.batch.unequal) return;
  UnequalBatch& unequal = *scenario.batch.unequal;
  if (unequal.of == UnequalBatch::Of::kImages) {
    unequal.images = images_of_microbatches(unequal.draw, scenario, seed);
    return;
  }
  if (unequal.lengths()) {
    if (unequal.packing == Packing::kNone) {
      unequal.documents = one_after_the_other(unequal, scenario.batch, seed);
    } else if (unequal.outliers.empty()) {
      unequal.documents = packed(unequal, scenario, seed);
    } else {
      unequal.documents = delayed(unequal, scenario, seed);
    }
    if (const auto& images = unequal.images_draw) {
      // Gives images other numbers than lengths of the same seed.
      constexpr std::uint64_t kOfImages = 0x9E3779B97F4A7C15;
      const std::uint64_t own = images->seed + (seed - unequal.draw.seed);
      unequal.images = images_of_microbatches(*images, scenario, own ^ kOfImages);
      fit_images(*images, scenario, unequal);
    }
    return;
  }
  const auto count = static_cast<size_t>(scenario.batch.microbatches);
  unequal.factors = drawn(unequal.draw, seed, count);
  if (unequal.factors.size() == count) return;
  throw InputError(unequal.draw.where, fmt::format("{} factors, but there are {} microbatches",
                                                   unequal.factors.size(), count));
}

void divide_microbatches(Scenario& scenario, int parts, int micro_batch_size) {
  Batch& batch = scenario.batch;
  batch.microbatches *= parts;
  if (parts == 1 || !batch.unequal) return;
  batch.micro_batch_size = micro_batch_size;
  batch.unequal->order = MicrobatchOrder::kGiven;
  draw_batch(scenario, batch.seed());
}

}  // namespace pipesim
