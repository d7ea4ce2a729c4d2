#include "sim/interop/torch/messages.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <tuple>

namespace pipesim {
namespace {

struct Word {
  std::string_view text;
  bool sends, backward;
};
constexpr std::array<Word, 4> kWords{{{"SEND_F", true, false},
                                      {"RECV_F", false, false},
                                      {"SEND_B", true, true},
                                      {"RECV_B", false, true}}};

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr int kMost = 1 << 20;
  const bool whole =
      error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= kMost;
  return whole ? std::optional(value) : std::nullopt;
}

using Key = std::tuple<bool, bool, int, int>;
Key key_of(const StageMessage& message) {
  return {message.sends, message.backward, message.stage, message.microbatch};
}

class MessageOrder {
 public:
  using Rows = std::vector<std::vector<RowStep>>;
  using RankOf = std::function<int(int, int)>;

  MessageOrder(const Rows& rows, int stages, const RankOf& rank_of)
      : rows_(rows), stages_(stages), rank_of_(rank_of) {}

  void check() {
    find_messages();
    if (at_.empty()) return;
    for (size_t rank = 0; rank < rows_.size(); ++rank) {
      for (size_t i = 0; i < rows_[rank].size(); ++i) check_passes(rank, i);
    }
    run();
  }

 private:
  struct Place {
    size_t rank = 0;
    size_t position = 0;
  };

  void find_messages() {
    for (size_t rank = 0; rank < rows_.size(); ++rank) {
      for (size_t i = 0; i < rows_[rank].size(); ++i) {
        const RowStep& step = rows_[rank][i];
        if (!step.message) continue;
        check_ends(rank, step);
        if (!at_.emplace(key_of(*step.message), Place{rank, i}).second) fail(step, "a second time");
      }
    }
  }

  void check_ends(size_t rank, const RowStep& step) const {
    const StageMessage& message = *step.message;
    const int to = other_end(message).stage;
    if (to < 0 || to >= stages_ || message.stage >= stages_) fail(step, "there is no such stage");
    if (rank_of_(message.stage, message.microbatch) != static_cast<int>(rank)) {
      fail(step, fmt::format("stage {} does not stand on this rank", message.stage));
    }
    if (rank_of_(to, message.microbatch) == static_cast<int>(rank)) {
      fail(step, fmt::format("stages {} and {} stand on one rank", message.stage, to));
    }
  }

  // A pass runs behind what it receives and before what it sends.
  void check_passes(size_t rank, size_t position) const {
    for (const RowStep::Pass& pass : rows_[rank][position].passes) {
      if (pass.stage < 0 || pass.kind == PassKind::kW || pass.kind == PassKind::kR) continue;
      const bool backward = pass.kind != PassKind::kF;
      const int from = pass.stage + (backward ? 1 : -1);
      const int to = pass.stage - (backward ? 1 : -1);
      if (crosses(from, pass))
        check_side({false, backward, pass.stage, pass.microbatch}, rank, position);
      if (crosses(to, pass))
        check_side({true, backward, pass.stage, pass.microbatch}, rank, position);
    }
  }

  [[nodiscard]] bool crosses(int other, const RowStep::Pass& pass) const {
    return other >= 0 && other < stages_ &&
           rank_of_(other, pass.microbatch) != rank_of_(pass.stage, pass.microbatch);
  }

  void check_side(const StageMessage& message, size_t rank, size_t position) const {
    const RowStep& step = rows_[rank][position];
    const auto found = at_.find(key_of(message));
    if (found == at_.end()) {
      fail(step, fmt::format("{} is missing {} it", to_text(message),
                             message.sends ? "behind" : "before"));
    }
    if (message.sends == (found->second.position > position)) return;
    fail(step, message.sends
                   ? fmt::format("{}, which sends its output, stands before it", to_text(message))
                   : fmt::format("runs before {}, whose data it needs", to_text(message)));
  }

  // Rows run in order; a message, when both of its ends are next in theirs.
  void run() {
    std::vector<size_t> next(rows_.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t rank = 0; rank < rows_.size(); ++rank) moved = advance(rank, next) || moved;
    }
    for (size_t rank = 0; rank < rows_.size(); ++rank) {
      if (next[rank] < rows_[rank].size()) refuse_deadlock(rank, next);
    }
  }

  bool advance(size_t rank, std::vector<size_t>& next) const {
    bool moved = false;
    while (next[rank] < rows_[rank].size()) {
      const RowStep& step = rows_[rank][next[rank]];
      if (step.message) {
        const Place other = end_of(step);
        if (next[other.rank] != other.position) return moved;
        ++next[other.rank];
      }
      ++next[rank];
      moved = true;
    }
    return moved;
  }

  [[nodiscard]] Place end_of(const RowStep& step) const {
    const StageMessage other = other_end(*step.message);
    const auto found = at_.find(key_of(other));
    if (found == at_.end()) fail(step, fmt::format("{} is in no row", to_text(other)));
    return found->second;
  }

  // From a rank that waits, over what it waits for, until a rank comes again.
  [[noreturn]] void refuse_deadlock(size_t rank, const std::vector<size_t>& next) const {
    const RowStep& first = rows_[rank][next[rank]];
    std::string text = fmt::format("deadlock: rank {} is in {}", rank, to_text(*first.message));
    std::vector<bool> met(rows_.size(), false);
    while (!met[rank]) {
      met[rank] = true;
      const RowStep& waiting = rows_[rank][next[rank]];
      const StageMessage other = other_end(*waiting.message);
      rank = end_of(waiting).rank;
      text += fmt::format(", whose {} stands behind {} of rank {}", to_text(other),
                          to_text(*rows_[rank][next[rank]].message), rank);
    }
    fail(first, text);
  }

  [[noreturn]] static void fail(const RowStep& step, const std::string& message) {
    throw InputError(step.where, message);
  }

  const Rows& rows_;
  const int stages_;
  const RankOf& rank_of_;
  std::map<Key, Place> at_;
};

}  // namespace

std::optional<StageMessage> stage_message(std::string_view cell) {
  for (const Word& word : kWords) {
    const size_t at = cell.find(word.text);
    if (at == std::string_view::npos) continue;
    const auto stage = number(cell.substr(0, at));
    const auto microbatch = number(cell.substr(at + word.text.size()));
    if (stage && microbatch) return StageMessage{word.sends, word.backward, *stage, *microbatch};
  }
  return std::nullopt;
}

std::string to_text(const StageMessage& message) {
  const auto* word = std::ranges::find_if(kWords, [&message](const Word& each) {
    return each.sends == message.sends && each.backward == message.backward;
  });
  return fmt::format("{}{}{}", message.stage, word->text, message.microbatch);
}

StageMessage other_end(const StageMessage& message) {
  const bool up = message.sends != message.backward;
  return {!message.sends, message.backward, message.stage + (up ? 1 : -1), message.microbatch};
}

void check_messages(const std::vector<std::vector<RowStep>>& rows, int stages,
                    const std::function<int(int stage, int microbatch)>& rank_of) {
  MessageOrder(rows, stages, rank_of).check();
}

}  // namespace pipesim
