#include "sim/planning/description.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "sim/core/grid.h"
#include "sim/execution/walk.h"
#include "sim/execution/with_recompute.h"

namespace pipesim {
namespace {

constexpr int kMostChunks = 1024;
constexpr int kMostSlots = 1 << 29;
constexpr int kMostVersions = 1024;
constexpr int kSlotsOfAPass = 64;  // of ramps that are tightened, on average

[[noreturn]] void fail(const Location& where, const std::string& message) {
  throw InputError(where, message);
}

// `of`: its stage, of a vocabulary's pass its device.
std::string pass_text(const DescribedPasses& line, int of, size_t unit, int splits) {
  std::string text = fmt::format("{} of {} {}, microbatch {}", to_text(line.kind),
                                 is_vocabulary(line.kind) ? "device" : "stage", of,
                                 unit / static_cast<size_t>(splits));
  if (splits > 1) text += fmt::format(", split {}", unit % static_cast<size_t>(splits));
  return text;
}

// ---- placements ----

std::vector<int> devices_by_formula(const DescribedPlacement& placement, int devices, int chunks) {
  std::vector<int> device_of;
  long stages = static_cast<long>(devices) * chunks;
  if (placement.stages) {
    stages = placement.stages->value(std::array<long, 2>{devices, chunks});
    if (stages < devices || stages > static_cast<long>(devices) * chunks) {
      fail(placement.stages->where(),
           fmt::format("{} stages on {} devices of at most {} chunks: expected {} to {}", stages,
                       devices, chunks, devices, static_cast<long>(devices) * chunks));
    }
  }
  for (int stage = 0; stage < stages; ++stage) {
    const long device = placement.device->value(std::array<long, 3>{devices, chunks, stage});
    if (device < 0 || device >= devices) {
      fail(placement.where,
           fmt::format("stage {} of {} stands on device {} of {}: expected 0 to {}", stage, stages,
                       device, devices, devices - 1));
    }
    device_of.push_back(static_cast<int>(device));
  }
  return device_of;
}

// Without a number of stages a formula is for equally many on every device.
Placement custom(const DescribedPlacement& placement, std::span<const int> device_of, int devices,
                 int chunks) {
  using Kind = DescribedPlacement::Kind;
  const bool even = placement.kind == Kind::kFormula && !placement.stages;
  for (int device = 0; device < devices; ++device) {
    const auto held = std::ranges::count(device_of, device);
    if (even ? held == chunks : held > 0 && held <= chunks) continue;
    const std::string expected =
        even ? fmt::format("every one of {} devices must hold {}{}", devices, chunks,
                           ", unless the placement has 'stages'")
             : fmt::format("expected 1 to {}", chunks);
    fail(placement.where, fmt::format("device {} holds {} of {} stages: {}", device, held,
                                      device_of.size(), expected));
  }
  const Placement placed = Placement::custom(device_of);
  if (placed.chunks() != chunks) {
    fail(placement.where, fmt::format("devices hold at most {} stages: expected v = {} on one",
                                      placed.chunks(), chunks));
  }
  if (device_of.size() % static_cast<size_t>(placement.copies) != 0) {
    fail(placement.where, fmt::format("{} stages make no {} copies of the model", device_of.size(),
                                      placement.copies));
  }
  return Placement::custom(device_of, placement.copies);
}

Placement place(const DescribedPlacement& placement, int devices, int chunks) {
  using Kind = DescribedPlacement::Kind;
  switch (placement.kind) {
    case Kind::kVee:
      return Placement::vee(devices);
    case Kind::kWave:
      return Placement::wave(devices, chunks);
    case Kind::kBidirectional:
      return Placement::bidirectional(devices);
    case Kind::kFormula:
      return custom(placement, devices_by_formula(placement, devices, chunks), devices, chunks);
    case Kind::kList: {
      const int last = std::ranges::max(placement.devices);
      if (last + 1 != devices) {
        fail(placement.where,
             fmt::format("lists devices 0 to {}, but there are {}: a formula serves any number, "
                         "such as 's % p'",
                         last, devices));
      }
      return custom(placement, placement.devices, devices, chunks);
    }
    default:
      return Placement::looped(devices, chunks);
  }
}

// ---- slots ----

class Instance {
 public:
  Instance(const Description& description, const Problem& problem)
      : description_(description),
        problem_(problem),
        place_(problem.placement),
        splits_(problem.shape.splits),
        values_(values_of(description, problem)),
        line_of_(place_.virtual_stages(), kPassKinds, -1),
        made_{.shape = problem.shape,
              .placement = problem.placement,
              .passes = {},
              .beside_forward = description.beside_forward} {
    period_ = description.period->value(values_);
    if (period_ < 1 || period_ > kMostSlots) {
      fail(description.period->where(),
           fmt::format("the period is {}: expected 1 to 2^29", period_));
    }
    if (description.group) {
      group_ = description.group->size.value(values_);
      step_ = description.group->step.value(values_);
      if (group_ < 1 || group_ > kMostSlots) {
        fail(description.group->size.where(),
             fmt::format("the group's size is {}: expected 1 to 2^29", group_));
      }
      if (step_ < 0 || step_ > period_) {
        fail(description.group->step.where(),
             fmt::format("the group's step is {}: expected 0 to the period, {}", step_, period_));
      }
    }
  }

  Slotted make() {
    for (size_t line = 0; line < description_.block.size(); ++line) add_line(line);
    check_complete();
    begin_at_zero();
    check_clashes();
    check_tightened();
    return std::move(made_);
  }

 private:
  void add_line(size_t line) {
    const DescribedPasses& passes = description_.block[line];
    if (is_vocabulary(passes.kind)) {
      if (!is_sharded(problem_.vocabulary)) return;
      made_.vocabulary = problem_.vocabulary;
      add_to_devices(line);
      return;
    }
    const auto [first, last] = passes.stages.of(values_, place_.model_stages());
    for (int copy = 0; copy < place_.directions(); ++copy) {
      for (int stage = first; stage <= last; ++stage) add_stage(line, stage, copy);
    }
  }

  // A pass of every device's share of the vocabulary; its chunk is 0.
  void add_to_devices(size_t line) {
    const DescribedPasses& passes = description_.block[line];
    for (int device = 0; device < place_.devices(); ++device) {
      const int vs = place_.virtual_stage(device, 0);
      take_line(line, vs, device);
      add_slots(line, vs, {device, device, 0, 0, 0, 0}, problem_.shape.units(), device);
    }
    if (place_.directions() > 1) fail(passes.where, "copies of the model share no vocabulary");
  }

  void take_line(size_t line, int vs, int of) {
    const DescribedPasses& passes = description_.block[line];
    int& before = line_of_(vs, static_cast<int>(passes.kind));
    if (before >= 0) {
      fail(passes.where,
           fmt::format("the {} of {} {} stand in line {} already", to_text(passes.kind),
                       is_vocabulary(passes.kind) ? "device" : "stage", of,
                       description_.block[static_cast<size_t>(before)].where.line));
    }
    before = static_cast<int>(line);
  }

  void add_stage(size_t line, int stage, int copy) {
    const int vs = copy * place_.model_stages() + stage;
    take_line(line, vs, stage);
    if (!description_.block[line].at) return;
    const int units = problem_.shape.units();
    const int count = place_.end_unit(vs, units) - place_.first_unit(vs, units);
    add_slots(line, vs, {stage, place_.device(vs), place_.chunk(vs), 0, 0, copy}, count, stage);
  }

  // `names`: values of `pass_names()`; `of`: the stage or device, for messages.
  void add_slots(size_t line, int vs, std::initializer_list<long> names, int count, int of) {
    const DescribedPasses& passes = description_.block[line];
    SlottedPasses added{passes.kind, vs, length_of(passes), {}};
    std::vector<long> values = values_;
    const size_t own = values.size();
    values.insert(values.end(), names);
    const bool moves = passes.at->mentions(own + 3) || passes.at->mentions(own + 4);
    long at = 0;
    for (int unit = 0; unit < count; ++unit) {
      const long microbatch = values[own + 3] = unit / splits_;
      values[own + 4] = unit % splits_;
      if (moves || unit == 0) at = passes.at->value(values);
      const long slot = at + microbatch / group_ * group_ * period_ + microbatch % group_ * step();
      if (slot < -kMostSlots || slot > kMostSlots) {
        fail(passes.at->where(),
             fmt::format("{} begins in slot {}: expected at most 2^29 slots from 0",
                         pass_text(passes, of, static_cast<size_t>(unit), splits_), slot));
      }
      added.slots.push_back(static_cast<int>(slot));
    }
    made_.passes.push_back(std::move(added));
    line_of_passes_.push_back(line);
  }

  [[nodiscard]] long step() const { return description_.group ? step_ : period_; }

  [[nodiscard]] int length_of(const DescribedPasses& passes) const {
    if (!passes.slots) return passes.kind == PassKind::kBW ? 2 : 1;
    const long slots = passes.slots->value(values_);
    if (slots < 1 || slots > kMostSlots) {
      fail(passes.slots->where(), fmt::format("a pass of {} slots: expected 1 to 2^29", slots));
    }
    return static_cast<int>(slots);
  }

  void check_complete() const {
    const auto has = [&](int vs, PassKind kind) {
      return line_of_(vs, static_cast<int>(kind)) >= 0;
    };
    for (int vs = 0; vs < place_.virtual_stages(); ++vs) {
      const int stage = place_.model_stage(vs);
      const bool fused = has(vs, PassKind::kBW);
      std::string_view lacks;
      if (!has(vs, PassKind::kF)) lacks = "F";
      if (!fused && !has(vs, PassKind::kW)) lacks = "W";
      if (!fused && !has(vs, PassKind::kB)) lacks = "B, or BW";
      if (!lacks.empty()) {
        fail(description_.where, fmt::format("no line has the {} of stage {}", lacks, stage));
      }
      if (fused && (has(vs, PassKind::kB) || has(vs, PassKind::kW))) {
        const bool b = has(vs, PassKind::kB);
        const int line = line_of_(vs, static_cast<int>(b ? PassKind::kB : PassKind::kW));
        fail(description_.block[static_cast<size_t>(line)].where,
             fmt::format("stage {} has a BW, which is both its B and its W", stage));
      }
    }
  }

  void begin_at_zero() {
    int least = 0;
    for (const SlottedPasses& of : made_.passes) {
      for (const int slot : of.slots) least = std::min(least, slot);
    }
    for (SlottedPasses& of : made_.passes) {
      for (int& slot : of.slots) slot -= least;
    }
  }

  [[nodiscard]] std::string text(const SlotClash::Of& of) const {
    const SlottedPasses& passes = made_.passes[of.passes];
    const int vs = passes.vs;
    return pass_text(line(of),
                     is_vocabulary(passes.kind) ? place_.device(vs) : place_.model_stage(vs),
                     of.unit, splits_);
  }
  [[nodiscard]] const DescribedPasses& line(const SlotClash::Of& of) const {
    return description_.block[line_of_passes_[of.passes]];
  }

  void check_clashes() const {
    if (const auto clash = find_shared_slot(made_)) {
      const SlottedPasses& second = made_.passes[clash->second.passes];
      fail(line(clash->second).at->where(),
           fmt::format("{} and, of line {}, {} share slot {} of device {} (p = {}, m = {})",
                       text(clash->second), line(clash->first).where.line, text(clash->first),
                       second.slots[clash->second.unit], place_.device(second.vs),
                       problem_.shape.devices, problem_.shape.microbatches));
    }
    if (const auto clash = find_early_pass(made_)) {
      const SlottedPasses& second = made_.passes[clash->second.passes];
      fail(line(clash->second).at->where(),
           fmt::format("{} begins in slot {}, but waits for {} of line {}, which ends with slot {} "
                       "(p = {}, m = {})",
                       text(clash->second), second.slots[clash->second.unit], text(clash->first),
                       line(clash->first).where.line,
                       ends_of(made_)[clash->first.passes][clash->first.unit] - 1,
                       problem_.shape.devices, problem_.shape.microbatches));
    }
  }

  // Plans with free slots take one copy of the model, whole sequences and no shared vocabulary.
  void check_tightened() const {
    const auto filler = std::ranges::find_if(
        description_.block, [](const DescribedPasses& passes) { return !passes.at; });
    const bool fills = filler != description_.block.end();
    if (!fills && !description_.tightened.any()) return;
    const Location& where = fills ? filler->where : description_.where;
    const char* what = fills ? "W in free slots" : "tightened ramps";
    if (splits_ > 1 || place_.directions() > 1 || is_sharded(problem_.vocabulary) ||
        !made_.beside_forward.empty()) {
      fail(where, fmt::format("{} are for one copy of the model, no sequence splits, no shared "
                              "vocabulary and no pairs",
                              what));
    }
    int width = 0;
    for (const SlottedPasses& of : made_.passes) {
      if (fills && of.length > 1) {
        fail(where, "W in free slots stand beside passes of one slot each");
      }
      for (const int slot : of.slots) width = std::max(width, slot + of.length);
    }
    const long passes = static_cast<long>(place_.chunks()) * problem_.shape.microbatches *
                        static_cast<long>(kPassKinds);
    if (width > kSlotsOfAPass * (passes + problem_.shape.devices * place_.chunks())) {
      fail(where, fmt::format("{} over {} slots: too many for {} microbatches", what, width,
                              problem_.shape.microbatches));
    }
  }

  const Description& description_;
  const Problem& problem_;
  const Placement& place_;
  int splits_;
  std::vector<long> values_;
  long period_ = 1;
  long group_ = 1;
  long step_ = 0;
  Grid<int> line_of_;  // by virtual stage and kind
  Slotted made_;
  std::vector<size_t> line_of_passes_;
};

// ---- the record ----

std::optional<std::string> unmet(const Description& description, const Problem& problem) {
  const std::vector<long> values = values_of(description, problem);
  for (size_t i = 0; i < description.parameters.size(); ++i) {
    const DescribedParameter& each = description.parameters[i];
    if (!each.least) continue;
    const long value = values[size_names().size() + i];
    const long least = each.least->value(values);
    const long most = each.most->value(values);
    if (least > most) {
      return fmt::format(
          "{} takes {} from {} to {}, which are {} and {} for p = {}, v = {}, m = {}: none",
          description.name, each.name, each.least->text(), each.most->text(), least, most,
          values[0], values[1], values[2]);
    }
    if (value < least || value > most) {
      const bool usual = !problem.option<long>(each.name);
      return fmt::format("{} takes {} from {} to {}, not {}{}", description.name, each.name, least,
                         most, value, usual ? ", which is its usual value" : "");
    }
  }
  for (const Expression& condition : description.requirements) {
    if (condition.value(values) != 0) continue;
    return fmt::format("{} requires {}, not p = {}, v = {}, m = {}", description.name,
                       condition.text(), values[0], values[1], values[2]);
  }
  return std::nullopt;
}

// A formula without a value at a shape that nobody asked for says that it is none to suggest.
bool accepts(const Description& description, const Problem& problem) {
  try {
    return !unmet(description, problem);
  } catch (const InputError&) {
    return false;
  }
}

// The nearest number of microbatches that is accepted; the shape itself where none is near.
std::optional<Refusal> refuse(const Description& description, const Problem& problem) {
  const auto reason = unmet(description, problem);
  if (!reason) return std::nullopt;
  constexpr int kMostSteps = 256;
  Problem near = problem;
  for (int step = 1; step <= kMostSteps; ++step) {
    for (const int m : {problem.shape.microbatches - step, problem.shape.microbatches + step}) {
      near.shape.microbatches = m;
      if (m > 0 && accepts(description, near)) return Refusal{*reason, near.shape};
    }
  }
  return Refusal{*reason, problem.shape};
}

int kept_versions(const DescribedVersions& versions, int devices, int device) {
  const long kept = versions.kept.value(std::array<long, 2>{devices, device});
  if (kept >= 1 && kept <= kMostVersions) return static_cast<int>(kept);
  fail(versions.kept.where(),
       fmt::format("device {} keeps {} versions of weights: expected 1 to {}", device, kept,
                   kMostVersions));
}

// A backward, and W, read the weights that the forward read. Where devices step after every
// microbatch, steps between them count versions.
void check_versions(const DescribedVersions& versions, const Program& program) {
  const int devices = program.shape().devices;
  std::vector<int> steps_at_forward(static_cast<size_t>(program.shape().units()));
  for (int device = 0; device < devices; ++device) {
    const int kept = kept_versions(versions, devices, device);
    int steps = 0;
    for (const Pass& pass : program.passes(device)) {
      const bool ends = pass.kind == PassKind::kBW || pass.kind == PassKind::kW;
      int& since = steps_at_forward[pass.microbatch];
      if (pass.kind == PassKind::kF) since = steps;
      if (versions.every_microbatch && steps - since >= kept) {
        fail(versions.kept.where(),
             fmt::format("device {} keeps {} versions of weights, but {} begins {} steps after its "
                         "F: expected {} at least (p = {})",
                         device, kept, program.text(device, pass), steps - since, steps - since + 1,
                         devices));
      }
      if (ends) ++steps;
    }
  }
}

// Where slots do not say it: rules have none, and what waits for collectives is not held to its
// own.
void check_order(const Program& program, const Location& where) {
  try {
    check_executable(program);
  } catch (const InfeasibleError& error) {
    fail(where, fmt::format("for p = {}, m = {}: {}", program.shape().devices,
                            program.shape().microbatches, error.what()));
  }
}

bool shares_vocabulary(const Description& description) {
  if (description.rules) return description.rules->shares_vocabulary();
  return std::ranges::any_of(
      description.block, [](const DescribedPasses& passes) { return is_vocabulary(passes.kind); });
}

Program plan(const Description& description, const Problem& problem) {
  Program program =
      description.rules
          ? plan_by_rules(*description.rules, values_of(description, problem), problem)
          : plan_from_slots(instantiate(description, problem), description.tightened);
  if (description.rules || is_sharded(problem.vocabulary)) check_order(program, description.where);
  if (description.versions) check_versions(*description.versions, program);
  if (description.copies.empty()) return program;
  if (problem.recompute_chunks > 0) program = with_recompute(program, problem.recompute_chunks);
  return with_described_copies(description.copies, values_of(description, problem), program);
}

std::vector<OptionSpec> options_of(const Description& description) {
  std::vector<OptionSpec> options;
  for (const DescribedParameter& each : description.parameters) {
    if (!each.least) continue;
    options.push_back({.name = each.name,
                       .help = fmt::format("from {} to {}", each.least->text(), each.most->text()),
                       .minimum = -kMostSlots,
                       .maximum = kMostSlots,
                       .default_text = each.usual.text()});
  }
  if (description.splits) {
    options.push_back(splits_option());
    options.back().default_text = fmt::format("{}", *description.splits);
  }
  return options;
}

bool has_passes(const Description& description, PassKind kind) {
  if (description.rules) return description.rules->has(kind);
  if (kind == PassKind::kFB) return !description.beside_forward.empty();
  return std::ranges::any_of(description.block,
                             [kind](const DescribedPasses& passes) { return passes.kind == kind; });
}

}  // namespace

std::vector<std::string> placement_names() { return {"p", "v", "s"}; }
std::vector<std::string> size_names() { return {"p", "v", "m", "n"}; }
std::vector<std::string> pass_names() { return {"s", "d", "c", "i", "k", "copy"}; }

std::vector<std::string> reserved_names() {
  std::vector<std::string> names = size_names();
  for (const auto& more : {pass_names(), rule_names()}) {
    names.insert(names.end(), more.begin(), more.end());
  }
  // Words of formulas, and keys next to a schedule.
  for (const char* word :
       {"and", "or", "not", "if", "else", "min", "max", "gcd", "file", "name", "csv", "splits",
        "recompute", "offload", "memory_limit", "virtual_pipeline_model_parallel_size"}) {
    names.emplace_back(word);
  }
  return names;
}

std::vector<long> values_of(const Description& description, const Problem& problem) {
  const Shape& shape = problem.shape;
  std::vector<long> values{shape.devices, shape.chunks, shape.microbatches, shape.splits};
  for (const DescribedParameter& each : description.parameters) {
    const auto given = problem.option<long>(each.name);
    values.push_back(given ? *given : each.usual.value(values));
  }
  return values;
}

std::optional<std::vector<ScheduleOptions>> every_choice(const Description& description,
                                                         const Shape& shape,
                                                         const ScheduleOptions& given,
                                                         size_t most) {
  Problem problem;
  problem.shape = shape;
  std::vector<ScheduleOptions> choices{given};
  for (const DescribedParameter& each : description.parameters) {
    if (!each.least || given.contains(each.name)) continue;
    std::vector<ScheduleOptions> longer;
    for (const ScheduleOptions& choice : choices) {
      problem.options = choice;
      const std::vector<long> values = values_of(description, problem);
      const long last = each.most->value(values);
      for (long value = each.least->value(values); value <= last; ++value) {
        if (longer.size() == most) return std::nullopt;
        longer.push_back(choice);
        longer.back()[each.name] = value;
      }
    }
    choices = std::move(longer);
  }
  return choices;
}

Slotted instantiate(const Description& description, const Problem& problem) {
  return Instance(description, problem).make();
}

std::shared_ptr<const DescribedSchedule> as_schedule(Description description) {
  using Kind = DescribedPlacement::Kind;
  const auto shared = std::make_shared<const Description>(std::move(description));
  const Kind kind = shared->placement.kind;
  const bool one = kind == Kind::kLinear;
  const bool two = kind == Kind::kVee || kind == Kind::kBidirectional;
  Schedule schedule;
  schedule.name = shared->name;
  schedule.summary = shared->summary;
  schedule.source = shared->source;
  schedule.default_chunks = one ? 1 : two ? 2 : shared->chunks;
  const bool fixed = one || two || kind == Kind::kList;
  schedule.min_chunks = fixed ? schedule.default_chunks : 1;
  schedule.max_chunks = fixed ? schedule.default_chunks : kMostChunks;
  schedule.default_splits = shared->splits.value_or(1);
  schedule.options = options_of(*shared);
  schedule.place = [shared](int devices, int chunks) {
    return place(shared->placement, devices, chunks);
  };
  schedule.refuse = [shared](const Problem& problem) { return refuse(*shared, problem); };
  schedule.plan = [shared](const Problem& problem) { return plan(*shared, problem); };
  if (shared->versions) {
    schedule.versions = {
        .kept = [shared](int devices,
                         int device) { return kept_versions(*shared->versions, devices, device); },
        .every_microbatch = shared->versions->every_microbatch};
  }
  schedule.whole_backward = !has_passes(*shared, PassKind::kB);
  schedule.describes_recompute = has_passes(*shared, PassKind::kR);
  schedule.describes_copies = !shared->copies.empty();
  if (has_passes(*shared, PassKind::kFB)) {
    schedule.blocks = [](const ScheduleOptions&) { return std::optional(BlockRun{}); };
  }
  schedule.file = shared->file;
  schedule.no_flags = "it is described in a file of yours";
  const char* follows = shared->rules ? "it follows from the rules" : "it follows from the block";
  schedule.claims.bubble.no_closed_form = schedule.claims.peak.no_closed_form = follows;
  if (shares_vocabulary(*shared)) {
    for (const VocabularyPlacement placement :
         {VocabularyPlacement::kInterlaced, VocabularyPlacement::kVocab1,
          VocabularyPlacement::kVocab2}) {
      schedule.vocabulary.push_back({placement, schedule.claims});
    }
  }
  return std::make_shared<const DescribedSchedule>(DescribedSchedule{shared, std::move(schedule)});
}

}  // namespace pipesim
