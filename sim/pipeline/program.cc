#include "sim/pipeline/program.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <utility>

#include "sim/core/error.h"
#include "sim/core/grid.h"

namespace pipesim {
namespace {

// Bits of what a virtual stage has run for one unit.
constexpr std::uint8_t kForward = 1, kInputGradient = 2, kWeightGradient = 4, kComplete = 7,
                       kRecompute = 8;

std::uint8_t bits(PassKind kind) {
  switch (kind) {
    case PassKind::kF:
      return kForward;
    case PassKind::kB:
      return kInputGradient;
    case PassKind::kW:
      return kWeightGradient;
    case PassKind::kR:
      return kRecompute;
    default:
      return kInputGradient | kWeightGradient;
  }
}

class Checker {
 public:
  Checker(const Shape& shape, const Placement& placement, VocabularyPlacement vocabulary,
          const NamePass& name)
      : placement_(placement),
        name_(name),
        units_(shape.units()),
        sharded_(is_sharded(vocabulary)),
        vocabulary_(sharded_ ? shape.devices : 0, units_),
        ran_(placement.virtual_stages(), units_),
        recomputing_(placement.virtual_stages(), -1) {}

  std::optional<ProgramFault> add(int device, int position, const Pass& pass,
                                  std::span<const OverlappedPair> pairs) {
    if (pass.kind != PassKind::kFB) return add(device, position, pass);
    if (pass.microbatch >= pairs.size()) {
      return fault(device, position, "an overlapped block has no pair");
    }
    const OverlappedPair& pair = pairs[pass.microbatch];
    if (pair.forward.kind != PassKind::kF || !runs_beside_forward(pair.backward.kind)) {
      return fault(device, position, "an overlapped block is an F and a BW, B or W");
    }
    if (auto fault = add(device, position, pair.forward)) return fault;
    return add(device, position, pair.backward);
  }

  std::optional<ProgramFault> missing() {
    for (int device = 0; sharded_ && device < placement_.devices(); ++device) {
      if (auto fault = missing_vocabulary(device)) return fault;
    }
    for (int vs = 0; vs < placement_.virtual_stages(); ++vs) {
      for (int unit = placement_.first_unit(vs, units_); unit < placement_.end_unit(vs, units_);
           ++unit) {
        if (auto fault = missing_of(vs, unit)) return fault;
      }
    }
    return std::nullopt;
  }

 private:
  std::optional<ProgramFault> add(int device, int position, const Pass& pass) {
    if (is_vocabulary(pass.kind)) return add_vocabulary(device, position, pass);
    if (pass.chunk >= placement_.chunks(device)) {
      return fault(device, position, fmt::format("device {} has no chunk {}", device, pass.chunk));
    }
    const int vs = placement_.virtual_stage(device, pass.chunk);
    const auto unit = static_cast<int>(pass.microbatch);
    if (unit < placement_.first_unit(vs, units_) || unit >= placement_.end_unit(vs, units_)) {
      return fault(
          device, position,
          fmt::format("microbatch {} does not travel through stage {} (it has {} to {})", unit, vs,
                      placement_.first_unit(vs, units_), placement_.end_unit(vs, units_) - 1));
    }
    std::uint8_t& seen = ran_(vs, unit);
    if ((seen & bits(pass.kind)) != 0) {
      return fault(device, position, name(pass.kind, vs, unit) + " is there twice");
    }
    if (pass.kind == PassKind::kR) {
      if (auto fault = misplaced_recompute(device, position, vs, unit)) return fault;
      recomputing_[vs] = unit;
    }
    seen = static_cast<std::uint8_t>(seen | bits(pass.kind));
    return std::nullopt;
  }

  [[nodiscard]] std::optional<ProgramFault> misplaced_recompute(int device, int position, int vs,
                                                                int unit) const {
    const std::uint8_t seen = ran_(vs, unit);
    const auto of = [&](PassKind kind) { return name(kind, vs, unit); };
    if ((seen & kForward) == 0) {
      return fault(device, position, of(PassKind::kR) + " stands before " + of(PassKind::kF));
    }
    if ((seen & kInputGradient) == 0) return std::nullopt;
    return fault(device, position, of(PassKind::kR) + " stands behind the backward that needs it");
  }

  [[nodiscard]] std::optional<ProgramFault> missing_of(int vs, int unit) const {
    const std::uint8_t seen = ran_(vs, unit);
    const int recomputing = recomputing_[vs];
    const int device = placement_.device(vs);
    const auto of = [&](PassKind kind) { return name(kind, vs, unit); };
    if ((seen & kForward) == 0) return fault(device, -1, of(PassKind::kF) + " is missing");
    const bool input = (seen & kInputGradient) != 0;
    const bool weight = (seen & kWeightGradient) != 0;
    if (!input && !weight) {
      return fault(device, -1,
                   fmt::format("{}, or {} and {}, is missing", of(PassKind::kBW), of(PassKind::kB),
                               of(PassKind::kW)));
    }
    if (!input || !weight) {
      return fault(
          device, -1,
          fmt::format("{} is there, but {} is missing", of(input ? PassKind::kB : PassKind::kW),
                      of(input ? PassKind::kW : PassKind::kB)));
    }
    if (recomputing < 0 || (seen & kRecompute) != 0) return std::nullopt;
    return fault(device, -1,
                 fmt::format("{} is there, but {} is missing: a stage recomputes all microbatches "
                             "or none",
                             name(PassKind::kR, vs, recomputing), of(PassKind::kR)));
  }

  std::optional<ProgramFault> add_vocabulary(int device, int position, const Pass& pass) {
    const auto named = [&] {
      return name(pass.kind, placement_.virtual_stage(device, 0),
                  static_cast<int>(pass.microbatch));
    };
    if (!sharded_) {
      return fault(device, position,
                   named() +
                       " is of a share of the vocabulary, but the first and the last stage hold "
                       "it");
    }
    if (pass.chunk != 0 || static_cast<int>(pass.microbatch) >= units_) {
      return fault(device, position,
                   fmt::format("{} of chunk {}: vocabulary passes have chunk 0 and a microbatch "
                               "below {}",
                               named(), pass.chunk, units_));
    }
    std::uint8_t& seen = vocabulary_(device, pass.microbatch);
    if ((seen & vocabulary_bit(pass.kind)) != 0) {
      return fault(device, position, named() + " is there twice");
    }
    seen = static_cast<std::uint8_t>(seen | vocabulary_bit(pass.kind));
    return std::nullopt;
  }

  std::optional<ProgramFault> missing_vocabulary(int device) {
    for (int unit = 0; unit < units_; ++unit) {
      for (const PassKind kind : {PassKind::kIF, PassKind::kS, PassKind::kT, PassKind::kIB}) {
        if ((vocabulary_(device, unit) & vocabulary_bit(kind)) != 0) continue;
        return fault(device, -1,
                     name(kind, placement_.virtual_stage(device, 0), unit) + " is missing");
      }
    }
    return std::nullopt;
  }

  static std::uint8_t vocabulary_bit(PassKind kind) {
    return static_cast<std::uint8_t>(1U
                                     << (static_cast<int>(kind) - static_cast<int>(PassKind::kS)));
  }

  static ProgramFault fault(int device, int position, std::string message) {
    return {device, position, std::move(message)};
  }

  [[nodiscard]] std::string name(PassKind kind, int vs, int unit) const {
    return name_of(name_, kind, vs, unit);
  }

  const Placement& placement_;
  const NamePass& name_;
  int units_;
  bool sharded_;
  Grid<std::uint8_t> vocabulary_;  // by device and unit: vocabulary passes that ran
  Grid<std::uint8_t> ran_;         // by virtual stage and unit
  std::vector<int> recomputing_;   // by virtual stage: a unit that it recomputes, -1 if none
};

std::string text_of(const ProgramFault& fault, const PassLists& lists, int units) {
  const std::string at = fault.position < 0 ? ""
                                            : fmt::format(", pass {} of {} from 0", fault.position,
                                                          lists[fault.device].size());
  return fmt::format(
      "device {}{}: {}; expected F once and either BW or B and W once on every stage for each of "
      "{} microbatches",
      fault.device, at, fault.message, units);
}

// Throws LogicError when the plan is none for programs of this shape.
void check_copies(const CopyPlan& plan, const Shape& shape, const Placement& placement) {
  const auto devices = static_cast<std::uint32_t>(placement.devices());
  const auto per_link = static_cast<std::uint32_t>(plan.devices_per_link);
  if (per_link < 1 || plan.links.size() != (devices + per_link - 1) / per_link ||
      plan.gates.size() != devices) {
    throw LogicError("not a copy plan: its links or gates do not match the devices");
  }
  Grid<std::uint8_t> copied(placement.virtual_stages(), shape.units());  // 1: out, 2: back too
  const auto mark = [&](const Copy& copy, size_t link, std::uint8_t before) {
    const bool known = copy.device < devices &&
                       copy.chunk < placement.chunks(static_cast<int>(copy.device)) &&
                       plan.link_of(copy.device) == link && std::cmp_less(copy.unit, shape.units());
    std::uint8_t* const seen =
        known
            ? &copied(placement.virtual_stage(static_cast<int>(copy.device), copy.chunk), copy.unit)
            : nullptr;
    if (seen == nullptr || *seen != before) {
      throw LogicError(fmt::format("not a copy plan: {} of microbatch {}, chunk {} of device {}",
                                   before == 0 ? "copy out" : "copy back", copy.unit, copy.chunk,
                                   copy.device));
    }
    ++*seen;
  };
  for (size_t link = 0; link < plan.links.size(); ++link) {
    const LinkCopies& copies = plan.links[link];
    for (const Copy& copy : copies.out) mark(copy, link, 0);
    for (const Copy& copy : copies.in) mark(copy, link, 1);
    if (copies.out.size() != copies.in.size()) {
      throw LogicError("not a copy plan: a copy out has no way back");
    }
  }
}

}  // namespace

std::string name_of(const NamePass& name, PassKind kind, int vs, int unit) {
  return name ? name(kind, vs, unit) : fmt::format("{}{}{}", vs, to_text(kind), unit);
}

Program::Program(const Shape& shape, Placement placement, PassLists lists,
                 std::vector<OverlappedPair> pairs, WrapAround wrap_around,
                 VocabularyPlacement vocabulary)
    : shape_(shape),
      placement_(std::move(placement)),
      lists_(std::move(lists)),
      pairs_(std::move(pairs)),
      wrap_around_(wrap_around),
      vocabulary_(vocabulary),
      recomputes_(placement_.virtual_stages(), false),
      whole_backwards_(std::ranges::all_of(
          pairs_, [](const OverlappedPair& pair) { return pair.backward.kind == PassKind::kBW; })) {
  if (auto fault = find_fault(shape_, placement_, lists_, pairs_, vocabulary_)) {
    throw LogicError("not a program: " + text_of(*fault, lists_, shape_.units()));
  }
  for (int device = 0; device < placement_.devices(); ++device) {
    for (const Pass& pass : passes(device)) {
      if (pass.kind == PassKind::kB) whole_backwards_ = false;
      if (pass.kind != PassKind::kR) continue;
      recomputes_[placement_.virtual_stage(device, pass.chunk)] = true;
    }
  }
}

[[gnu::flatten]] std::optional<ProgramFault> Program::find_fault(
    const Shape& shape, const Placement& placement, const PassLists& lists,
    std::span<const OverlappedPair> pairs, VocabularyPlacement vocabulary, const NamePass& name) {
  if (static_cast<int>(lists.size()) != placement.devices()) {
    return ProgramFault{0, -1,
                        fmt::format("{} lists for {} devices", lists.size(), placement.devices())};
  }
  if (is_sharded(vocabulary) && placement.directions() != 1) {
    return ProgramFault{0, -1, "a sharded vocabulary has one first and one last stage"};
  }
  Checker checker(shape, placement, vocabulary, name);
  for (int device = 0; device < placement.devices(); ++device) {
    int position = 0;
    for (const Pass& pass : lists[device]) {
      if (auto fault = checker.add(device, position++, pass, pairs)) return fault;
    }
  }
  return checker.missing();
}

Program Program::with_vocabulary(VocabularyPlacement vocabulary) const {
  if (is_sharded(vocabulary) != is_sharded(vocabulary_)) {
    throw LogicError("whether the vocabulary is sharded decides which passes there are");
  }
  Program program = *this;
  program.vocabulary_ = vocabulary;
  return program;
}

Program Program::with_copies(CopyPlan plan) const {
  check_copies(plan, shape_, placement_);
  Program program = *this;
  program.copies_ = std::make_shared<const CopyPlan>(std::move(plan));
  return program;
}

size_t Program::size() const {
  size_t passes = 0;
  for (const auto& list : lists_) passes += list.size();
  return passes;
}

bool Program::recomputes() const {
  return std::ranges::find(recomputes_, true) != recomputes_.end();
}

bool Program::same_order(const Program& other) const {
  return placement_ == other.placement_ && lists_ == other.lists_ && pairs_ == other.pairs_;
}

bool Program::units_overtake() const {
  Grid<std::uint32_t> latest(placement_.virtual_stages(), 3);  // unit, by stage and F, B, W
  const auto overtakes = [&](int device, const Pass& pass) {
    if (is_vocabulary(pass.kind) || pass.kind == PassKind::kR) return false;
    bool any = false;
    for (int bit = 0; bit < 3; ++bit) {
      if ((bits(pass.kind) >> bit & 1) == 0) continue;
      std::uint32_t& at = latest(placement_.virtual_stage(device, pass.chunk), bit);
      any = any || pass.microbatch < at;
      at = pass.microbatch;
    }
    return any;
  };
  for (int device = 0; device < shape_.devices; ++device) {
    for (const Pass& pass : passes(device)) {
      bool any = false;
      visit_parts(pass, [&](const Pass& part) { any = any || overtakes(device, part); });
      if (any) return true;
    }
  }
  return false;
}

std::vector<int> Program::copied_units() const {
  std::vector<int> units(placement_.virtual_stages(), 0);
  if (!copies_) return units;
  for (const LinkCopies& link : copies_->links) {
    for (const Copy& copy : link.out) {
      ++units[placement_.virtual_stage(static_cast<int>(copy.device), copy.chunk)];
    }
  }
  return units;
}

std::string Program::text(int device, const Pass& pass) const {
  if (pass.kind == PassKind::kFB) {
    return text(device, pair(pass).forward) + "&" + text(device, pair(pass).backward);
  }
  return name_of({}, pass.kind, placement_.virtual_stage(device, pass.chunk),
                 static_cast<int>(pass.microbatch));
}

}  // namespace pipesim
