#include "sim/interop/torch/csv_reader.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "sim/core/input_text.h"
#include "sim/execution/walk.h"
#include "sim/interop/torch/cells.h"
#include "sim/interop/torch/messages.h"
#include "sim/pipeline/copy_cells.h"

namespace pipesim {
namespace {

constexpr int kMaxNumber = 1 << 20;
constexpr int kMaxChunks = 1 << 10;  // as a scenario may ask for
constexpr int kMaxSplits = 1 << 10;  // likewise
// From so many times too few passes on, a message counts them instead of naming one that is
// missing.
constexpr size_t kFarTooMany = 3;

struct Action {
  int stage = 0;  // -1 of a device's share of the vocabulary
  PassKind kind = PassKind::kF;
  int microbatch = 0;
  int split = 0;
  std::optional<CopyCellKind> copy = {};  // instead of a pass
  bool alone = false;
};

struct Cell {
  std::vector<Action> actions;  // two for an overlapped block, none for what is derived
  int line = 0;
  int column = 0;
  std::optional<StageMessage> message = {};  // instead of actions
};

// The text, to say where something stands in it.
struct Source {
  std::string name;
  SharedLines lines;
  bool ours = false;  // its letters are those of Program::text

  [[nodiscard]] Location locate(int line, int column) const {
    return {name, line, column, lines[static_cast<size_t>(line) - 1]};
  }
  [[nodiscard]] Location locate(const Cell& cell) const { return locate(cell.line, cell.column); }
};

class CellParser {
 public:
  CellParser(std::string_view text, const Source& source, int line, int column)
      : text_(text), source_(source), line_(line), column_(column) {}

  Cell parse() { return source_.ours ? parse_ours() : parse_torch(); }

 private:
  Cell parse_ours() {
    Cell cell{{}, line_, column_};
    cell.actions.push_back(action());
    if (take('&')) {
      cell.actions.push_back(action());
      const bool known =
          cell.actions[0].kind == PassKind::kF && runs_beside_forward(cell.actions[1].kind);
      if (!known) fail("an overlapped block is an F and a BW, B or W");
    }
    if (at_ != text_.size()) fail("nothing may follow the pass");
    return cell;
  }
  Cell parse_torch() {
    Cell cell{{}, line_, column_, stage_message(text_)};
    if (cell.message || skip_derived()) return cell;
    if (!take('(')) {
      cell.actions.push_back(action());
    } else {
      cell.actions.push_back(action());
      if (!take(';')) fail("expected ';' between the passes of an overlapped block");
      cell.actions.push_back(action());
      if (!take(')')) fail("expected ')' after the passes of an overlapped block");
      constexpr std::string_view kOverlap = "OVERLAP_F_B";
      if (!text_.substr(at_).starts_with(kOverlap)) fail("expected OVERLAP_F_B after ')'");
      at_ += kOverlap.size();
      const bool known = !cell.actions[0].copy && !cell.actions[1].copy &&
                         cell.actions[0].kind == PassKind::kF &&
                         runs_beside_forward(cell.actions[1].kind);
      if (!known) fail("an overlapped block is an F and a B (full backward), I or W");
    }
    if (at_ != text_.size()) fail("nothing may follow the action");
    return cell;
  }
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(source_.locate(line_, column_ + static_cast<int>(at_)),
                     fmt::format("cell '{}': {}", text_, message));
  }
  // Gathering of weights and reduction of gradients, of PyTorch's data parallelism.
  bool skip_derived() const {
    constexpr std::array<std::string_view, 3> kDerived{"UNSHARD", "RESHARD", "REDUCE_GRAD"};
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    std::string_view word = text_;
    while (!word.empty() && is_digit(word.front())) word.remove_prefix(1);
    const bool has_stage = word.size() < text_.size();
    while (!word.empty() && is_digit(word.back())) word.remove_suffix(1);  // the microbatch
    return has_stage && std::ranges::find(kDerived, word) != kDerived.end();
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  int number(const char* what) {
    const size_t begin = at_;
    int value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      value = value * 10 + (text_[at_++] - '0');
      if (value > kMaxNumber) fail(fmt::format("{} is larger than {}", what, kMaxNumber));
    }
    if (at_ == begin) {
      fail(fmt::format("expected <stage><{}><microbatch>, such as 2F0: no {} here",
                       source_.ours ? "F|B|W|BW|R" : "F|I|W|B|R", what));
    }
    return value;
  }
  Action action() {
    Action action;
    if (const auto kind = vocabulary_kind()) {
      action.stage = -1;
      action.kind = *kind;
    } else {
      action.stage = number("stage");
      action.copy = copy_kind();
      if (!action.copy) action.kind = source_.ours ? our_kind() : torch_kind();
    }
    action.microbatch = number("microbatch");
    if (take('.')) action.split = split();
    if (action.copy && text_.substr(at_) == kAlone) {
      action.alone = true;
      at_ = text_.size();
    }
    return action;
  }
  int split() {
    const size_t begin = at_;
    const int split = number("split");
    if (split < kMaxSplits) return split;
    at_ = begin;
    fail(fmt::format("a microbatch has at most {} splits", kMaxSplits));
  }
  std::optional<CopyCellKind> copy_kind() {
    for (const CopyCellKind kind : {CopyCellKind::kOut, CopyCellKind::kIn, CopyCellKind::kWait}) {
      if (source_.ours || !text_.substr(at_).starts_with(to_text(kind))) continue;
      at_ += to_text(kind).size();
      return kind;
    }
    return std::nullopt;
  }
  std::optional<PassKind> vocabulary_kind() {
    for (const PassKind kind : {PassKind::kIF, PassKind::kIB, PassKind::kS, PassKind::kT}) {
      if (source_.ours || !text_.substr(at_).starts_with(to_text(kind))) continue;
      at_ += to_text(kind).size();
      return kind;
    }
    return std::nullopt;
  }
  PassKind our_kind() {
    for (const PassKind kind :
         {PassKind::kBW, PassKind::kF, PassKind::kB, PassKind::kW, PassKind::kR}) {
      if (!text_.substr(at_).starts_with(to_text(kind))) continue;
      at_ += to_text(kind).size();
      return kind;
    }
    fail("expected F, B, W, BW or R after the stage");
  }
  PassKind torch_kind() {
    constexpr std::string_view kLetters = "FIWBR";
    constexpr std::array kKinds{PassKind::kF, PassKind::kB, PassKind::kW, PassKind::kBW,
                                PassKind::kR};
    const size_t letter = at_ < text_.size() ? kLetters.find(text_[at_]) : std::string_view::npos;
    if (letter == std::string_view::npos) fail("expected F, I, W, B or R after the stage");
    ++at_;
    return kKinds.at(letter);
  }

  std::string_view text_;
  const Source& source_;
  int line_;
  int column_;
  size_t at_ = 0;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

using Rows = std::vector<std::vector<Cell>>;

// Passes and messages, in their order.
std::vector<Cell> parse_row(const Source& source, int line) {
  const std::string_view text = source.lines[static_cast<size_t>(line) - 1].view();
  std::vector<Cell> cells;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string_view raw(text.data() + begin, end - begin);
    std::string_view cell = trimmed(raw);
    // PyTorch's writer may quote a cell.
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') {
      cell = cell.substr(1, cell.size() - 2);
    }
    if (!cell.empty()) {
      const auto column = static_cast<int>(cell.data() - text.data()) + 1;
      Cell read = CellParser(cell, source, line, column).parse();
      if (!read.actions.empty() || read.message) cells.push_back(std::move(read));
    }
    begin = end + 1;
  }
  return cells;
}

Source split_lines(const std::string& name, const std::string& text) {
  return {name, SharedLines(text)};
}

bool has_actions(const std::vector<Cell>& row) {
  return std::ranges::any_of(row, [](const Cell& cell) { return !cell.message; });
}

Rows parse(const Source& source) {
  Rows rows;
  for (int line = 1; line <= static_cast<int>(source.lines.size()); ++line) {
    const std::string_view text = trimmed(source.lines[static_cast<size_t>(line) - 1].view());
    if (text.empty() || text.front() == '#') continue;
    rows.push_back(parse_row(source, line));
    if (has_actions(rows.back())) continue;
    throw InputError(source.locate(line, 1), "this rank has no action");
  }
  if (rows.empty())
    throw InputError({source.name, 1, 1, ""}, "expected a row per rank: nothing here");
  return rows;
}

// Sizes that follow from the cells, without the placement.
struct Extent {
  int stages = 0;  // of one copy of the model
  int microbatches = 0;
  int splits = 1;
  bool vocabulary = false;

  [[nodiscard]] int units() const { return microbatches * splits; }
  [[nodiscard]] int unit(const Action& action) const {
    return action.microbatch * splits + action.split;
  }
};

// Visits every pass.
template <class Visit>
void each_action(const Rows& rows, const Visit& visit) {
  for (size_t rank = 0; rank < rows.size(); ++rank) {
    for (const Cell& cell : rows[rank]) {
      for (const Action& action : cell.actions) {
        if (!action.copy) visit(static_cast<int>(rank), cell, action);
      }
    }
  }
}

// Every stage runs at least an F and a B of every unit: a number far too large for the cells that
// are there is refused before anything is sized by it.
Extent extent_of(const Rows& rows, const Source& source) {
  Extent extent;
  std::set<int> stages;
  size_t actions = 0;
  const Cell* largest = &rows.front().front();
  each_action(rows, [&](int /*rank*/, const Cell& cell, const Action& action) {
    ++actions;
    if (action.microbatch >= extent.microbatches || action.split >= extent.splits) largest = &cell;
    extent.microbatches = std::max(extent.microbatches, action.microbatch + 1);
    extent.splits = std::max(extent.splits, action.split + 1);
    extent.vocabulary = extent.vocabulary || action.stage < 0;
    if (action.stage >= 0) stages.insert(action.stage);
  });
  extent.stages = static_cast<int>(stages.size());
  for (int stage = 0; const int named : stages) {
    if (named == stage++) continue;
    throw InputError(source.locate(rows.front().front()),
                     fmt::format("stage {} is named, but stage {} is not", named, stage - 1));
  }
  const size_t units =
      static_cast<size_t>(extent.microbatches) * static_cast<size_t>(extent.splits);
  const size_t needed = 2 * stages.size() * units;
  if (needed > kFarTooMany * actions) {
    const std::string split = extent.splits > 1 ? fmt::format(" of {} splits", extent.splits) : "";
    throw InputError(source.locate(*largest),
                     fmt::format("{} microbatches{} on {} stages need at least {} passes, but {} "
                                 "are there",
                                 extent.microbatches, split, extent.stages, needed, actions));
  }
  return extent;
}

// Where stages stand, from the rows that name them. One that stands on several ranks is of as many
// copies of the model, which share the microbatches evenly and in order.
class Stages {
 public:
  Stages(const Rows& rows, const Source& source, const Extent& extent)
      : source_(source), extent_(extent) {
    count_copies(rows);
    device_of_.assign(static_cast<size_t>(copies_) * static_cast<size_t>(extent.stages), -1);
    each_action(rows, [&](int rank, const Cell& cell, const Action& action) {
      if (action.stage < 0) return;
      int& device = device_of_[static_cast<size_t>(stage_of(action))];
      if (device >= 0 && device != rank) {
        fail(cell, fmt::format("stage {} stands on rank {} already", action.stage, device));
      }
      device = rank;
    });
    for (size_t stage = 0; stage < device_of_.size(); ++stage) {
      if (device_of_[stage] >= 0) continue;
      const int copy = static_cast<int>(stage) / extent.stages;
      fail(*second_,
           fmt::format("stage {} stands on rank {} already; of {} copies of the model that "
                       "of microbatches {} to {} would have no stage {}",
                       second_stage_, first_rank_, copies_, first_microbatch(copy),
                       first_microbatch(copy + 1) - 1, static_cast<int>(stage) % extent.stages));
    }
    for (size_t rank = 0; rank < rows.size(); ++rank) {
      const auto held = std::ranges::count(device_of_, static_cast<int>(rank));
      if (held == 0) fail(rows[rank].front(), "this rank has no pass of a stage");
      if (held <= kMaxChunks) continue;
      fail(rows[rank].front(), fmt::format("{} stages on a rank; at most {}", held, kMaxChunks));
    }
  }

  [[nodiscard]] Placement placement() const { return Placement::custom(device_of_, copies_); }
  // The virtual stage: those of the copies follow each other.
  [[nodiscard]] int stage_of(const Action& action) const {
    const long before = (extent_.unit(action) + 1L) * copies_ - 1;
    return static_cast<int>(before / extent_.units()) * extent_.stages + action.stage;
  }

 private:
  void count_copies(const Rows& rows) {
    std::vector<std::vector<int>> ranks(static_cast<size_t>(extent_.stages));
    each_action(rows, [&](int rank, const Cell& cell, const Action& action) {
      if (action.stage < 0) return;
      auto& of = ranks[static_cast<size_t>(action.stage)];
      if (!of.empty() && of.back() == rank) return;  // rows come in order
      of.push_back(rank);
      if (static_cast<int>(of.size()) <= copies_) return;
      copies_ = static_cast<int>(of.size());
      second_ = &cell;
      second_stage_ = action.stage;
      first_rank_ = of.front();
      if (copies_ <= extent_.units()) return;
      fail(cell, fmt::format("stage {} stands on rank {} already", action.stage, of.front()));
    });
  }

  [[nodiscard]] int first_microbatch(int copy) const {
    return static_cast<int>(static_cast<long>(copy) * extent_.microbatches / copies_);
  }
  [[noreturn]] void fail(const Cell& cell, const std::string& message) const {
    throw InputError(source_.locate(cell), message);
  }

  const Source& source_;
  const Extent& extent_;
  int copies_ = 1;
  std::vector<int> device_of_;
  // The cell by which there are so many copies, its stage, and where that stands first.
  const Cell* second_ = nullptr;
  int second_stage_ = 0;
  int first_rank_ = 0;
};

// Copies to the host that stand among the passes.
class Copies {
 public:
  Copies(const Source& source, const Extent& extent, const Stages& stages, const Placement& place)
      : source_(source), extent_(extent), stages_(stages), place_(place) {}

  void add(int rank, size_t position, const Cell& cell) {
    const Action& action = cell.actions.front();
    const bool there = action.stage < extent_.stages && action.split < extent_.splits &&
                       action.microbatch < extent_.microbatches;
    const int vs = there ? stages_.stage_of(action) : -1;
    if (vs < 0 || place_.device(vs) != rank) {
      throw InputError(source_.locate(cell), "this rank has no such stage and microbatch");
    }
    cells_.push_back(&cell);
    copies_.push_back({*action.copy, rank, position, vs, extent_.unit(action), action.alone});
  }

  [[nodiscard]] Program with_copies(Program program) const {
    if (copies_.empty()) return program;
    if (const auto fault = find_copy_fault(program, copies_)) {
      throw InputError(source_.locate(*cells_[fault->cell]), fault->message);
    }
    return with_copy_cells(program, copies_);
  }

 private:
  const Source& source_;
  const Extent& extent_;
  const Stages& stages_;
  const Placement& place_;
  std::vector<const Cell*> cells_;
  std::vector<CopyCell> copies_;
};

// Messages in their order, which is the file's own.
void check_messages_of(const Rows& rows, const Source& source, const Extent& extent,
                       const Stages& stages, const Placement& placement) {
  std::vector<std::vector<RowStep>> steps(rows.size());
  for (size_t rank = 0; rank < rows.size(); ++rank) {
    for (const Cell& cell : rows[rank]) {
      RowStep step{cell.message, {}, source.locate(cell)};
      for (const Action& action : cell.actions) {
        if (!action.copy) step.passes.push_back({action.kind, action.stage, action.microbatch});
      }
      steps[rank].push_back(std::move(step));
    }
  }
  check_messages(steps, extent.stages, [&](int stage, int microbatch) {
    const bool there = microbatch < extent.microbatches;
    return there ? placement.device(stages.stage_of({.stage = stage, .microbatch = microbatch}))
                 : -1;
  });
}

Rows without_messages(Rows rows) {
  for (auto& row : rows) {
    std::erase_if(row, [](const Cell& cell) { return cell.message.has_value(); });
  }
  return rows;
}

Program read_rows(const Source& source) {
  const Rows written = parse(source);
  const Rows rows = without_messages(written);
  const Extent extent = extent_of(rows, source);
  const Stages stages(rows, source, extent);
  const Placement placement = stages.placement();
  check_messages_of(written, source, extent, stages, placement);
  const Shape shape{.devices = placement.devices(),
                    .chunks = placement.chunks(),
                    .microbatches = extent.microbatches,
                    .splits = extent.splits};
  PassLists lists(rows.size());
  std::vector<std::vector<const Cell*>> cells(rows.size());  // of the passes
  std::vector<OverlappedPair> pairs;
  Copies copies(source, extent, stages, placement);
  const auto to_pass = [&](const Action& action) {
    const int chunk = action.stage < 0 ? 0 : placement.chunk(stages.stage_of(action));
    return make_pass(action.kind, extent.unit(action), chunk);
  };
  for (size_t device = 0; device < rows.size(); ++device) {
    for (const Cell& cell : rows[device]) {
      if (cell.actions.front().copy) {
        copies.add(static_cast<int>(device), lists[device].size(), cell);
        continue;
      }
      cells[device].push_back(&cell);
      if (cell.actions.size() == 1) {
        lists[device].push_back(to_pass(cell.actions.front()));
        continue;
      }
      lists[device].push_back(make_pass(PassKind::kFB, static_cast<int>(pairs.size())));
      pairs.push_back({to_pass(cell.actions[0]), to_pass(cell.actions[1])});
    }
  }
  // The sharded placement with the fewest waits is assumed; a scenario names the right one.
  const VocabularyPlacement vocabulary =
      extent.vocabulary ? VocabularyPlacement::kVocab2 : VocabularyPlacement::kFirstLast;
  const NamePass name = [&](PassKind kind, int vs, int unit) {
    const std::string cell = cell_text(placement, extent.splits, kind, vs, unit,
                                       source.ours ? CellLetters::kProgram : CellLetters::kTorch);
    return is_vocabulary(kind) ? fmt::format("{} of rank {}", cell, placement.device(vs)) : cell;
  };
  if (const auto fault = Program::find_fault(shape, placement, lists, pairs, vocabulary, name)) {
    const auto& row = cells[fault->device];
    const auto position = static_cast<size_t>(std::max(0, fault->position));
    throw InputError(source.locate(*row[position]), fault->message);
  }
  Program program = copies.with_copies(
      {shape, placement, std::move(lists), std::move(pairs), WrapAround::kEvery, vocabulary});
  try {
    check_executable(program);
  } catch (const DeadlockError& error) {
    const Deadlock found = error.first(program, name);
    throw InputError(source.locate(*cells[found.device][found.position]),
                     "deadlock: " + found.text);
  }
  return program;
}

}  // namespace

Program read_torch_csv(const std::string& name, const std::string& text) {
  return read_rows(split_lines(name, text));
}

Program read_pass_rows(const std::string& name, const std::string& text) {
  Source source = split_lines(name, text);
  source.ours = true;
  return read_rows(source);
}

Program read_torch_csv_file(const std::string& path, const Location& asked) {
  return read_torch_csv(path, read_input(path, asked));
}

}  // namespace pipesim
