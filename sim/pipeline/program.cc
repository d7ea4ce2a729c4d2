#include "sim/pipeline/program.h"

#include <cstdint>
#include <fmt/format.h>

#include "sim/core/error.h"

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
  Checker(const Shape& shape, const Placement& placement)
      : placement_(placement),
        units_(shape.units()),
        ran_(static_cast<size_t>(placement.virtual_stages()) * static_cast<size_t>(units_)),
        recomputing_(static_cast<size_t>(placement.virtual_stages()), -1) {}

  std::optional<ProgramFault> add(int device, int position, const Pass& pass) {
    if (pass.chunk >= placement_.chunks()) {
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
    std::uint8_t& seen = at(vs, unit);
    if ((seen & bits(pass.kind)) != 0) {
      return fault(device, position,
                   fmt::format("{}{}{} is there twice", vs, to_text(pass.kind), unit));
    }
    if (pass.kind == PassKind::kR) {
      if ((seen & kForward) == 0) {
        return fault(device, position, fmt::format("{0}R{1} stands before {0}F{1}", vs, unit));
      }
      if ((seen & kInputGradient) != 0) {
        return fault(device, position,
                     fmt::format("{0}R{1} stands behind the backward of microbatch {1}, which "
                                 "needs it",
                                 vs, unit));
      }
      recomputing_[static_cast<size_t>(vs)] = unit;
    }
    seen = static_cast<std::uint8_t>(seen | bits(pass.kind));
    return std::nullopt;
  }

  std::optional<ProgramFault> missing() {
    for (int vs = 0; vs < placement_.virtual_stages(); ++vs) {
      for (int unit = placement_.first_unit(vs, units_); unit < placement_.end_unit(vs, units_);
           ++unit) {
        const std::uint8_t seen = at(vs, unit);
        const int recomputing = recomputing_[static_cast<size_t>(vs)];
        if ((seen & kComplete) == kComplete) {
          if (recomputing < 0 || (seen & kRecompute) != 0) continue;
          return fault(placement_.device(vs), -1,
                       fmt::format("stage {} recomputes microbatch {}, but not {}: it must "
                                   "recompute all or none",
                                   vs, recomputing, unit));
        }
        const char* what = (seen & kForward) == 0         ? "F"
                           : (seen & kInputGradient) == 0 ? "B (or BW)"
                                                          : "W (its B is there)";
        return fault(placement_.device(vs), -1,
                     fmt::format("stage {} has no {} of microbatch {}", vs, what, unit));
      }
    }
    return std::nullopt;
  }

 private:
  static ProgramFault fault(int device, int position, std::string message) {
    return {device, position, std::move(message)};
  }
  std::uint8_t& at(int vs, int unit) {
    return ran_[static_cast<size_t>(vs) * static_cast<size_t>(units_) + static_cast<size_t>(unit)];
  }

  const Placement& placement_;
  int units_;
  std::vector<std::uint8_t> ran_;
  std::vector<int> recomputing_;  // by virtual stage: a unit that it recomputes, -1 if none
};

}  // namespace

Program::Program(const Shape& shape, Placement placement, PassLists lists,
                 std::vector<OverlappedPair> pairs, WrapAround wrap_around)
    : shape_(shape),
      placement_(std::move(placement)),
      lists_(std::move(lists)),
      pairs_(std::move(pairs)),
      wrap_around_(wrap_around),
      recomputes_(static_cast<size_t>(placement_.virtual_stages()), false) {
  if (auto fault = find_fault(shape_, placement_, lists_, pairs_)) {
    throw LogicError("not a program: " + fault->message);
  }
  for (int device = 0; device < placement_.devices(); ++device) {
    for (const Pass& pass : passes(device)) {
      if (pass.kind != PassKind::kR) continue;
      recomputes_[static_cast<size_t>(placement_.virtual_stage(device, pass.chunk))] = true;
    }
  }
}

std::optional<ProgramFault> Program::find_fault(const Shape& shape, const Placement& placement,
                                                const PassLists& lists,
                                                std::span<const OverlappedPair> pairs) {
  if (static_cast<int>(lists.size()) != placement.devices()) {
    return ProgramFault{0, -1,
                        fmt::format("{} lists for {} devices", lists.size(), placement.devices())};
  }
  Checker checker(shape, placement);
  for (int device = 0; device < placement.devices(); ++device) {
    const auto& list = lists[static_cast<size_t>(device)];
    for (size_t i = 0; i < list.size(); ++i) {
      const auto position = static_cast<int>(i);
      if (list[i].kind != PassKind::kFB) {
        if (auto fault = checker.add(device, position, list[i])) return fault;
        continue;
      }
      if (list[i].microbatch >= pairs.size()) {
        return ProgramFault{device, position, "an overlapped block has no pair"};
      }
      const OverlappedPair& pair = pairs[list[i].microbatch];
      if (pair.forward.kind != PassKind::kF || pair.backward.kind != PassKind::kBW) {
        return ProgramFault{device, position, "an overlapped block is an F and a BW"};
      }
      if (auto fault = checker.add(device, position, pair.forward)) return fault;
      if (auto fault = checker.add(device, position, pair.backward)) return fault;
    }
  }
  return checker.missing();
}

size_t Program::size() const {
  size_t passes = 0;
  for (const auto& list : lists_) passes += list.size();
  return passes;
}

std::string Program::text(int device, const Pass& pass) const {
  if (pass.kind == PassKind::kFB) {
    return text(device, pair(pass).forward) + "&" + text(device, pair(pass).backward);
  }
  return fmt::format("{}{}{}", placement_.virtual_stage(device, pass.chunk), to_text(pass.kind),
                     pass.microbatch);
}

}  // namespace pipesim
