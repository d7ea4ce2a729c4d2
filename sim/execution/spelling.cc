#include "sim/execution/spelling.h"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/pipeline/dependencies.h"

namespace pipesim {
namespace {

constexpr std::array kKinds{PassKind::kF, PassKind::kB, PassKind::kW, PassKind::kR};

// Appends the letters of one device, and the units that they run through.
class Speller {
 public:
  Speller(const Program& program, Spelling::Word& word, std::vector<std::uint32_t>* units)
      : program_(program), chunks_(program.shape().chunks), word_(word), units_(units) {}

  void add(const Pass& pass) {
    if (pass.kind != PassKind::kFB) return add(pass, 0);
    const OverlappedPair& pair = program_.pair(pass);
    counts_ = counts_ && keeps(pair);
    add(pair.forward, 0);
    add(pair.backward, Spelling::kJoined);
  }
  // True if all blocks stay blocks of two units where the n-th occurrence is unit n.
  [[nodiscard]] bool counts() const { return counts_; }

 private:
  [[nodiscard]] int letter(int kind, const Pass& pass) const { return kind * chunks_ + pass.chunk; }
  [[nodiscard]] size_t seen(int kind, const Pass& pass) const {
    return units_[letter(kind, pass)].size();
  }

  [[nodiscard]] bool keeps(const OverlappedPair& pair) const {
    const Pass& backward = pair.backward;
    const size_t number = seen(backward.kind == PassKind::kW ? 2 : 1, backward);
    const bool whole = backward.kind != PassKind::kBW || number == seen(2, backward);
    return whole && number != seen(0, pair.forward);
  }

  void add(const Pass& pass, std::uint16_t joined) {
    const bool whole = pass.kind == PassKind::kBW;
    for (int kind = 0; kind < static_cast<int>(kKinds.size()); ++kind) {
      const bool half = kKinds.at(kind) == PassKind::kB || kKinds.at(kind) == PassKind::kW;
      if (kKinds.at(kind) == pass.kind || (whole && half)) add(kind, pass, joined);
    }
  }

  void add(int kind, const Pass& pass, std::uint16_t joined) {
    units_[letter(kind, pass)].push_back(pass.microbatch);
    word_.push_back(static_cast<std::uint16_t>(letter(kind, pass) | joined));
  }

  const Program& program_;
  int chunks_;
  Spelling::Word& word_;
  std::vector<std::uint32_t>* units_;  // of each letter
  bool counts_ = true;
};

// Passes of one device from its word, in order.
class Reader {
 public:
  Reader(int chunks, const Spelling& spelling, size_t device, std::vector<Pass>& list,
         std::vector<OverlappedPair>& pairs)
      : chunks_(chunks),
        spelling_(spelling),
        first_(device * static_cast<size_t>(spelling.kinds * chunks)),
        next_(spelling.kinds * chunks),
        list_(list),
        pairs_(pairs) {}

  void add(std::uint16_t letter) {
    const int plain = Spelling::letter_of(letter);
    const int number = next_[plain]++;
    const auto& units = spelling_.units;
    const Pass pass = make_pass(
        kKinds.at(plain / chunks_),
        units.empty() ? number : static_cast<int>(units[first_ + plain][number]), plain % chunks_);
    if (!Spelling::is_joined(letter)) {
      list_.push_back(pass);
    } else if (list_.back().kind == PassKind::kFB) {
      pairs_.back().backward.kind = PassKind::kBW;
    } else {
      pairs_.push_back({list_.back(), pass});
      list_.back() = make_pass(PassKind::kFB, static_cast<int>(pairs_.size()) - 1);
    }
  }

 private:
  int chunks_;
  const Spelling& spelling_;
  size_t first_;  // index of the device's first letter
  std::vector<int> next_;
  std::vector<Pass>& list_;
  std::vector<OverlappedPair>& pairs_;
};

// True if the n-th occurrence of a letter may be unit n.
bool may_count(const Program& program, const Problem& problem) {
  return program.shape().splits == 1 && program.placement().directions() == 1 &&
         program.wrap_around() == WrapAround::kEvery &&
         (problem.kinds.size() <= 1 || !program.units_overtake());
}

// Fills a table stage by stage.
class Tabler {
 public:
  Tabler(const Problem& problem, const Spelling& spelling, int units, LetterTable& table)
      : problem_(problem),
        place_(problem.placement),
        spelling_(spelling),
        chunks_(problem.shape.chunks),
        units_(units),
        table_(table) {}

  void add_stage(int vs) {
    const bool recomputes = spelling_.recompute(vs);
    for (const PassKind kind : kKinds) {
      if (kind == PassKind::kR && !recomputes) continue;
      const int index_of_letter = index({kind, vs});
      const auto& units = spelling_.units;
      table_.count[index_of_letter] =
          static_cast<std::uint32_t>(units.empty() ? units_ : units[index_of_letter].size());
      LetterTable::Letter& letter = table_.letters[index_of_letter];
      const StagePass source = source_of(place_, {kind, vs});
      // On its own stage a word keeps F before R before B before W.
      if (source.exists() && source.vs != vs) letter.source = index(source);
      const StagePass target = target_of(place_, {kind, vs});
      if (target.exists() && place_.device(target.vs) != place_.device(vs)) {
        letter.receiver = place_.device(target.vs);
      }
    }
    if (problem_.kinds.empty()) add_costs(vs, problem_.stages, 0);
    for (size_t kind = 0; kind < problem_.kinds.size(); ++kind) {
      add_costs(vs, problem_.kinds[kind].stages, kind);
    }
    if (place_.upstream(vs) < 0) table_.first_stage_backward = index({PassKind::kB, vs});
  }

  // Finds the numbers of those that the occurrences of a stage's letter wait for.
  void add_awaited(const StagePass& pass) {
    const int index_of_letter = index(pass);
    const StagePass source = source_of(place_, pass);
    if (!source.exists() || source.vs == pass.vs) return;
    const auto& sent = spelling_.units[index(source)];
    std::vector<std::uint32_t> number(units_);
    for (size_t n = 0; n < sent.size(); ++n) number[sent[n]] = static_cast<std::uint32_t>(n);
    for (size_t n = 0; n < spelling_.units[index_of_letter].size(); ++n) {
      const std::uint32_t unit = spelling_.units[index_of_letter][n];
      if (waits(std::min(source.vs, pass.vs), std::max(source.vs, pass.vs), unit)) {
        table_.awaited(index_of_letter, n) = number[unit];
      }
    }
  }

 private:
  [[nodiscard]] int index(const StagePass& pass) const {
    const auto kind = std::ranges::find(kKinds, pass.kind) - kKinds.begin();
    return (place_.device(pass.vs) * spelling_.kinds + static_cast<int>(kind)) * chunks_ +
           place_.chunk(pass.vs);
  }

  void add_costs(int vs, const std::vector<StageCost>& stages, size_t kind) {
    const StageCost& cost = stages[vs];
    const bool recomputes = spelling_.recompute(vs);
    const auto add = [&](PassKind pass, Seconds seconds, Bytes bytes) {
      LetterTable::Cost& one = table_.costs[kind * table_.letters.size() + index({pass, vs})];
      one = {seconds.value(), bytes.value(), 0};
      const StagePass source = source_of(place_, {pass, vs});
      if (source.exists() && source.vs != vs) {
        one.message = stages[std::min(source.vs, vs)].transfer.value();
      }
    };
    add(PassKind::kF, cost.forward, recomputes ? cost.checkpoint : cost.activation);
    add(PassKind::kB, cost.backward_input, cost.weight_stash - cost.activation);
    add(PassKind::kW, cost.backward_weight, -cost.weight_stash);
    if (!recomputes) return;
    add(PassKind::kR, cost.recompute.value_or(cost.forward), cost.activation - cost.checkpoint);
  }

  // True if a message between neighbouring stages is waited for (WrapAround).
  [[nodiscard]] bool waits(int up, int down, std::uint32_t unit) const {
    const auto devices = static_cast<std::uint32_t>(place_.devices());
    return spelling_.wrap_around == WrapAround::kEvery || unit % devices == 0 ||
           place_.device(up) != place_.devices() - 1 || place_.device(down) != 0;
  }

  const Problem& problem_;
  const Placement& place_;
  const Spelling& spelling_;
  int chunks_;
  int units_;
  LetterTable& table_;
};

}  // namespace

LetterTable letter_table(const Problem& problem, const Spelling& spelling, int units) {
  LetterTable table;
  const int letters = problem.shape.devices * spelling.kinds * problem.shape.chunks;
  table.letters.resize(letters);
  table.count.resize(letters);
  table.costs.resize(letters * std::max<size_t>(1, problem.kinds.size()));
  if (!spelling.units.empty()) {
    table.awaited = Grid<std::uint32_t>(letters, units, LetterTable::kNoWait);
  }
  Tabler tabler(problem, spelling, units, table);
  for (int vs = 0; vs < problem.placement.virtual_stages(); ++vs) {
    tabler.add_stage(vs);
    if (spelling.units.empty()) continue;
    tabler.add_awaited({PassKind::kF, vs});
    tabler.add_awaited({PassKind::kB, vs});
  }
  return table;
}

bool travels_one_way(const Program& program) {
  return program.placement().directions() == 1 && program.wrap_around() == WrapAround::kEvery;
}

bool may_go_ahead(const Program& program, int vs) {
  const Placement& place = program.placement();
  return program.wrap_around() != WrapAround::kEvery && program.shape().units() > 1 &&
         place.device(vs) == place.devices() - 1 && place.device(place.downstream(vs)) == 0;
}

std::optional<Spelled> spelled(const Program& program, const Problem& problem) {
  if (program.copies() != nullptr || is_sharded(program.vocabulary())) return std::nullopt;
  const Shape& shape = program.shape();
  Spelled result;
  Spelling& spelling = result.spelling;
  spelling.wrap_around = program.wrap_around();
  if (program.recomputes()) {
    spelling.kinds = static_cast<int>(kKinds.size());
    for (int vs = 0; vs < program.placement().virtual_stages(); ++vs) {
      spelling.recomputes.push_back(program.recomputes(vs));
    }
  }
  const int letters = spelling.kinds * shape.chunks;
  result.words.resize(shape.devices);
  spelling.units.resize(static_cast<size_t>(shape.devices) * letters);
  bool counts = may_count(program, problem);
  for (int d = 0; d < shape.devices; ++d) {
    Speller speller(program, result.words[d], &spelling.units[static_cast<size_t>(d) * letters]);
    for (const Pass& pass : program.passes(d)) speller.add(pass);
    counts = counts && speller.counts();
  }
  if (counts) spelling.units.clear();
  return result;
}

Program program_of(const Problem& problem, const Spelling& spelling,
                   const std::vector<Spelling::Word>& words) {
  PassLists lists(words.size());
  std::vector<OverlappedPair> pairs;
  for (size_t d = 0; d < words.size(); ++d) {
    Reader reader(problem.shape.chunks, spelling, d, lists[d], pairs);
    lists[d].reserve(words[d].size());
    for (const std::uint16_t letter : words[d]) reader.add(letter);
  }
  return {problem.shape, problem.placement, std::move(lists), std::move(pairs),
          spelling.wrap_around};
}

}  // namespace pipesim
