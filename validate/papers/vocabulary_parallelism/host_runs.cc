#include "validate/papers/vocabulary_parallelism/host_runs.h"

#include <array>
#include <fmt/format.h>
#include <utility>

#include "sim/core/error.h"
#include "sim/read/model.h"
#include "validate/papers/paper_keys.h"

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

constexpr std::array kModels{"vp-4b", "vp-10b", "vp-21b"};

// Fills the model, or the fault.
void read_model_of(HostRun& run, YamlMap& map) {
  const int hidden = size(map, "hidden");
  const int layers = size(map, "layers");
  const int vocabulary = run.model.vocab_size;
  for (const char* name : kModels) {
    const Transformer model = find_model(name, map.value().where());
    if (model.hidden_size != hidden || model.num_layers != layers) continue;
    run.model = model;
    run.model.vocab_size = vocabulary;
    run.model.max_position_embeddings = run.seq;
    return;
  }
  run.fault =
      fmt::format("no 1F1B model of the paper has {} layers of hidden size {}", layers, hidden);
}

// Runs in which a GPU is a stage: the only ones of the artifact.
void check_ranks(HostRun& run, YamlMap& map) {
  for (const char* key : {"tp", "dp"}) {
    const auto ranks = map.find(key);
    if (ranks && ranks->integer(1, 1 << 24) != 1) {
      run.fault = fmt::format("{} is not 1: the stages' seconds are of one GPU each", key);
    }
  }
  const auto stages = map.find("pp");
  if (stages && stages->integer(1, 1 << 24) != run.devices) {
    run.fault = "pp is not the number of GPUs: the stages' seconds are of one GPU each";
  }
}

HostRun read_run(const YamlValue& value) {
  YamlMap map(value);
  HostRun run;
  run.method = map.require("method_csv", "base, redis, vocab, synctwice or interlaced")
                   .choice(method_names(Naming::kArtifact));
  run.placement = placement_of_method(run.method);
  run.devices = size(map, "gpus");
  run.microbatches = size(map, "num_microbatches");
  run.micro_batch = size(map, "micro_batch");
  run.seq = size(map, "seq");
  run.iteration = Seconds(map.require("iter_ms", "milliseconds").number(1e-9, 1e12) * 1e-3);
  run.model.vocab_size = size(map, "vocab");
  read_model_of(run, map);
  check_ranks(run, map);
  run.forward = microseconds(map, "F_us_per_stage", run.devices);
  run.backward = microseconds(map, "B_us_per_stage", run.devices);
  const bool shared = is_sharded(run.placement);
  if (shared) {
    run.output = microseconds(map, "vocab_out_us_per_stage", run.devices);
    run.input_forward = microseconds(map, "col28_us_per_stage", run.devices);
    run.input_backward = microseconds(map, "col29_us_per_stage", run.devices);
  } else {
    run.last_layers = static_cast<int>(
        map.require("layers_last_stage", "decoder layers of the last stage").integer(0, 1 << 20));
    if (run.fault.empty() && run.last_layers > run.model.num_layers) {
      run.fault = "the last stage has more layers than the model";
    }
  }
  finish_row(map, {"name", "method_paper", "global_batch", "ffn", "heads", "layers_last_stage",
                   "tflops_per_gpu", "bubble_pct", "mean_busy_ms_per_gpu",
                   "mem_max_allocated_MB_min_over_ranks", "mem_max_allocated_MB_max_over_ranks",
                   "mem_max_reserved_MB", "vocab_out_us_per_stage", "col28_us_per_stage",
                   "col29_us_per_stage", "col30_per_stage"});
  return run;
}

struct Method {
  std::string_view paper;
  std::string_view artifact;
  VocabularyPlacement placement;
};
constexpr std::array<Method, 5> kMethods{
    {{"Baseline", "base", VocabularyPlacement::kFirstLast},
     {"Redis", "redis", VocabularyPlacement::kRedistributed},
     {"Vocab-1", "synctwice", VocabularyPlacement::kVocab1},
     {"Vocab-2", "vocab", VocabularyPlacement::kVocab2},
     {"Interlaced", "interlaced", VocabularyPlacement::kInterlaced}}};

}  // namespace

std::string HostRun::text() const {
  const std::string named = is_sharded(placement) ? std::string(to_text(placement)) : method;
  return fmt::format("{} GPUs, seq {}, vocabulary {}k, {}", devices, seq, model.vocab_size / 1000,
                     named);
}

std::vector<HostRun> read_host_runs(const YamlValue& rows) {
  std::vector<HostRun> runs;
  for (const YamlValue& row : rows.list()) runs.push_back(read_run(row));
  return runs;
}

std::vector<std::string> method_names(Naming naming) {
  std::vector<std::string> names;
  for (const Method& each : kMethods) {
    names.emplace_back(naming == Naming::kPaper ? each.paper : each.artifact);
  }
  return names;
}

VocabularyPlacement placement_of_method(std::string_view name) {
  for (const Method& each : kMethods) {
    if (name == each.paper || name == each.artifact) return each.placement;
  }
  throw LogicError(fmt::format("no method is called {}", name));
}

}  // namespace pipesim::vocabulary_parallelism
