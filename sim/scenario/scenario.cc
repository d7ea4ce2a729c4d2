#include "sim/scenario/scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include "sim/core/text.h"
#include "sim/planning/description.h"
#include "sim/planning/schedule.h"

namespace pipesim {

const Schedule& schedule_of(const ScheduleChoice& choice) {
  if (choice.described) return choice.described->schedule;
  const auto placement = choice.options.find("placement");
  return *find_schedule(choice.name, placement == choice.options.end()
                                         ? std::string_view()
                                         : std::get<std::string>(placement->second));
}

std::optional<BlockRun> blocks_of(const ScheduleChoice& choice) {
  if (choice.program) {
    return choice.program->pairs().empty() ? std::nullopt : std::optional(BlockRun{});
  }
  const Schedule& schedule = schedule_of(choice);
  return schedule.blocks == nullptr ? std::nullopt : schedule.blocks(choice.options);
}

PairOptions pair_options(const ScheduleChoice& choice) {
  const BlockRun run = blocks_of(choice).value_or(BlockRun{});
  return {.delay_weight = run.weight_apart, .early_attention = run.early_attention};
}

Placement placement_of(const ScheduleChoice& choice, int devices) {
  if (choice.program) return choice.program->placement();
  return schedule_of(choice).place(devices, chunks_of(choice));
}

int chunks_of(const ScheduleChoice& choice) {
  if (choice.program) return choice.program->shape().chunks;
  return choice.chunks.value_or(schedule_of(choice).default_chunks);
}

int splits_of(const ScheduleChoice& choice) {
  if (choice.program) return choice.program->shape().splits;
  if (!choice.slices.empty()) return static_cast<int>(choice.slices.size());
  if (choice.slice_units) return *choice.slice_units;
  if (choice.equal_slices) return choice.equal_slices->count;
  const auto given = choice.options.find("splits");
  return given == choice.options.end() ? schedule_of(choice).default_splits
                                       : static_cast<int>(std::get<long>(given->second));
}

void sum_layers(GivenCost& cost) {
  const GivenLayers& layers = *cost.layers;
  const auto all = [&layers](Seconds one) {
    std::vector<Seconds> seconds;
    for (const int count : layers.count) seconds.push_back(count * one);
    return seconds;
  };
  cost.forward = all(total(layers.forward));
  cost.backward_input = all(total(layers.backward));
  cost.backward_weight = all(layers.backward.experts_weight + layers.backward.attention_weight);
}

RecomputeGranularity granularity_of(const ScheduleChoice& choice) {
  return choice.recompute ? choice.recompute->granularity : RecomputeGranularity();
}

int recompute_chunks_of(const ScheduleChoice& choice) {
  if (granularity_of(choice) != RecomputeGranularity::kFull) return 0;
  return choice.recompute->chunks.value_or(chunks_of(choice));
}

int offload_chunks_of(const ScheduleChoice& choice) {
  const auto& offload = choice.offload;
  if (!offload) return 0;
  const Schedule* schedule = choice.program ? nullptr : &schedule_of(choice);
  if (schedule != nullptr && schedule->offloads()) return 0;
  if (!offload->which.empty()) return static_cast<int>(offload->which.size());
  return offload->chunks.value_or(chunks_of(choice));
}

std::vector<int> numbers_of(const OffloadedMicrobatches& some, int microbatches) {
  std::vector<int> numbers = some.listed;
  if (numbers.empty()) {
    for (int i = some.from; i <= some.to.value_or(microbatches - 1); i += some.every) {
      numbers.push_back(i);
    }
  }
  if (!some.count) return numbers;
  std::vector<int> spread;
  const auto all = static_cast<long>(numbers.size());
  for (long i = 0; i < all; ++i) {
    if (i * *some.count % all < *some.count) spread.push_back(numbers[i]);
  }
  return spread;
}

std::string scope_text(const Offload& offload) {
  std::vector<std::string> parts;
  if (!offload.which.empty()) {
    parts.push_back(fmt::format("chunks: [{}]", fmt::join(offload.which, ", ")));
  } else if (offload.chunks) {
    parts.push_back(fmt::format("chunks: {}", *offload.chunks));
  }
  if (offload.ratio < 1) parts.push_back(fmt::format("ratio: {}", offload.ratio));
  const OffloadedMicrobatches& some = offload.microbatches;
  if (!some.listed.empty()) {
    parts.push_back(fmt::format("microbatches: [{}]", fmt::join(some.listed, ", ")));
  } else if (!some.all()) {
    std::vector<std::string> of;
    if (some.from > 0) of.push_back(fmt::format("from: {}", some.from));
    if (some.to) of.push_back(fmt::format("to: {}", *some.to));
    if (some.every > 1) of.push_back(fmt::format("every: {}", some.every));
    if (some.count) of.push_back(fmt::format("count: {}", *some.count));
    parts.push_back(fmt::format("microbatches: {{{}}}", fmt::join(of, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool copies_by_itself(const ScheduleChoice& choice) {
  return choice.program ? choice.program->copies() != nullptr : schedule_of(choice).copies();
}

std::shared_ptr<const Program> read_program(const ScheduleChoice& choice,
                                            VocabularyPlacement vocabulary) {
  const auto& program = choice.program;
  if (!program || program->vocabulary() == vocabulary) return program;
  const bool shares = is_sharded(program->vocabulary());
  if (shares != is_sharded(vocabulary)) {
    throw InputError(
        choice.where,
        fmt::format("{} has {} a vocabulary that all devices share{}", choice.name,
                    shares ? "passes of" : "no passes of",
                    shares ? ": expected 'vocabulary: vocab-1', vocab-2 or interlaced" : ""));
  }
  if (!shares) return program;
  return std::make_shared<const Program>(program->with_vocabulary(vocabulary));
}

}  // namespace pipesim
