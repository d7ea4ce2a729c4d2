#include "sim/scenario/torch_csv.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <vector>

namespace pipesim {
namespace {

constexpr int kMaxNumber = 1 << 20;

struct Action {
  int stage = 0;
  PassKind kind = PassKind::kF;
  int microbatch = 0;
};

struct Cell {
  std::vector<Action> actions;  // two for an overlapped block
  Location where;
};

class CellParser {
 public:
  CellParser(std::string_view text, Location where) : text_(text), where_(std::move(where)) {}

  Cell parse() {
    Cell cell{{}, where_};
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
          cell.actions[0].kind == PassKind::kF && cell.actions[1].kind == PassKind::kBW;
      if (!known) fail("an overlapped block is an F and a B (full backward)");
    }
    if (at_ != text_.size()) fail("nothing may follow the action");
    return cell;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    Location where = where_;
    where.column += static_cast<int>(at_);
    throw InputError(where, fmt::format("cell '{}': {}", text_, message));
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
      fail(fmt::format("expected <stage><F|I|W|B><microbatch>, such as 2F0: no {} here", what));
    }
    return value;
  }
  Action action() {
    Action action;
    action.stage = number("stage");
    const char letter = at_ < text_.size() ? text_[at_] : ' ';
    switch (letter) {
      case 'F':
        action.kind = PassKind::kF;
        break;
      case 'I':
        action.kind = PassKind::kB;
        break;
      case 'W':
        action.kind = PassKind::kW;
        break;
      case 'B':
        action.kind = PassKind::kBW;
        break;
      default:
        fail("expected F, I, W or B after the stage (communication actions are derived, not read)");
    }
    ++at_;
    action.microbatch = number("microbatch");
    return action;
  }

  std::string_view text_;
  Location where_;
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

std::vector<Cell> parse_row(const std::string& name, int line, const std::string& text) {
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
      cells.push_back(CellParser(cell, {name, line, column, text}).parse());
    }
    begin = end + 1;
  }
  return cells;
}

Rows parse(const std::string& name, const std::string& text) {
  Rows rows;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (trimmed(line).empty()) continue;
    rows.push_back(parse_row(name, number, line));
    if (rows.back().empty()) {
      throw InputError({name, number, 1, line}, "this rank has no action");
    }
  }
  if (rows.empty()) throw InputError({name, 1, 1, ""}, "expected a row per rank: nothing here");
  return rows;
}

// Stage -> device, from the rows that name the stages.
std::vector<int> place_stages(const Rows& rows) {
  std::map<int, int> device_of;
  for (size_t device = 0; device < rows.size(); ++device) {
    for (const Cell& cell : rows[device]) {
      for (const Action& action : cell.actions) {
        const auto [known, fresh] = device_of.emplace(action.stage, static_cast<int>(device));
        if (!fresh && known->second != static_cast<int>(device)) {
          throw InputError(cell.where, fmt::format("stage {} stands on rank {} already",
                                                   action.stage, known->second));
        }
      }
    }
  }
  std::vector<int> devices;
  for (const auto& [stage, device] : device_of) {
    if (stage != static_cast<int>(devices.size())) {
      throw InputError(
          rows.front().front().where,
          fmt::format("stage {} is named, but stage {} is not", stage, devices.size()));
    }
    devices.push_back(device);
  }
  const size_t chunks = devices.size() / rows.size();
  for (size_t device = 0; device < rows.size(); ++device) {
    const auto held = std::ranges::count(devices, static_cast<int>(device));
    if (static_cast<size_t>(held) != chunks || chunks * rows.size() != devices.size()) {
      throw InputError(
          rows[device].front().where,
          fmt::format("this rank holds {} of {} stages; every rank must hold equally many", held,
                      devices.size()));
    }
  }
  return devices;
}

// Every stage runs at least an F and a B of every microbatch: a number too large for the cells that
// are there is refused before anything is sized by it.
void check_count(const Rows& rows, size_t stages) {
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
        largest->where,
        fmt::format("{} microbatches on {} stages need at least {} passes, but {} are there",
                    microbatch + 1, stages, 2 * stages * (static_cast<size_t>(microbatch) + 1),
                    actions));
  }
}

}  // namespace

Program read_torch_csv(const std::string& name, const std::string& text) {
  const Rows rows = parse(name, text);
  const std::vector<int> device_of = place_stages(rows);
  check_count(rows, device_of.size());
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
    const auto& row = rows[static_cast<size_t>(fault->device)];
    const auto position = static_cast<size_t>(fault->position);
    throw InputError(fault->position < 0 ? row.front().where : row[position].where, fault->message);
  }
  return {shape, placement, std::move(lists), std::move(pairs)};
}

Program read_torch_csv_file(const std::string& path, const Location& asked) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || file.bad())
    throw InputError(asked, fmt::format("cannot read the schedule '{}'", path));
  return read_torch_csv(path, text.str());
}

}  // namespace pipesim
