// A schedule: a record with a name, a source, what it accepts, what it claims and a pure function
// from Problem to Program.
//
// One file in `schedules/` registers one record, and nothing else is edited. `pipesim list`, the
// gallery, the planner, the table of runtimes and the tests read the record. `./run_tests
// schedules/NAME` holds the schedule to it. docs/how-to/add-a-schedule.md has a whole file to start
// from; sim/planning/list_schedule.h plans by a rule for the next pass.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/pipeline/call_groups.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// One option that may stand beside the schedule's name in a scenario.
struct OptionSpec {
  enum class Type { kFlag, kInteger, kNumber, kText };
  std::string name;
  Type type = Type::kInteger;
  std::string help;
  double minimum = 0;
  double maximum = 0;
  bool counts_chunks = false;  // no more than a device has
  bool cuts_sequence = false;  // also the lengths of slices, or `optimal` ones
  std::string default_text;    // what holds when the option is absent, in words
  std::string needs = {};      // a flag without which this one says nothing
};

inline constexpr int kMostSplits = 1 << 10;

// The option `splits` of a schedule over parts of the sequence (Shape::splits); 4 by default.
OptionSpec splits_option();

// Why a schedule does not accept a shape, and the nearest shape that it does accept.
struct Refusal {
  std::string reason;
  Shape nearest;
};

inline bool nowhere(const Problem& /*problem*/) { return false; }
inline bool everywhere(const Problem& /*problem*/) { return true; }
inline bool vocabulary_not_sharded(const Problem& problem) {
  return !is_sharded(problem.vocabulary);
}

// A closed form and its domain, or none: a claim that is left out holds nowhere, and
// `no_closed_form` says why. `domain` puts `holds` into words. It must cover p 2..16 and m in {p,
// 2p, 4p}, with F = B = W and with unequal F, B and W. Otherwise `gap` says why it does not.
// Automatic schedules claim the figures of their orders of least cost, not of least makespan.
struct BubbleClaim {
  std::string_view formula = {};
  std::string_view domain = {};
  std::string_view gap = {};  // why part of that grid is left out; empty when none is
  bool (*holds)(const Problem&) = nowhere;
  Seconds (*bubble)(const Problem&) = nullptr;  // Evaluation::cost - Evaluation::work
  std::string_view no_closed_form = {};
  [[nodiscard]] bool is_made() const { return !formula.empty(); }
};

struct PeakClaim {
  std::string_view formula = {};
  std::string_view domain = {};
  std::string_view gap = {};
  bool (*holds)(const Problem&) = nowhere;
  int (*in_flight)(const Problem&, int device) = nullptr;  // DeviceEvaluation::peak_in_flight
  std::string_view no_closed_form = {};
  [[nodiscard]] bool is_made() const { return !formula.empty(); }
};

// "(p-1) (F+B+W) [every m; equal stages]", or "no closed form: the order depends on every time".
std::string to_text(const BubbleClaim& claim);
std::string to_text(const PeakClaim& claim);

struct Claims {
  BubbleClaim bubble = {};
  PeakClaim peak = {};
};

// A sharded placement of the vocabulary that a schedule has orders for, and what it claims there.
struct VocabularySupport {
  VocabularyPlacement placement;
  Claims claims;
};

// A public training framework with flags that select the schedule (sim/interop/megatron).
enum class Runtime : std::uint8_t {
  kNone,
  kMegatron,        // NVIDIA/Megatron-LM
  kZeroBubbleFork,  // sail-sg/zero-bubble-pipeline-parallelism
};

constexpr std::string_view to_text(Runtime runtime) {
  constexpr std::array<std::string_view, 3> kNames{"none", "Megatron-LM",
                                                   "sail-sg/zero-bubble-pipeline-parallelism"};
  return kNames[static_cast<size_t>(runtime)];
}

// How F and BW of two microbatches run as one block, where a model gives their parts.
struct BlockRun {
  bool weight_apart = true;      // W of the backward by itself, behind the exchange of tokens
  bool early_attention = false;  // of the backward, before the forward's experts
};

// A schedule that never drains: its devices step while microbatches are in flight, and keep the
// weights that coming backwards began with (docs/reference/model.md, "Asynchronous").
struct WeightVersions {
  std::function<int(int devices, int device)> kept = nullptr;  // the newest included
  // A step after every microbatch; else after those of an iteration.
  bool every_microbatch = false;
};

using ScheduleOptions = std::map<std::string, OptionValue, std::less<>>;

// Whose order it is: that of its `source`, or one of this project.
enum class Origin : std::uint8_t { kPublished, kOurs };

// A schedule with several placements has a record for each. This holds the value of the option
// `placement` that chooses the record, and whether it is the one without the option.
struct PlacementChoice {
  std::string name = {};  // linear, looped or vee
  bool is_default = false;
};

class LimitPlanner;
class OrderSource;

struct Schedule {
  std::string name;     // small letters, digits and '-'
  std::string summary;  // one line
  std::string source;   // paper, section or repository
  Origin origin = Origin::kPublished;
  std::optional<PlacementChoice> placement = {};
  std::string order = {};  // in words, pass by pass, for the table of docs
  int default_chunks = 1;
  int min_chunks = 1;
  int max_chunks = 1;
  // Shape::splits, unless the schedule's option `splits` says otherwise.
  int default_splits = 1;
  std::function<Placement(int devices, int chunks)> place = Placement::looped;
  std::vector<OptionSpec> options = {};
  // Takes Problem::activation_limit, option memory_limit of the scenario, from one microbatch's
  // bytes on.
  bool memory_limit = false;
  // For a schedule that copies activations to the host: the schedule with the same order whose
  // activations stay, and the options that select it. The problem must then know how long copies
  // take.
  std::string without_offload = {};
  std::map<std::string, OptionValue, std::less<>> without_offload_options = {};
  [[nodiscard]] bool offloads() const { return !without_offload.empty(); }
  // The description has R among its passes.
  bool describes_recompute = false;
  // The description says what leaves for the host.
  bool describes_copies = false;
  [[nodiscard]] bool copies() const { return offloads() || describes_copies; }
  // Both take what `for_planning` returns. Empty when the problem is accepted, which `plan` may
  // rely on. nullptr: every shape is.
  std::function<std::optional<Refusal>(const Problem&)> refuse = nullptr;
  // Pure and deterministic; at worst O(passes) unless the file says otherwise.
  std::function<Program(const Problem&)> plan = nullptr;
  // True where `plan` reads nothing but shape, options, vocabulary placement and recompute_chunks.
  // Every problem with the same values then has the same order. The function itself reads only
  // these.
  bool (*fixed_order)(const Problem&) = nowhere;
  // For a schedule that takes a limit, and plans within 1F1B's peak without one. Set where its
  // plans within several limits share work, or take other schedules' orders from a source
  // (sim/planning/planners.h). `plan` is one of its plans.
  std::function<std::unique_ptr<LimitPlanner>(const Problem&, OrderSource*)> planner = nullptr;
  // Every backward runs B and W as one pass.
  bool whole_backward = false;
  Claims claims = {};
  // Plans with each unit's costs (Problem::kinds); others see the mean costs and the largest bytes.
  bool each_unit = false;
  // Plans with F's own bytes where W needs more, so that B acquires the rest; others see F acquire
  // it all.
  bool backward_acquires = false;
  // Where the vocabulary may be sharded; problems in which it is not are accepted anyway.
  std::vector<VocabularySupport> vocabulary = {};
  // The calls in which its framework holds the compute stream for transfers. Empty: its runtime
  // sends and receives asynchronously, so that they never do.
  std::optional<CallGroups> calls = {};
  // How blocks of F and BW run under these options; nothing where the schedule has none.
  std::optional<BlockRun> (*blocks)(const ScheduleOptions& options) = nullptr;
  // Its iterations run into each other, as one program of the microbatches of all of them. Its
  // claims are of one iteration alone, with ramps.
  std::optional<WeightVersions> versions = {};
  Runtime runs_on = Runtime::kNone;
  // Why no framework runs it, and the most similar schedule that one does; shown where flags are
  // asked for.
  std::string no_flags = {};
  std::string nearest_with_flags = {};
  // Why `pipesim plan` tries it only where it is named; empty: it is always tried.
  std::string left_out_of_plan = {};
  // Why `pipesim search` and `improve` try it only where it is named; empty: they always do.
  std::string left_out_of_search = {};
  std::string file = {};  // where its record stands, as schedules/zb_h1.cc; RegisteredSchedule's

  [[nodiscard]] std::optional<Refusal> refusal(const Problem& problem) const;
};

// The options that choose the record among those of its name.
ScheduleOptions options_of(const Schedule& schedule);
// Its name, and with several placements this one: "best-vee".
std::string title_of(const Schedule& schedule);
// "as published (Zero Bubble, arXiv 2401.10241, section 6)", or "ours".
std::string origin_text(const Schedule& schedule);

// The fault of a record by itself, as "no plan"; empty when it has none.
std::string fault_of(const Schedule& schedule);

// All records by name, in alphabetical order, those of one name by placement; read-only after
// start-up. Throws LogicError the first time when a record is faulty or two are called alike:
// whose, where it stands and what is expected.
const std::vector<const Schedule*>& schedules();
// The record of this name and placement; without a placement its default, or its only record.
const Schedule* find_schedule(std::string_view name, std::string_view placement = {});
std::vector<std::string> schedule_names();
// All records of this name: of every placement, or the only one.
std::vector<const Schedule*> records_of(std::string_view name);

// A namespace-scope `const RegisteredSchedule kX{{...}};` adds a schedule before main.
class RegisteredSchedule {
 public:
  // `file`: where the record stands, by the compiler.
  explicit RegisteredSchedule(Schedule schedule, const char* file = __builtin_FILE());
};

// Without bytes every chunk counts 1.
Problem with_bytes(Problem problem);

// The problem in a form that every schedule can plan. No stage keeps more for W than F acquired:
// where W needs more, F acquires it all. A plan that keeps a limit so also keeps it when B acquires
// the rest. Without bytes every chunk counts 1, so that a memory limit counts chunks.
Problem for_planning(Problem problem);
// The one with which this schedule plans: only what its record lets it see.
Problem for_planning(Problem problem, const Schedule& schedule);

// Conditions that claims share: all stages cost the same, transfers are free, and all stages keep
// the same bytes until W.
bool uniform(const Problem& problem);
bool free_transfers(const Problem& problem);
bool b_frees_nothing(const Problem& problem);

}  // namespace pipesim
