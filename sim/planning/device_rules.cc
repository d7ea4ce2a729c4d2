#include "sim/planning/device_rules.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <utility>

#include "sim/core/enum_array.h"
#include "sim/core/error.h"

namespace pipesim {
namespace {

// A device that follows the rules.
class RuledDevice {
 public:
  // `pairs`: of the devices before, and then of this one.
  RuledDevice(const DeviceRules& rules, std::vector<long> values, const Problem& problem,
              int device, std::vector<OverlappedPair>& pairs)
      : pairs_(pairs),
        rules_(rules),
        values_(std::move(values)),
        problem_(problem),
        place_(problem.placement),
        device_(device) {
    now_.chunks.resize(static_cast<size_t>(place_.chunks(device)));
    values_.insert(values_.end(), {device, 0});
    const int units = problem.shape.units();
    for (int chunk = 0; chunk < place_.chunks(device); ++chunk) {
      const int vs = place_.virtual_stage(device, chunk);
      Chunk& of = now_.chunks[static_cast<size_t>(chunk)];
      of.first = place_.first_unit(vs, units);
      of.units = place_.end_unit(vs, units) - of.first;
    }
  }

  void run() {
    for (const RulePhase& phase : rules_.phases) {
      const long most = phase.rounds ? phase.rounds->value(values_) : kNoEnd;
      long rounds = 0;
      while (rounds < most && run_round(phase)) ++rounds;
      rounds_.push_back(rounds);
    }
    check_complete();
  }
  [[nodiscard]] std::vector<Pass>& passes() { return list_; }

  [[nodiscard]] RuleFigures figures() const {
    RuleFigures figures{rounds_, 0};
    int held = 0;
    for (const Pass& pass : list_) {
      const bool block = pass.kind == PassKind::kFB;
      const PassKind last = block ? pairs_[pass.microbatch].backward.kind : pass.kind;
      if (block || pass.kind == PassKind::kF) {
        figures.in_flight = std::max(figures.in_flight, ++held);
      }
      if (last == PassKind::kBW || last == PassKind::kW) --held;
    }
    return figures;
  }

 private:
  static constexpr long kNoEnd = std::numeric_limits<long>::max();

  struct Chunk {
    int first = 0;  // unit
    int units = 0;
    int forwards = 0, backwards = 0, recomputed = 0;  // that ran
    int weights = 0;                                  // likewise, those of BW too
    size_t next_owed = 0;                             // see Ran
  };
  // Passes that ran.
  struct Ran {
    std::vector<Chunk> chunks;
    int forwards = 0, backwards = 0, recomputed = 0;  // of all chunks
    EnumArray<PassKind, int> vocabulary{};
    size_t next_owed = 0;  // W of all B before it ran
  };
  struct Owed {
    Pass backward;
    bool paid = false;  // its W ran
  };

  // A whole round, or false and nothing.
  bool run_round(const RulePhase& phase) {
    before_ = now_;
    const size_t passes = list_.size();
    const size_t pairs = pairs_.size();
    const size_t owed = owed_.size();
    paid_.clear();
    for (const RuleStep& step : phase.steps) {
      if (is_vocabulary(step.pass.kind) && !is_sharded(problem_.vocabulary)) continue;
      if (run_step(step)) continue;
      std::swap(now_, before_);
      for (const size_t each : paid_) owed_[each].paid = false;
      list_.resize(passes);
      pairs_.resize(pairs);
      owed_.resize(owed);
      return false;
    }
    return list_.size() > passes;
  }

  // A block chooses its backward first, so that its F is not its own.
  bool run_step(const RuleStep& step) {
    if (!step.beside) return run_pass(step.pass);
    if (!run_pass(*step.beside) || !run_pass(step.pass)) return false;
    const Pass forward = list_.back();
    list_.pop_back();
    pairs_.push_back({forward, list_.back()});
    list_.back() = make_pass(PassKind::kFB, static_cast<int>(pairs_.size()) - 1);
    return true;
  }

  bool run_pass(const RulePass& pass) {
    switch (pass.kind) {
      case PassKind::kF:
        return run_forward(pass);
      case PassKind::kW:
        return run_weight(pass);
      case PassKind::kR:
      case PassKind::kB:
      case PassKind::kBW:
        return run_back(pass);
      default:
        return run_vocabulary(pass.kind);
    }
  }

  bool run_forward(const RulePass& pass) {
    Chunk* const chunk = chunk_of(pass, rules_.forward_order, "F", now_.forwards);
    if (chunk == nullptr || chunk->forwards == chunk->units) return false;
    add(pass.kind, *chunk, chunk->first + chunk->forwards++);
    ++now_.forwards;
    return true;
  }

  // Within a microbatch, the last split goes first.
  bool run_back(const RulePass& pass) {
    const bool again = pass.kind == PassKind::kR;
    Chunk* const chunk =
        chunk_of(pass, rules_.backward_order, "B", again ? now_.recomputed : now_.backwards);
    if (chunk == nullptr) return false;
    int& count = again ? chunk->recomputed : chunk->backwards;
    const int splits = problem_.shape.splits;
    const int unit = count / splits * splits + (splits - 1 - count % splits);
    if (count == chunk->units || unit >= chunk->forwards) return false;
    add(pass.kind, *chunk, chunk->first + unit);
    ++count;
    ++(again ? now_.recomputed : now_.backwards);
    if (pass.kind == PassKind::kB) owed_.push_back({list_.back()});
    if (pass.kind == PassKind::kBW) ++chunk->weights;
    return true;
  }

  bool run_weight(const RulePass& pass) {
    size_t& next = pass.chunk ? named(pass, *pass.chunk).next_owed : now_.next_owed;
    const auto passed = [&](const Owed& owed) {
      return owed.paid || (pass.chunk && owed.backward.chunk != *pass.chunk);
    };
    while (next < owed_.size() && passed(owed_[next])) ++next;
    if (next == owed_.size()) return false;
    const Pass& backward = owed_[next].backward;
    list_.push_back({PassKind::kW, backward.chunk, backward.microbatch});
    ++now_.chunks[backward.chunk].weights;
    owed_[next].paid = true;
    paid_.push_back(next);
    return true;
  }

  bool run_vocabulary(PassKind kind) {
    int& count = now_.vocabulary[kind];
    if (count == problem_.shape.units()) return false;
    list_.push_back(make_pass(kind, count++));
    return true;
  }

  void add(PassKind kind, const Chunk& chunk, int unit) {
    list_.push_back(make_pass(kind, unit, static_cast<int>(&chunk - now_.chunks.data())));
  }

  // nullptr where every pass that an order counts has run.
  Chunk* chunk_of(const RulePass& pass, const std::optional<Expression>& order, const char* which,
                  int number) {
    if (pass.chunk) return &named(pass, *pass.chunk);
    if (!order) {
      if (held() == 1) return now_.chunks.data();
      throw InputError(
          pass.where,
          fmt::format("of which chunk? device {} has {}: expected {}0 to {}{}, or "
                      "'order: {{{}: FORMULA}}'",
                      device_, held(), to_text(pass.kind), to_text(pass.kind), held() - 1, which));
    }
    if (number == all_units()) return nullptr;
    values_.back() = number;
    const long chunk = order->value(values_);
    if (chunk >= 0 && chunk < held()) return &now_.chunks[static_cast<size_t>(chunk)];
    throw InputError(order->where(),
                     fmt::format("{} {} of device {} is of chunk {}: expected 0 to {}", which,
                                 number, device_, chunk, held() - 1));
  }

  Chunk& named(const RulePass& pass, int chunk) {
    if (chunk < held()) return now_.chunks[static_cast<size_t>(chunk)];
    throw InputError(pass.where, fmt::format("device {} has no chunk {}: they are 0 to {}", device_,
                                             chunk, held() - 1));
  }

  [[nodiscard]] int held() const { return static_cast<int>(now_.chunks.size()); }
  [[nodiscard]] int all_units() const {
    int units = 0;
    for (const Chunk& chunk : now_.chunks) units += chunk.units;
    return units;
  }

  void check_complete() const {
    for (int chunk = 0; chunk < held(); ++chunk) {
      const Chunk& of = now_.chunks[static_cast<size_t>(chunk)];
      if (of.weights == of.units) continue;
      const auto [what, ran] = of.forwards < of.units    ? std::pair("F", of.forwards)
                               : of.backwards < of.units ? std::pair("B, or BW,", of.backwards)
                                                         : std::pair("W", of.weights);
      throw InputError(
          rules_.where,
          fmt::format("the rules leave {} of {} {} of stage {} out on device {} (p = {}, m = {})",
                      of.units - ran, of.units, what,
                      place_.model_stage(place_.virtual_stage(device_, chunk)), device_,
                      problem_.shape.devices, problem_.shape.microbatches));
    }
  }

  std::vector<OverlappedPair>& pairs_;
  const DeviceRules& rules_;
  std::vector<long> values_;  // of sizes, parameters, d and i
  const Problem& problem_;
  const Placement& place_;
  int device_;
  Ran now_;
  Ran before_;                // the round that is under way
  std::vector<Owed> owed_;    // the B, in order
  std::vector<size_t> paid_;  // in this round, of `owed_`
  std::vector<long> rounds_;  // of the phases
  std::vector<Pass> list_;
};

}  // namespace

bool DeviceRules::has(PassKind kind) const {
  const auto runs = [kind](const RuleStep& step) {
    if (!step.beside) return step.pass.kind == kind;
    return kind == PassKind::kFB || step.pass.kind == kind || step.beside->kind == kind;
  };
  return std::ranges::any_of(
      phases, [&](const RulePhase& phase) { return std::ranges::any_of(phase.steps, runs); });
}

bool DeviceRules::shares_vocabulary() const {
  return has(PassKind::kS) || has(PassKind::kT) || has(PassKind::kIF) || has(PassKind::kIB);
}

std::vector<std::string> rule_names() { return {"d", "i"}; }

Program plan_by_rules(const DeviceRules& rules, const std::vector<long>& values,
                      const Problem& problem) {
  PassLists lists;
  std::vector<OverlappedPair> pairs;
  for (int device = 0; device < problem.shape.devices; ++device) {
    RuledDevice of(rules, values, problem, device, pairs);
    of.run();
    lists.push_back(std::move(of.passes()));
  }
  const auto fault =
      Program::find_fault(problem.shape, problem.placement, lists, pairs, problem.vocabulary);
  if (fault) {
    throw InputError(rules.where,
                     fmt::format("device {}: {} (p = {}, m = {})", fault->device, fault->message,
                                 problem.shape.devices, problem.shape.microbatches));
  }
  return {problem.shape,    problem.placement,  std::move(lists),
          std::move(pairs), WrapAround::kEvery, problem.vocabulary};
}

std::vector<RuleFigures> figures_of_rules(const DeviceRules& rules, const std::vector<long>& values,
                                          const Problem& problem) {
  std::vector<RuleFigures> figures;
  std::vector<OverlappedPair> pairs;
  for (int device = 0; device < problem.shape.devices; ++device) {
    RuledDevice of(rules, values, problem, device, pairs);
    of.run();
    figures.push_back(of.figures());
  }
  return figures;
}

}  // namespace pipesim
