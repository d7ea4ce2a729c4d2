// A schedule of one's own. Scenarios, searches, sweeps and plans of the program know it by name.
//
// It is a rule for the next pass, which is played in time, or a function that lists the passes.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <pipesim/error.h>
#include <string>
#include <vector>

namespace pipesim::api {

enum class PassKind {
  kF,   // forward
  kB,   // gradient of the input
  kW,   // gradient of the weights
  kBW,  // both as one
};

// Costs of one microbatch on one stage.
struct StageCosts {
  double forward_seconds = 0, backward_input_seconds = 0, backward_weight_seconds = 0;
  double transfer_seconds = 0;    // to or from the next stage; 0 on the same device
  double activation_bytes = 0;    // from F on
  double weight_stash_bytes = 0;  // of that, what W still needs after B
};

// The input of a schedule.
struct Problem {
  int devices = 1;       // p
  int chunks = 1;        // stages of a device
  int microbatches = 1;  // m
  // In the order of a forward: chunk c of device d is stage c * devices + d.
  std::vector<StageCosts> stages;
  std::optional<double> activation_limit_bytes;  // of a device
};

struct NextPass {
  PassKind kind = PassKind::kF;
  int chunk = 0;
};

// The state that a rule may inspect when a device is idle.
class Turn {
 public:
  virtual ~Turn() = default;

  [[nodiscard]] virtual const Problem& problem() const = 0;
  [[nodiscard]] virtual int device() const = 0;
  [[nodiscard]] virtual double now_seconds() const = 0;
  // Microbatches whose pass of this kind has run here. Error of kInput for a chunk that the device
  // has not, as below.
  [[nodiscard]] virtual int ran(PassKind kind, int chunk = 0) const = 0;
  // Microbatches whose F is still to run here.
  [[nodiscard]] virtual int forwards_left(int chunk = 0) const = 0;
  // Microbatches between their F and their W, in all chunks.
  [[nodiscard]] virtual int in_flight() const = 0;
  // True if the pass could start now: one is left, its inputs have come, an F has memory, and
  // before BW no W is owed.
  [[nodiscard]] virtual bool ready(PassKind kind, int chunk = 0) const = 0;
  // When what it waits for comes; infinite while nobody knows, or where none is left.
  [[nodiscard]] virtual double arrival_seconds(PassKind kind, int chunk = 0) const = 0;
  // A ready pass of the first of these kinds that has one: of the oldest microbatch.
  [[nodiscard]] virtual std::optional<NextPass> first_ready(
      std::initializer_list<PassKind> kinds) const = 0;
};

struct Schedule {
  std::string name;     // small letters, digits and '-'
  std::string summary;  // one line
  std::string source;   // paper, section, repository or file
  int chunks = 1;       // of a device
  // Takes Problem::activation_limit_bytes, from one microbatch's bytes on; a rule's F are held to
  // it.
  bool memory_limit = false;

  // One of the two, both deterministic. Searches and plans call them from several threads at once.
  // A rule that stalls is an Error of kFault. `next_pass` says what the idle device runs: it waits
  // for a pass that is not ready, or for anything where the rule names none.
  std::function<std::optional<NextPass>(const Turn&)> next_pass = nullptr;
  // Passes of each device in their order: "2F0" is F of microbatch 0 on stage 2. Error of kInput at
  // "<name>" where they are no program.
  std::function<std::vector<std::vector<std::string>>(const Problem&)> passes = nullptr;
};

// `const RegisteredSchedule kMine{{...}};` at namespace scope adds a schedule before main. A record
// that is faulty, or a name that is taken, is an Error of kFault at the first call.
class RegisteredSchedule {
 public:
  explicit RegisteredSchedule(Schedule schedule, const char* file = __builtin_FILE());
};

}  // namespace pipesim::api
