// A schedule that is described, not programmed: a placement, and either a building block or rules.
// A block has the slots of one microbatch's passes, the period after which the next microbatch
// takes them, and the treatment of the ramps. By rules, every device orders its passes itself. A
// description is instantiated for any number of devices and microbatches.
//
// docs/reference/descriptions.md says what each part means; sim/planning/slots.h and device_rules.h
// make the order.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/planning/described_copies.h"
#include "sim/planning/device_rules.h"
#include "sim/planning/expression.h"
#include "sim/planning/schedule.h"
#include "sim/planning/slots.h"

namespace pipesim {

struct DescribedPlacement {
  enum class Kind : std::uint8_t { kLinear, kLooped, kVee, kWave, kBidirectional, kList, kFormula };
  Kind kind = Kind::kLinear;
  std::vector<int> devices = {};          // of kList, by virtual stage
  std::optional<Expression> device = {};  // of kFormula, by `placement_names()`
  // With kFormula, where devices hold unequal numbers: the stages of all copies, by
  // `placement_names()` without s.
  std::optional<Expression> stages = {};
  int copies = 1;  // of the model, with a list or formula
  Location where = {};
};

// A line of the block: passes of one kind on these stages.
struct DescribedPasses {
  PassKind kind = PassKind::kF;
  DescribedStages stages = {};
  std::optional<Expression> at = {};     // of W, without it: in free slots
  std::optional<Expression> slots = {};  // that each takes; without it 1, BW 2
  Location where = {};
};

// Microbatches enter `step` slots apart within a group of `size`, and groups `size` periods apart.
struct DescribedGroup {
  Expression size;
  Expression step;
};

struct DescribedParameter {
  std::string name;
  Expression usual;
  // Where a choice of the schedule may set it; of those of `let`, neither.
  std::optional<Expression> least = {};
  std::optional<Expression> most = {};
};

// Devices step while microbatches are in flight (WeightVersions).
struct DescribedVersions {
  Expression kept;  // on device d of p
  bool every_microbatch = false;
};

struct Description {
  std::string name;  // its file's, without folders
  std::string file;
  std::string summary;
  std::string source;
  DescribedPlacement placement;
  int chunks = 1;  // per device, the most of any, unless a choice says otherwise
  std::optional<int> splits = {};
  std::vector<DescribedParameter> parameters;  // those of `let` too, each after what it is made of
  std::vector<Expression> requirements;
  // The order: by rules, or else by a block that repeats itself.
  std::optional<DeviceRules> rules = {};
  std::optional<Expression> period = {};
  std::optional<DescribedGroup> group = {};
  std::vector<DescribedPasses> block;
  // BW, B or W that are an overlapped block with the F that begins in their slot.
  std::vector<PassKind> beside_forward = {};
  TightenedParts tightened = {};
  std::vector<DescribedCopies> copies = {};
  std::optional<DescribedVersions> versions = {};
  Location where = {};  // of the block, or the rules
};

// The names in formulas, in the order of their values: of a placement, of parameters, and of `at`
// and copies. A parameter's formula also has the parameters before it, after the sizes. In `at` and
// copies these names come after the sizes and all parameters.
std::vector<std::string> placement_names();  // p v s
std::vector<std::string> size_names();       // p v m n
std::vector<std::string> pass_names();       // s d c i k copy
// Names that no parameter may have.
std::vector<std::string> reserved_names();

// The sizes, then the parameters: those that the problem's options set, and what the others usually
// are.
std::vector<long> values_of(const Description& description, const Problem& problem);

// The options that set every free parameter which `given` does not, in every way that the ranges
// leave. Nothing where there are more than `most` ways.
using ScheduleOptions = std::map<std::string, OptionValue, std::less<>>;
std::optional<std::vector<ScheduleOptions>> every_choice(const Description& description,
                                                         const Shape& shape,
                                                         const ScheduleOptions& given, size_t most);

// The slots of all passes of a description with a block. InputError in the description where they
// make no schedule. That is where passes are missing, double, in one slot or before their inputs,
// or a formula has no value.
Slotted instantiate(const Description& description, const Problem& problem);

// A schedule of the description; its parameters with a range are options. Its `plan` and `place`
// throw InputError, located in the description.
struct DescribedSchedule {
  std::shared_ptr<const Description> description;
  Schedule schedule;
};
std::shared_ptr<const DescribedSchedule> as_schedule(Description description);

}  // namespace pipesim
