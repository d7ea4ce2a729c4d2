// Our own CSV: a header, then a pass a line. Columns, in any order: rank, kind (F, B, W, BW),
// start_ms and end_ms are required; iteration, microbatch, chunk and stage may be left out, as a
// column or in a line.
#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <sstream>

#include "sim/core/text.h"
#include "sim/interop/passes/recording.h"

namespace pipesim {
namespace {

const std::vector<std::string> kColumns{"rank",      "kind",  "start_ms", "end_ms",
                                        "iteration", "chunk", "stage",    "microbatch"};
constexpr size_t kRequired = 4;
constexpr size_t kMostIterations = 4096;

struct Cell {
  std::string_view text;
  int column = 1;
};

std::vector<Cell> cells_of(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  std::vector<Cell> cells;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find(',', at), line.size());
    size_t begin = at;
    while (begin < end && line[begin] == ' ') ++begin;
    cells.push_back({line.substr(begin, end - begin), static_cast<int>(begin) + 1});
    at = end + 1;
  }
  return cells;
}

class Reader {
 public:
  Reader(const std::string& path, const std::string& text) : path_(path), stream_(text) {}

  Recording read() {
    next();
    read_header();
    Recording recording{.format = "CSV of passes", .where = {path_, 1, 1, line_}};
    while (next()) {
      if (!line_.empty() && line_.front() != '#') read_pass(recording);
    }
    if (recording.iterations.empty()) fail(1, "no pass");
    for (auto& iteration : recording.iterations) {
      iteration.ranks.resize(static_cast<size_t>(recording.ranks));
    }
    sort_by_start(recording);
    return recording;
  }

 private:
  bool next() {
    ++number_;
    line_.clear();
    return static_cast<bool>(std::getline(stream_, line_));
  }
  [[noreturn]] void fail(int column, const std::string& message) const {
    throw InputError({path_, number_, column, line_}, message);
  }

  void read_header() {
    const auto cells = cells_of(line_);
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string name(cells[i].text);
      const auto known = std::ranges::find(kColumns, name);
      if (known == kColumns.end()) {
        fail(cells[i].column,
             fmt::format("column '{}' is not known{}", name, suggestion(name, kColumns)));
      }
      place_[static_cast<size_t>(known - kColumns.begin())] = i;
    }
    for (size_t i = 0; i < kRequired; ++i) {
      if (!place_[i]) fail(1, fmt::format("column '{}' is missing", kColumns[i]));
    }
  }

  // The cell of a column; nothing where it is empty or not there.
  [[nodiscard]] std::optional<Cell> cell(const std::vector<Cell>& cells, size_t column) const {
    if (!place_[column] || *place_[column] >= cells.size()) return std::nullopt;
    const Cell& found = cells[*place_[column]];
    return found.text.empty() ? std::nullopt : std::optional(found);
  }
  template <class T>
  T number(const Cell& cell, T most) const {
    T value{};
    const auto [end, error] =
        std::from_chars(cell.text.data(), cell.text.data() + cell.text.size(), value);
    if (error != std::errc() || end != cell.text.data() + cell.text.size() || value < 0 ||
        !(value <= most)) {
      fail(cell.column, fmt::format("expected a number from 0 to {}, not '{}'", most, cell.text));
    }
    return value;
  }
  PassKind kind(const Cell& cell) const {
    for (const PassKind kind : {PassKind::kF, PassKind::kB, PassKind::kW, PassKind::kBW}) {
      if (cell.text == to_text(kind)) return kind;
    }
    fail(cell.column, fmt::format("expected F, B, W or BW, not '{}'", cell.text));
  }

  void read_pass(Recording& recording) const {
    const auto cells = cells_of(line_);
    for (size_t i = 0; i < kRequired; ++i) {
      if (!cell(cells, i)) fail(1, fmt::format("no {} in this line", kColumns[i]));
    }
    const int most = static_cast<int>(kMostOfPass);
    const auto optional = [&](size_t column) {
      const auto found = cell(cells, column);
      return found ? number(*found, most) : -1;
    };
    const int rank = number(*cell(cells, 0), static_cast<int>(kMostRanks) - 1);
    RecordedPass pass{.kind = kind(*cell(cells, 1)),
                      .chunk = optional(5),
                      .stage = optional(6),
                      .microbatch = optional(7),
                      .start = number(*cell(cells, 2), 1e15) / 1e3,
                      .end = number(*cell(cells, 3), 1e15) / 1e3};
    if (pass.end < pass.start) fail(cell(cells, 3)->column, "the pass ends before it starts");
    const int iteration = std::max(optional(4), 0);
    auto found = std::ranges::find(recording.iterations, iteration, &RecordedIteration::number);
    if (found == recording.iterations.end()) {
      if (recording.iterations.size() == kMostIterations) {
        fail(1, fmt::format("more than {} iterations", kMostIterations));
      }
      recording.iterations.push_back({iteration, {}});
      found = recording.iterations.end() - 1;
    }
    recording.ranks = std::max(recording.ranks, rank + 1);
    recording.chunks = std::max(recording.chunks, pass.chunk + 1);
    found->ranks.resize(std::max(found->ranks.size(), static_cast<size_t>(rank) + 1));
    found->ranks[static_cast<size_t>(rank)].push_back(pass);
  }

  const std::string& path_;
  std::istringstream stream_;
  std::string line_;
  int number_ = 0;
  std::array<std::optional<size_t>, 8> place_;
};

}  // namespace

Recording read_passes_csv(const std::string& path, const std::string& text) {
  return Reader(path, text).read();
}

}  // namespace pipesim
