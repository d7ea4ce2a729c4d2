#include "sim/execution/walk.h"

#include <algorithm>
#include <fmt/format.h>
#include <span>
#include <string>

#include "sim/core/error.h"

namespace pipesim {
namespace {

struct Wanted {
  PassKind kind;  // kB stands for BW too
  int vs;         // of a vocabulary pass: chunk 0 of its device
  std::uint32_t unit;
};

// Explains a stuck program: it replays "has it run yet?" from the positions alone.
class Explainer {
 public:
  Explainer(const Program& program, const std::vector<std::uint32_t>& position,
            const NamePass& name)
      : program_(program), place_(program.placement()), position_(position), name_(name) {}

  [[nodiscard]] std::string explain() const {
    std::string text = "deadlock:";
    for (int d = 0; d < place_.devices(); ++d) {
      if (!is_stuck(d)) continue;
      const auto want = wanted(d);
      text += fmt::format(
          "\n  device {} waits before {} for {}", d, name_blocked(d),
          want ? fmt::format("{} of device {}", name(*want), place_.device(want->vs)) : kCopies);
    }
    const std::vector<int> devices = chain();
    return wanted(devices.front()) ? text + "\n  cycle: " + cycle(devices) : text;
  }

  [[nodiscard]] Deadlock first() const {
    const std::vector<int> devices = chain();
    const int device = devices.front();
    return {.device = device,
            .position = static_cast<int>(position_[device]),
            .text = wanted(device) ? cycle(devices)
                                   : fmt::format("{} waits for {}", name_blocked(device), kCopies)};
  }

 private:
  static constexpr const char* kCopies = "its turn, or a copy";

  [[nodiscard]] bool is_stuck(int device) const {
    return position_[device] < program_.passes(device).size();
  }
  [[nodiscard]] const Pass& blocked(int device) const {
    return program_.passes(device)[position_[device]];
  }

  // True if the device has run the pass (kB finds BW and overlapped blocks too).
  [[nodiscard]] bool ran(const Wanted& want) const {
    const int device = place_.device(want.vs);
    const auto done = program_.passes(device).first(position_[device]);
    return std::ranges::any_of(done, [&](const Pass& pass) { return provides(pass, want); });
  }
  [[nodiscard]] bool provides(const Pass& pass, const Wanted& want) const {
    if (pass.kind == PassKind::kFB) {
      return provides(program_.pair(pass).forward, want) ||
             provides(program_.pair(pass).backward, want);
    }
    const bool kind = want.kind == PassKind::kB
                          ? pass.kind == PassKind::kB || pass.kind == PassKind::kBW
                          : pass.kind == want.kind;
    return kind && pass.chunk == place_.chunk(want.vs) && pass.microbatch == want.unit;
  }

  // Nothing where the device waits for copies alone.
  [[nodiscard]] std::optional<Wanted> wanted(int device) const {
    const Pass& pass = blocked(device);
    if (pass.kind != PassKind::kFB) return missing(device, pass);
    const auto forward = missing(device, program_.pair(pass).forward);
    return forward ? forward : missing(device, program_.pair(pass).backward);
  }
  [[nodiscard]] std::optional<Wanted> missing(int device, const Pass& pass) const {
    const StagePass at{pass.kind, place_.virtual_stage(device, pass.chunk)};
    const std::uint32_t unit = pass.microbatch;
    std::vector<Wanted> wants;
    const auto splits = static_cast<std::uint32_t>(program_.shape().splits);
    if (const auto before = split_before(at.kind, unit, splits)) {
      wants.push_back({is_backward(at.kind) ? PassKind::kB : at.kind, at.vs, *before});
    }
    const StagePass source = source_of(place_, at);
    if (source.exists()) wants.push_back({source.kind, source.vs, unit});
    if (sharded_) add_collective(wants, at, unit);
    if (is_vocabulary(at.kind) && program_.vocabulary() == VocabularyPlacement::kInterlaced) {
      add_meeting(wants, pass);
    }
    const auto found = std::ranges::find_if(wants, [this](const Wanted& w) { return !ran(w); });
    return found == wants.end() ? std::nullopt : std::optional<Wanted>(*found);
  }

  void add_collective(std::vector<Wanted>& wants, const StagePass& at, std::uint32_t unit) const {
    const auto collective = collective_before(place_, program_.vocabulary(), at);
    if (!collective) return;
    const StagePass gathered = gathered_by(place_, *collective);
    if (gathered.exists()) {
      wants.push_back({gathered.kind, gathered.vs, unit});
      return;
    }
    for (int d = 0; d < place_.devices(); ++d) {
      wants.push_back({gathered.kind, place_.virtual_stage(d, 0), unit});
    }
  }
  // The other devices must have come to the same pass.
  void add_meeting(std::vector<Wanted>& wants, const Pass& pass) const {
    for (int d = 0; d < place_.devices(); ++d) {
      if (is_stuck(d) && blocked(d) == pass) continue;
      wants.push_back({pass.kind, place_.virtual_stage(d, 0), pass.microbatch});
    }
  }

  [[nodiscard]] std::string name(PassKind kind, int vs, std::uint32_t unit) const {
    return name_of(name_, kind, vs, static_cast<int>(unit));
  }
  // A backward as the program has it: B or BW.
  [[nodiscard]] std::string name(const Wanted& want) const {
    for (const Pass& pass : program_.passes(place_.device(want.vs))) {
      if (!provides(pass, want)) continue;
      const Pass* found = &pass;
      if (pass.kind == PassKind::kFB) {
        const OverlappedPair& pair = program_.pair(pass);
        found = provides(pair.forward, want) ? &pair.forward : &pair.backward;
      }
      return name(found->kind, want.vs, want.unit);
    }
    return name(want.kind, want.vs, want.unit);
  }
  [[nodiscard]] std::string name_blocked(int device) const {
    const Pass& pass = blocked(device);
    const auto of = [&](const Pass& one) {
      return name(one.kind, place_.virtual_stage(device, one.chunk), one.microbatch);
    };
    if (pass.kind != PassKind::kFB) return of(pass);
    const OverlappedPair& pair = program_.pair(pass);
    return of(pair.forward) + "&" + of(pair.backward);
  }

  // Each stuck device waits for a pass that stands behind the one where its own device is stuck;
  // following that from any of them comes round, or to a device that waits for copies: it alone.
  [[nodiscard]] std::vector<int> chain() const {
    std::vector<int> order(place_.devices(), -1);
    std::vector<int> path;
    int device = 0;
    while (!is_stuck(device)) ++device;
    while (order[device] < 0) {
      order[device] = static_cast<int>(path.size());
      path.push_back(device);
      const auto want = wanted(device);
      if (!want) return {device};
      device = place_.device(want->vs);
    }
    path.erase(path.begin(), path.begin() + order[device]);
    return path;
  }
  [[nodiscard]] std::string cycle(const std::vector<int>& devices) const {
    std::string text;
    for (const int device : devices) {
      text += fmt::format("{} needs {}, which stands behind ", name_blocked(device),
                          name(*wanted(device)));
    }
    return text + name_blocked(devices.front());
  }

  const Program& program_;
  const Placement& place_;
  const std::vector<std::uint32_t>& position_;
  const NamePass& name_;
  bool sharded_ = is_sharded(program_.vocabulary());
};

struct OrderVisitor {
  using Value = char;
  static constexpr Value kNotYet = 0;
  static constexpr Value kNothing = 1;

  static Value run(int, const Pass&, Value, Value) { return kNothing; }
  static Value deliver(Value result, PassKind, int, int, std::uint32_t) { return result; }
  static Value join(Barrier, std::uint32_t, std::span<const Value>) { return kNothing; }
  static Value last(int) { return kNothing; }
  static void hold(int, Value) {}
  static Value copy(const Copy&, bool, Value, Value) { return kNothing; }
  static void await(int, Value) {}
};

}  // namespace

void check_executable(const Program& program) {
  OrderVisitor visitor;
  walk(program, visitor);
}

void report_deadlock(const Program& program, const std::vector<std::uint32_t>& position) {
  throw DeadlockError(Explainer(program, position, {}).explain(), position);
}

Deadlock DeadlockError::first(const Program& program, const NamePass& name) const {
  return Explainer(program, stuck_, name).first();
}

}  // namespace pipesim
