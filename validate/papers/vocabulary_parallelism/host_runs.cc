#include "validate/papers/vocabulary_parallelism/host_runs.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "sim/scenario/read_model.h"

namespace pipesim::vocabulary_parallelism {
namespace {

int size(YamlMap& map, const char* key) {
  return static_cast<int>(map.require(key, "a whole number").integer(1, 1 << 24));
}

std::vector<Seconds> microseconds(YamlMap& map, const char* key, int devices) {
  const YamlValue value = map.require(key, "microseconds of every device");
  std::vector<Seconds> seconds;
  for (const YamlValue& each : value.list()) seconds.emplace_back(each.number(0, 1e12) * 1e-6);
  if (std::cmp_not_equal(seconds.size(), devices)) value.fail("expected one for every device");
  return seconds;
}

Transformer model_of(YamlMap& map, int seq) {
  const int hidden = size(map, "hidden");
  const int layers = size(map, "layers");
  for (const char* name : {"vp-4b", "vp-10b", "vp-21b"}) {
    Transformer model = find_model(name, map.value().where());
    if (model.hidden_size != hidden || model.num_layers != layers) continue;
    model.vocab_size = size(map, "vocab");
    model.max_position_embeddings = seq;
    return model;
  }
  map.value().fail("no model of the paper has these sizes");
}

HostRun read_run(const YamlValue& value) {
  YamlMap map(value);
  HostRun run;
  run.method = map.require("method_csv", "base, redis, vocab, synctwice or interlaced").text();
  run.placement = placement_of_method(run.method);
  run.devices = size(map, "gpus");
  run.microbatches = size(map, "num_microbatches");
  run.micro_batch = size(map, "micro_batch");
  run.seq = size(map, "seq");
  run.iteration = Seconds(map.require("iter_ms", "milliseconds").number(1e-9, 1e12) * 1e-3);
  run.model.vocab_size = size(map, "vocab");
  if (!run.placement) return run;
  run.model = model_of(map, run.seq);
  run.forward = microseconds(map, "F_us_per_stage", run.devices);
  run.backward = microseconds(map, "B_us_per_stage", run.devices);
  if (!is_sharded(*run.placement)) {
    run.last_layers = static_cast<int>(
        map.require("layers_last_stage", "decoder layers of the last stage").integer(0, 1 << 20));
    return run;
  }
  run.output = microseconds(map, "vocab_out_us_per_stage", run.devices);
  run.input_forward = microseconds(map, "col28_us_per_stage", run.devices);
  run.input_backward = microseconds(map, "col29_us_per_stage", run.devices);
  return run;
}

}  // namespace

std::string HostRun::text() const {
  const std::string named =
      placement && is_sharded(*placement) ? std::string(to_text(*placement)) : method;
  return fmt::format("{} GPUs, seq {}, vocabulary {}k, {}", devices, seq, model.vocab_size / 1000,
                     named);
}

std::vector<HostRun> read_host_runs(const YamlValue& rows) {
  std::vector<HostRun> runs;
  for (const YamlValue& row : rows.list()) runs.push_back(read_run(row));
  return runs;
}

std::optional<VocabularyPlacement> placement_of_method(std::string_view name) {
  using enum VocabularyPlacement;
  constexpr std::array<std::pair<std::string_view, VocabularyPlacement>, 10> kNames{
      {{"Baseline", kFirstLast},
       {"base", kFirstLast},
       {"Redis", kRedistributed},
       {"redis", kRedistributed},
       {"Vocab-1", kVocab1},
       {"synctwice", kVocab1},
       {"Vocab-2", kVocab2},
       {"vocab", kVocab2},
       {"Interlaced", kInterlaced},
       {"interlaced", kInterlaced}}};
  const auto* const found = std::ranges::find(kNames, name, &decltype(kNames)::value_type::first);
  return found == kNames.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace pipesim::vocabulary_parallelism
