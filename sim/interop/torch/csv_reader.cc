#include "sim/interop/torch/csv_reader.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "sim/core/input_text.h"

namespace pipesim {
namespace {

constexpr int kMaxNumber = 1 << 20;
constexpr size_t kMaxChunks = 1 << 10;  // as a scenario may ask for

struct Action {
  int stage = 0;
  PassKind kind = PassKind::kF;
  int microbatch = 0;
};

struct Cell {
  std::vector<Action> actions;  // two for an overlapped block, none for what is derived
  int line = 0;
  int column = 0;
};

// The text, to say where something stands in it.
struct Source {
  std::string name;
  std::vector<std::string> lines;
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
    Cell cell{{}, line_, column_};
    if (skip_derived()) return cell;
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
      const bool known =
          cell.actions[0].kind == PassKind::kF && runs_beside_forward(cell.actions[1].kind);
      if (!known) fail("an overlapped block is an F and a B (full backward), I or W");
    }
    if (at_ != text_.size()) fail("nothing may follow the action");
    return cell;
  }
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(source_.locate(line_, column_ + static_cast<int>(at_)),
                     fmt::format("cell '{}': {}", text_, message));
  }
  // What PyTorch's default dump has beside passes: messages, and the gathering of weights and
  // reduction of gradients of its data parallelism.
  bool skip_derived() const {
    constexpr std::array<std::string_view, 7> kDerived{"SEND_F",  "RECV_F",  "SEND_B",     "RECV_B",
                                                       "UNSHARD", "RESHARD", "REDUCE_GRAD"};
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
    action.stage = number("stage");
    action.kind = source_.ours ? our_kind() : torch_kind();
    action.microbatch = number("microbatch");
    return action;
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

std::vector<Cell> parse_row(const Source& source, int line) {
  const std::string& text = source.lines[static_cast<size_t>(line) - 1];
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
      if (!read.actions.empty()) cells.push_back(std::move(read));
    }
    begin = end + 1;
  }
  return cells;
}

Source split_lines(const std::string& name, const std::string& text) {
  Source source{name, {}};
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::istringstream stream(text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size())
                                                             : text);
  for (std::string line; std::getline(stream, line);) source.lines.push_back(line);
  return source;
}

Rows parse(const Source& source) {
  Rows rows;
  for (int line = 1; line <= static_cast<int>(source.lines.size()); ++line) {
    const std::string_view text = trimmed(source.lines[static_cast<size_t>(line) - 1]);
    if (text.empty() || text.front() == '#') continue;
    rows.push_back(parse_row(source, line));
    if (rows.back().empty()) throw InputError(source.locate(line, 1), "this rank has no action");
  }
  if (rows.empty())
    throw InputError({source.name, 1, 1, ""}, "expected a row per rank: nothing here");
  return rows;
}

// Stage -> device, from the rows that name the stages.
std::vector<int> place_stages(const Rows& rows, const Source& source) {
  std::map<int, int> device_of;
  for (size_t device = 0; device < rows.size(); ++device) {
    for (const Cell& cell : rows[device]) {
      for (const Action& action : cell.actions) {
        const auto [known, fresh] = device_of.emplace(action.stage, static_cast<int>(device));
        if (!fresh && known->second != static_cast<int>(device)) {
          throw InputError(source.locate(cell), fmt::format("stage {} stands on rank {} already",
                                                            action.stage, known->second));
        }
      }
    }
  }
  std::vector<int> devices;
  for (const auto& [stage, device] : device_of) {
    if (stage != static_cast<int>(devices.size())) {
      throw InputError(
          source.locate(rows.front().front()),
          fmt::format("stage {} is named, but stage {} is not", stage, devices.size()));
    }
    devices.push_back(device);
  }
  const size_t chunks = devices.size() / rows.size();
  if (chunks > kMaxChunks) {
    throw InputError(source.locate(rows.front().front()),
                     fmt::format("{} stages on a rank; at most {}", chunks, kMaxChunks));
  }
  for (size_t device = 0; device < rows.size(); ++device) {
    const auto held = std::ranges::count(devices, static_cast<int>(device));
    if (static_cast<size_t>(held) != chunks || chunks * rows.size() != devices.size()) {
      throw InputError(
          source.locate(rows[device].front()),
          fmt::format("this rank holds {} of {} stages; every rank must hold equally many", held,
                      devices.size()));
    }
  }
  return devices;
}

// Every stage runs at least an F and a B of every microbatch: a number too large for the cells that
// are there is refused before anything is sized by it.
void check_count(const Rows& rows, const Source& source, size_t stages) {
  size_t actions = 0;
  const Cell* largest = &rows.front().front();
  int microbatch = -1;
  for (const auto& row : rows) {
    for (const Cell& cell : row) {
      actions += cell.actions.size();
      for (const Action& action : cell.actions) {
        if (action.microbatch <= microbatch) continue;
        microbatch = action.microbatch;
        largest = &cell;
      }
    }
  }
  if (2 * stages * (static_cast<size_t>(microbatch) + 1) > actions) {
    throw InputError(
        source.locate(*largest),
        fmt::format("{} microbatches on {} stages need at least {} passes, but {} are there",
                    microbatch + 1, stages, 2 * stages * (static_cast<size_t>(microbatch) + 1),
                    actions));
  }
}

Program read_rows(const Source& source) {
  const Rows rows = parse(source);
  const std::vector<int> device_of = place_stages(rows, source);
  check_count(rows, source, device_of.size());
  const Placement placement = Placement::custom(device_of);
  Shape shape;
  shape.devices = placement.devices();
  shape.chunks = placement.chunks();
  shape.microbatches = 0;
  PassLists lists(rows.size());
  std::vector<OverlappedPair> pairs;
  const auto to_pass = [&](const Action& action) {
    shape.microbatches = std::max(shape.microbatches, action.microbatch + 1);
    return make_pass(action.kind, action.microbatch, placement.chunk(action.stage));
  };
  for (size_t device = 0; device < rows.size(); ++device) {
    for (const Cell& cell : rows[device]) {
      if (cell.actions.size() == 1) {
        lists[device].push_back(to_pass(cell.actions.front()));
        continue;
      }
      lists[device].push_back(make_pass(PassKind::kFB, static_cast<int>(pairs.size())));
      pairs.push_back({to_pass(cell.actions[0]), to_pass(cell.actions[1])});
    }
  }
  if (const auto fault = Program::find_fault(shape, placement, lists, pairs)) {
    const auto& row = rows[fault->device];
    const auto position = static_cast<size_t>(fault->position);
    throw InputError(source.locate(fault->position < 0 ? row.front() : row[position]),
                     fault->message);
  }
  return {shape, placement, std::move(lists), std::move(pairs)};
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
