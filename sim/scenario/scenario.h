// A scenario file as a value: the person's question, checked and in base units.
//
// It holds the question and nothing that follows from it: sim/prepare makes cases of it, one for
// each schedule.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "models/cluster.h"
#include "models/gpu_model.h"
#include "models/hardware.h"
#include "models/layer_cost.h"
#include "sim/band/band.h"
#include "sim/core/error.h"
#include "sim/core/units.h"
#include "sim/graph/optimizer_sync.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/scenario/given_cost.h"
#include "sim/scenario/modelled.h"
#include "sim/scenario/reliability.h"
#include "sim/scenario/sourced.h"
#include "sim/scenario/unequal_batch.h"

namespace pipesim {

// Full recomputation of the first chunks of every device, or of parts of every layer
// (models/layer_context.h).
struct Recompute {
  RecomputeGranularity granularity = {};
  std::optional<int> chunks = {};  // with kFull; without it, of all
  RecomputedLayers layers = {};    // of each stage of these, with kFull
  Location where = {};
};

// The bandwidth that plans give copies: each direction's while both are busy, or one's alone.
enum class CopyBandwidth { kDuplex, kAlone };

// The microbatches that may leave their device: a list, or every so many of a range.
struct OffloadedMicrobatches {
  std::vector<int> listed = {};
  int from = 0;
  std::optional<int> to = {};  // the last one; without it, of all
  int every = 1;
  std::optional<int> count = {};  // of those so many, spread evenly; without it, all

  [[nodiscard]] bool all() const {
    return listed.empty() && from == 0 && !to && every == 1 && !count;
  }
};

// Their numbers, of microbatches 0 to `microbatches` - 1.
std::vector<int> numbers_of(const OffloadedMicrobatches& some, int microbatches);

// Activations wait on the host between F and B (sim/execution/with_offload.h).
struct Offload {
  std::optional<int> chunks = {};  // of every device, those that live longest; without it, all
  std::vector<int> which = {};     // or these chunks of every device
  bool automatic = false;          // sim/prepare chooses `chunks`
  OffloadedMicrobatches microbatches = {};
  double ratio = 1;  // share of each activation that leaves
  CopyBandwidth bandwidth = CopyBandwidth::kDuplex;
  std::optional<int> devices_per_link = {};  // without it, what the cluster says, or 1
  double prefetch = 1;
  Location where = {};
};

// A memory_limit for all that a device holds; activations get the rest.
struct TotalLimit {
  Bytes bytes;
};

// Slices of equal FLOPs: all but the first are multiples of so many tokens.
struct EqualSlices {
  int count = 1;
  std::optional<int> multiple = {};  // without it, what the ranks can divide
};

struct DescribedSchedule;
struct BlockRun;
struct Schedule;

// A schedule by name or from a description, or a program that was read from a CSV file.
struct ScheduleChoice {
  std::string name;  // of the registry or the description, or the CSV file's path
  Location where;
  std::optional<int> chunks = {};  // virtual_pipeline_model_parallel_size, when set
  std::map<std::string, OptionValue, std::less<>> options = {};
  // Lengths of a sequence's slices, from its first tokens on, to one another. Empty: equal slices
  // by the option `splits`.
  std::vector<long> slices = {};
  // sim/prepare chooses `slices`, in whole such parts of a sequence.
  std::optional<int> slice_units = {};
  // Or so many of like work, in tokens.
  std::optional<EqualSlices> equal_slices = {};
  std::shared_ptr<const Program> program = nullptr;              // of a CSV file
  std::shared_ptr<const DescribedSchedule> described = nullptr;  // of a description
  // memory_limit: times p x Problem::device_activation(), or bytes per device.
  std::variant<std::monostate, double, Bytes, TotalLimit> memory_limit = {};
  std::optional<Recompute> recompute = {};  // the scenario's, where the choice has none of its own
  std::optional<Offload> offload = {};      // likewise
};

// The schedule of a choice without a program: the registry's, or the described one.
const Schedule& schedule_of(const ScheduleChoice& choice);
// How the choice's blocks of F and BW run; nothing where it has none. Blocks of a program that was
// read run W apart.
std::optional<BlockRun> blocks_of(const ScheduleChoice& choice);
// How blocks of layers run in the choice's schedule, or would run where it has none.
PairOptions pair_options(const ScheduleChoice& choice);
// Where the choice's schedule, or its program, puts the stages.
Placement placement_of(const ScheduleChoice& choice, int devices);
// The chunks per device that the choice asks for, or that its schedule takes when it does not say.
int chunks_of(const ScheduleChoice& choice);
// The sequence splits of a microbatch, likewise; the most there may be where they are to be chosen.
int splits_of(const ScheduleChoice& choice);
RecomputeGranularity granularity_of(const ScheduleChoice& choice);
// The chunks of every device, from the first, that recompute in full.
int recompute_chunks_of(const ScheduleChoice& choice);
// The chunks of every device whose activations may wait on the host; of a schedule that offloads by
// itself, 0.
int offload_chunks_of(const ScheduleChoice& choice);
// True if the choice's program or schedule has copies to the host of its own.
bool copies_by_itself(const ScheduleChoice& choice);
// The program that was read from a CSV, whose cells do not say how a shared vocabulary waits;
// nullptr where the choice has a schedule. InputError where only one of both shares the vocabulary.
std::shared_ptr<const Program> read_program(const ScheduleChoice& choice,
                                            VocabularyPlacement vocabulary);
// The parts that may leave, as a scenario writes them within `offload: {...}`; empty: everything.
std::string scope_text(const Offload& offload);
// The choice's name in tables, with what it recomputes and what it offloads. The same brackets hold
// what else tells it `apart` from others.
std::string label_of(const ScheduleChoice& choice, const std::string& apart = {});
// For each choice, what tells it apart from those whose label would be the same: its options, and a
// number where that does not help. Empty where nothing has to.
std::vector<std::string> tell_apart(const std::vector<ScheduleChoice>& choices);

// Megatron-LM's words; `pipelines` replicas of the data-parallel group are simulated together.
struct ParallelSizes {
  int pipeline = 1;
  int tensor = 1;
  int data = 1;
  int pipelines = 1;
  int context = 1;
};

struct Batch {
  int microbatches = 1;  // per pipeline
  std::optional<int> micro_batch_size;
  std::optional<int> seq_length;
  std::optional<UnequalBatch> unequal = {};

  // True if a list of microbatches or samples says how many there are.
  [[nodiscard]] bool listed() const { return unequal && unequal->listed(); }
  // Draws of its microbatches that are simulated, with seeds from `seed` on.
  [[nodiscard]] int draws() const { return unequal ? unequal->draw.runs : 1; }
  [[nodiscard]] std::uint64_t seed() const { return unequal ? unequal->draw.seed : 0; }
  // The order in which they are put into the pipeline; kGiven where all are alike.
  [[nodiscard]] MicrobatchOrder order() const {
    return unequal ? unequal->order : MicrobatchOrder::kGiven;
  }
  [[nodiscard]] std::vector<int> listed_order() const {
    return unequal ? unequal->listed_order : std::vector<int>{};
  }
};

// A file of curves that were measured, in place of the catalogue's.
struct Calibration {
  std::string file;
  std::string measured;  // on what, when and with what
  // Least seconds of the host for an operation; 0: not measured.
  EnumArray<LaunchMode, Seconds> host_operation = {};
  // Spread of all GPUs of a node at once, as Perturbation::jitter, which goes before it.
  std::optional<double> jitter = {};
};

// Corrections from measured steps of such runs (sim/anchor), read from a file.
struct Anchor {
  std::string file;
  Location where = {};
  CostFactors factors = {};
  // True if the anchor was made of a run of the same model and precision, among others.
  bool same_model = false;
};

// Instead of given costs: seconds follow from the model and the named cluster.
struct RooflineCost {
  Overlap overlap;
  Software software = {};
  std::optional<Calibration> calibration = {};
  std::optional<Anchor> anchor = {};
};

struct GivenMemory {
  CostBasis per = CostBasis::kDevice;
  std::vector<Bytes> activation;
  std::vector<Bytes> weight_stash;
  std::vector<Bytes> checkpoint;         // empty: 0
  std::vector<Bytes> output_activation;  // from S to T, of a device; empty: 0
};

enum class EngineKind { kReplay, kSimGrid };

// framework.transfers: whether messages hold the compute stream of the devices that exchange them.
enum class Transfers { kOverlapped, kBlocking };

// framework.name and framework.year: whose measured runs are nearest to the scenario's.
struct FrameworkName {
  std::string name = {};
  int year = 0;
};

// A message factor between two ranks, in this direction.
struct DegradedLink {
  int from = 0;
  int to = 0;
  double factor = 1;
};

// Changes the run, never the plan.
struct Perturbation {
  std::uint64_t seed = 1;
  std::optional<double> jitter;  // sigma of the log-normal factor on pass seconds
  int runs = 16;                 // of the ensemble, whenever there is one
  std::vector<SpeedChange> stragglers;
  std::vector<DegradedLink> links;
};

struct Scenario {
  std::string file;
  std::vector<ScheduleChoice> schedules;
  ParallelSizes parallel;
  Batch batch;
  VocabularyPlacement vocabulary = VocabularyPlacement::kFirstLast;
  GivenCost cost;                        // nothing in it where there is:
  std::optional<RooflineCost> roofline;  // with `modelled` and `hardware`
  std::optional<GivenMemory> memory;
  std::optional<Modelled> modelled;  // instead: memory follows from a model
  std::optional<Cluster> cluster;
  std::optional<Hardware> hardware;  // of a cluster of the catalogue, changes applied
  // Where the numbers of both come from; null without a cluster.
  std::shared_ptr<const std::vector<Sourced>> sources = nullptr;
  // Band of modelled seconds; empty where no measured run is near, or costs are given.
  std::optional<Band> band = {};
  EngineKind engine = EngineKind::kReplay;
  GpuModel gpu = GpuModel::kTimer;
  std::optional<Offload> offload;  // as the scenario says it of all schedules
  OptimizerSync sync = OptimizerSync::kNone;
  Transfers transfers = Transfers::kOverlapped;
  FrameworkName framework = {};
  Perturbation perturb;
  std::optional<Reliability> reliability = {};  // what whole training runs meet
};

// Devices that share the vocabulary; 0 where its layers stand on stages.
inline int vocabulary_devices(const Scenario& scenario) {
  return is_sharded(scenario.vocabulary) ? scenario.parallel.pipeline : 0;
}

// True if sim/prepare is to balance the layers over the stages.
inline bool asks_for_balance(const Scenario& scenario) {
  return scenario.modelled && scenario.modelled->split.way == LayerSplit::Way::kBalanced;
}

// True if activations are counted in bytes, given or modelled.
inline bool knows_memory(const Scenario& scenario) {
  return scenario.memory.has_value() || scenario.modelled.has_value();
}

}  // namespace pipesim
