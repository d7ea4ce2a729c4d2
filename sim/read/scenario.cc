#include "sim/read/scenario.h"

#include <algorithm>
#include <fmt/format.h>

#include "sim/core/text.h"
#include "sim/planning/schedule.h"
#include "sim/read/band.h"
#include "sim/read/given.h"
#include "sim/read/hardware.h"
#include "sim/read/modelled.h"
#include "sim/read/offload.h"
#include "sim/read/perturb.h"
#include "sim/read/recompute.h"
#include "sim/read/reliability.h"
#include "sim/read/schedules.h"
#include "sim/read/software.h"
#include "sim/read/unequal_batch.h"
#include "sim/read/vocabulary.h"
#include "sim/scenario/gpus.h"

namespace pipesim {
namespace {

constexpr long kMaxDevices = 1 << 16;
constexpr long kMaxMicrobatches = 1 << 20;
constexpr double kMaxPasses = 1L << 28;
constexpr double kMaxPassesOfRuns = 1L << 34;

// The data-parallel ranks that make up so many GPUs.
void read_world_size(YamlMap& map, ParallelSizes& sizes, bool says_data) {
  const auto given = map.find("world_size");
  if (!given || given->is_null()) return;
  const long replica = gpus_of_replica(sizes);
  const long world = given->integer(1, kMaxDevices * kMaxDevices);
  if (world % replica != 0 || world / replica > kMaxDevices) {
    given->fail(
        fmt::format("expected a multiple of tensor x context x pipeline ranks = {}, at most "
                    "{} of them, not {}",
                    replica, kMaxDevices, world));
  }
  const int data = static_cast<int>(world / replica);
  if (says_data && data != sizes.data) {
    given->fail(
        fmt::format("makes {} data-parallel ranks of {} GPUs each, but data_parallel_size "
                    "is {}",
                    data, replica, sizes.data));
  }
  sizes.data = data;
}

ParallelSizes read_parallel(const YamlValue& value, std::vector<ScheduleChoice>& schedules,
                            ModelParallel& model) {
  YamlMap map(value);
  ParallelSizes sizes;
  const auto size = [&map](const char* key) {
    const auto given = map.find(key);
    return given ? static_cast<int>(given->integer(1, kMaxDevices)) : 1;
  };
  sizes.pipeline = size("pipeline_model_parallel_size");
  sizes.tensor = size("tensor_model_parallel_size");
  sizes.data = size("data_parallel_size");
  model = read_model_parallel(map);
  sizes.context = model.context;
  read_world_size(map, sizes, map.find("data_parallel_size").has_value());
  if (const auto chunks = map.find(kChunksKey)) {
    const int common = static_cast<int>(chunks->integer(1, 1024));
    for (ScheduleChoice& choice : schedules) {
      if (choice.program && choice.program->shape().chunks != common) {
        chunks->fail(fmt::format("is {}, but {} has {}", common, choice.name,
                                 choice.program->shape().chunks));
      }
      choice.chunks = choice.chunks.value_or(common);
    }
  }
  map.finish();
  return sizes;
}

// Simulated replicas are some of the data-parallel ones; alone they are all of them.
void read_pipelines(YamlMap& root, const YamlValue& parallel, ParallelSizes& sizes) {
  const auto given = root.find("pipelines");
  if (!given) return;
  const bool says_world_size = YamlMap(parallel).find("world_size").has_value();
  sizes.pipelines = static_cast<int>(given->integer(1, 4096));
  if (sizes.data == 1 && !says_world_size) sizes.data = sizes.pipelines;
  if (sizes.data < sizes.pipelines) {
    given->fail(fmt::format("{} pipelines are simulated, but data_parallel_size is {}{}",
                            sizes.pipelines, sizes.data, says_world_size ? " by world_size" : ""));
  }
}

Batch read_batch(const YamlValue& value, const ParallelSizes& sizes, const std::string& file) {
  YamlMap map(value);
  Batch batch;
  if (const auto size = map.find("micro_batch_size")) {
    batch.micro_batch_size = static_cast<int>(size->integer(1, 1 << 20));
  }
  if (const auto length = map.find("seq_length")) {
    batch.seq_length = static_cast<int>(length->tokens(1, 1 << 28));
  }
  const auto count = map.find("num_microbatches");
  const auto global = map.find("global_batch_size");
  if (count) {
    batch.microbatches = static_cast<int>(count->integer(1, kMaxMicrobatches));
  }
  if (global) {
    const long samples = global->integer(1, 1L << 40);
    const long group = batch.micro_batch_size.value_or(1) * static_cast<long>(sizes.data);
    if (!batch.micro_batch_size) global->fail("needs micro_batch_size beside it");
    if (const std::string doubt = doubt_of_batch(samples, batch.seq_length); !doubt.empty()) {
      global->fail(doubt);
    }
    if (samples % group != 0 || samples / group > kMaxMicrobatches) {
      global->fail(
          fmt::format("expected a multiple of micro_batch_size x data_parallel_size = {}, "
                      "at most {} of them, not {}",
                      group, kMaxMicrobatches, samples));
    }
    const int per_pipeline = static_cast<int>(samples / group);
    if (count && per_pipeline != batch.microbatches) {
      global->fail(fmt::format("makes {} microbatches, but num_microbatches is {}", per_pipeline,
                               batch.microbatches));
    }
    batch.microbatches = per_pipeline;
  } else if (!count) {
    (void)map.require("num_microbatches",
                      "the microbatches of one iteration (or global_batch_size)");
  }
  batch.unequal = read_unequal_batch(map, batch, file);
  map.finish();
  return batch;
}

void read_engine(const YamlValue& value, Scenario& scenario) {
  static const std::vector<std::string> kEngines{"replay", "simgrid"};
  static const std::vector<std::string> kGpus{"timer", "host"};
  std::string name;
  if (value.is_map()) {
    YamlMap map(value);
    name = map.require("name", "replay or simgrid").choice(kEngines);
    if (const auto gpu = map.find("gpu")) {
      scenario.gpu = gpu->choice(kGpus) == "host" ? GpuModel::kHost : GpuModel::kTimer;
      if (name != "simgrid") gpu->fail("is an option of the simgrid engine");
    }
    map.finish();
  } else {
    name = value.choice(kEngines);
  }
  scenario.engine = name == "simgrid" ? EngineKind::kSimGrid : EngineKind::kReplay;
}

void read_optimizer(YamlMap& root, Scenario& scenario) {
  static const std::vector<std::string> kSyncs{"none", "all_reduce", "post_validation",
                                               "asynchronous"};
  // With a sharded vocabulary `collective` says nothing of what closes an iteration.
  const bool reduces = scenario.cost.collective > Seconds(0) && !is_sharded(scenario.vocabulary);
  const bool costs = scenario.roofline || scenario.cost.optimizer > Seconds(0) || reduces;
  scenario.sync = costs ? OptimizerSync::kAllReduce : OptimizerSync::kNone;
  const auto given = root.find("optimizer");
  if (!given) return;
  YamlMap map(*given);
  const YamlValue value = map.require("sync", "none, all_reduce, post_validation or asynchronous");
  const std::string sync = value.choice(kSyncs);
  map.finish();
  if (sync == "none" && costs) {
    value.fail(
        "'none' is for costs without an optimizer, but cost.optimizer or cost.collective is set, "
        "or "
        "costs follow from a model");
  }
  if ((sync == "post_validation" || sync == "asynchronous") && reduces) {
    value.fail("'" + sync + "' waits for no collective, but cost.collective is set");
  }
  scenario.sync = sync == "none"              ? OptimizerSync::kNone
                  : sync == "all_reduce"      ? OptimizerSync::kAllReduce
                  : sync == "post_validation" ? OptimizerSync::kPostValidation
                                              : OptimizerSync::kAsynchronous;
}

void read_framework(const YamlValue& value, Scenario& scenario) {
  static const std::vector<std::string> kTransfers{"overlapped", "blocking"};
  YamlMap map(value);
  const auto name = map.find("name");
  const auto transfers =
      name ? map.find("transfers") : map.require("transfers", "overlapped or blocking");
  if (transfers && transfers->choice(kTransfers) == "blocking") {
    scenario.transfers = Transfers::kBlocking;
  }
  if (name) {
    scenario.framework.name = name->choice(measured_frameworks());
    scenario.framework.year = static_cast<int>(
        map.require("year", "the year of its release, as 2025").integer(2000, 2100));
  }
  map.finish();
}

void check_limits(const Scenario& scenario) {
  for (const ScheduleChoice& choice : scenario.schedules) {
    if (std::holds_alternative<Bytes>(choice.memory_limit) && !knows_memory(scenario)) {
      throw InputError(
          choice.where,
          "memory_limit in bytes needs a memory section that says what F acquires, or a model");
    }
    if (std::holds_alternative<TotalLimit>(choice.memory_limit) && !scenario.modelled) {
      throw InputError(choice.where,
                       "memory_limit in total needs a model, from which the memory "
                       "beside activations follows");
    }
  }
}

// A schedule read from CSV brings its own shape, which must be the scenario's.
void check_programs(const YamlValue& parallel, const YamlValue& batch, const Scenario& scenario) {
  for (const ScheduleChoice& choice : scenario.schedules) {
    if (!choice.program) continue;
    const Shape& shape = choice.program->shape();
    if (shape.devices != scenario.parallel.pipeline) {
      parallel.fail(fmt::format("pipeline_model_parallel_size is {}, but {} has {} rows",
                                scenario.parallel.pipeline, choice.name, shape.devices));
    }
    if (shape.microbatches != scenario.batch.microbatches) {
      batch.fail(fmt::format("{} microbatches, but {} has {}", scenario.batch.microbatches,
                             choice.name, shape.microbatches));
    }
  }
}

// Passes of an iteration; a double, since all sizes of the product may be large.
double passes_of(const Scenario& scenario, const ScheduleChoice& choice) {
  return 2.0 * scenario.parallel.pipeline * scenario.parallel.pipelines *
         scenario.batch.microbatches * chunks_of(choice) * splits_of(choice);
}

// An iteration beyond what one machine simulates is refused before anything of its size is made.
void check_passes(const YamlValue& batch, const Scenario& scenario) {
  for (const ScheduleChoice& choice : scenario.schedules) {
    const double passes = passes_of(scenario, choice);
    if (passes <= kMaxPasses) continue;
    batch.fail(fmt::format("{} passes in an iteration of {}; at most {} can be simulated",
                           counted(passes), choice.name, counted(kMaxPasses)));
  }
}

// The same of an ensemble's iterations together.
void check_runs(const YamlValue& asked, double runs, const Scenario& scenario) {
  for (const ScheduleChoice& choice : scenario.schedules) {
    const double passes = passes_of(scenario, choice) * runs;
    if (passes <= kMaxPassesOfRuns) continue;
    asked.fail(
        fmt::format("{} passes in {} runs of {}; at most {} can be simulated: set fewer runs",
                    counted(passes), runs, choice.name, counted(kMaxPassesOfRuns)));
  }
}

// Takes over how the framework's generation holds memory. A modelled GPU has what its data sheet
// says less the margin.
void settle_memory(YamlMap& root, Scenario& scenario) {
  if (!scenario.modelled) return;
  const Software& newest = catalogue_software().front().software;
  const Software& software = scenario.roofline ? scenario.roofline->software : newest;
  scenario.modelled->band = software.memory_band;
  scenario.modelled->state.gradient_copy = software.gradient_copy;
  LayerContext& context = scenario.modelled->context;
  context.keeps_gathered = software.keeps_gathered;
  context.loss_bytes = software.loss_bytes.at(context.fused_loss ? 1 : 0);
  if (scenario.modelled->capacity || !scenario.hardware) return;
  const Bytes margin = scenario.modelled->margin.value_or(software.memory_margin);
  const Bytes memory = scenario.hardware->gpu.memory;
  scenario.modelled->capacity = memory - margin;
  if (margin < memory) return;
  root.find("cluster")->fail(
      fmt::format("a GPU's {} are no more than the {} that are kept of it (memory.margin)",
                  human(memory), human(margin)));
}

// A model may not know how a schedule recomputes, or divides sequences.
void check_layers(YamlMap& root, const Scenario& scenario) {
  if (!scenario.modelled) return;
  const Modelled& modelled = *scenario.modelled;
  for (const ScheduleChoice& choice : scenario.schedules) {
    LayerContext context = modelled.context;
    context.recompute = granularity_of(choice);
    const bool slices = splits_of(choice) > 1;
    if (slices && context.fp32_weights) {
      throw InputError(choice.where,
                       "memory.autocast is not known with sequence splits: each slice "
                       "would cast the weights, and keep them, again");
    }
    if (scenario.batch.unequal || slices) context.whole = context.seq_length;
    const std::string fault = fault_of(modelled.model, context);
    if (!fault.empty()) root.find("model")->fail(fault);
  }
}

}  // namespace

std::string doubt_of_batch(long samples, std::optional<int> seq_length) {
  // Ten times the largest batches that were published: 60 to 130 million tokens, 16 thousand
  // samples.
  constexpr double kMostTokens = 1e9;
  constexpr long kMostSamples = 1 << 20;
  const double tokens = 1.0 * static_cast<double>(samples) * seq_length.value_or(0);
  if (tokens <= kMostTokens && samples <= kMostSamples) return "";
  const std::string meant = seq_length && samples >= *seq_length
                                ? fmt::format("; if {} are tokens, they are {} samples of {}",
                                              samples, samples / *seq_length, *seq_length)
                                : "";
  return fmt::format("{} samples an iteration{} are more than any training run takes{}", samples,
                     seq_length ? fmt::format(", {:.3g} tokens,", tokens) : "", meant);
}

Scenario read_scenario(const YamlSource& source) {
  const YamlValue value = source.root();
  if (value.is_null()) value.fail("expected a scenario: this file is empty");
  if (!value.is_map()) value.fail("expected a scenario, a YAML file of 'key: value' lines");
  YamlMap root(value);
  if (const auto sweep = root.find("sweep")) {
    sweep->fail("many scenarios, which 'pipesim sweep' runs; without this section it is one");
  }
  Scenario scenario;
  scenario.file = source.name();
  scenario.schedules =
      read_schedules(root.require("schedule", "the name of a schedule, or a list"), source.name());
  const YamlValue parallel = root.require("parallel", "a map of parallel sizes");
  ModelParallel model;
  scenario.parallel = read_parallel(parallel, scenario.schedules, model);
  read_pipelines(root, parallel, scenario.parallel);
  const YamlValue batch = root.require("batch", "a map with num_microbatches");
  scenario.batch = read_batch(batch, scenario.parallel, scenario.file);
  check_programs(parallel, batch, scenario);
  const bool modelled = memory_is_modelled(root, model);
  if (const auto given = root.find("vocabulary")) {
    scenario.vocabulary = read_vocabulary(*given, model.split);
  }
  if (modelled) {
    scenario.modelled = read_modelled(root, parallel, batch, model, scenario);
    scenario.batch.seq_length = scenario.modelled->context.seq_length;
  }
  settle_recompute(root, scenario);
  settle_offload(root, scenario);
  check_passes(batch, scenario);
  if (const auto given = root.find("cluster")) {
    ClusterChoice choice = read_cluster(*given);
    scenario.cluster = choice.cluster;
    scenario.hardware = std::move(choice.hardware);
    scenario.sources = std::make_shared<const std::vector<Sourced>>(std::move(choice.numbers));
  }
  if (scenario.modelled && scenario.hardware) {
    scenario.modelled->context.fp8_transposes =
        scenario.modelled->block_scaled || scenario.hardware->gpu.fp8_transposes;
  }
  scenario.roofline = read_roofline(root, scenario);
  settle_memory(root, scenario);
  if (!scenario.roofline) {
    scenario.cost = read_cost(
        root.require("cost", "a map of pass costs, or a model and a cluster by name"), scenario);
  }
  settle_unequal_batch(scenario);
  check_layers(root, scenario);
  if (const auto memory = root.find("memory"); memory && !modelled) {
    scenario.memory = read_memory(*memory, scenario);
  }
  if (const auto engine = root.find("engine")) read_engine(*engine, scenario);
  read_optimizer(root, scenario);
  if (const auto framework = root.find("framework")) {
    read_framework(*framework, scenario);
  }
  const auto cost = root.find("cost");
  scenario.band = read_band(scenario);
  const double draws = scenario.batch.unequal ? scenario.batch.unequal->draw.runs : 1;
  check_runs(batch, draws, scenario);
  if (const auto perturb = root.find("perturb")) {
    scenario.perturb = read_perturb(*perturb, scenario);
    check_runs(*perturb, draws * scenario.perturb.runs, scenario);
  }
  if (const auto reliability = root.find("reliability")) {
    scenario.reliability = read_reliability(*reliability);
  }
  root.finish();
  check_limits(scenario);
  return scenario;
}

Scenario read_scenario_file(const std::string& path, const Location& asked,
                            std::vector<Override> overrides) {
  return read_scenario(YamlSource::from_file(path, asked, std::move(overrides)));
}

}  // namespace pipesim
