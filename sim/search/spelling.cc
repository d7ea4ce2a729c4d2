#include "sim/search/spelling.h"

#include <array>
#include <utility>

#include "sim/search/bound.h"

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
    const int of = Spelling::letter_of(letter);
    const int number = next_[of]++;
    const auto& units = spelling_.units;
    const Pass pass = make_pass(
        kKinds.at(of / chunks_),
        units.empty() ? number : static_cast<int>(units[first_ + of][number]), of % chunks_);
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
         program.wrap_around() == WrapAround::kEvery && !overtakes_unequally(program, problem);
}

}  // namespace

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
