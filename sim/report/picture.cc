#include "sim/report/picture.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <vector>

#include "sim/core/text.h"

namespace pipesim {
namespace {

constexpr TaskId kNoTask = std::numeric_limits<TaskId>::max();

struct Column {
  double covered = 0;      // of the column, by the pass that covers most of it
  TaskId owner = kNoTask;  // that pass; none: idle
};

const char* colour_of(PassKind kind) {
  switch (kind) {
    case PassKind::kF:
      return "\033[44;97m";
    case PassKind::kB:
      return "\033[46;30m";
    case PassKind::kW:
      return "\033[42;30m";
    case PassKind::kBW:
      return "\033[45;97m";
    case PassKind::kR:
      return "\033[100;97m";
    default:
      return "\033[43;30m";
  }
}

char letter_of(PassKind kind) {
  constexpr std::array<char, kPassKinds> kLetters{'F', 'B', 'W', 'X', '&', 'R'};
  return kLetters[static_cast<size_t>(kind)];
}

class Drawing {
 public:
  Drawing(const Simulation& simulation, int columns)
      : graph_(*simulation.graph),
        timeline_(simulation.timeline),
        devices_(static_cast<size_t>(simulation.program->shape().devices)),
        columns_(static_cast<size_t>(columns)),
        rows_(devices_, std::vector<Column>(columns_)) {
    for_each_pass([this](TaskId task, size_t) {
      begin_ = std::min(begin_, timeline_.start[task]);
      end_ = std::max(end_, timeline_.end[task]);
    });
    for_each_pass([this](TaskId task, size_t device) { paint(task, rows_[device]); });
  }

  [[nodiscard]] double seconds() const { return end_ - begin_; }
  [[nodiscard]] const std::vector<std::vector<Column>>& rows() const { return rows_; }

 private:
  template <class Visit>
  void for_each_pass(Visit visit) const {
    const int middle = graph_.iterations() / 2;
    for (TaskId task = 0; task < graph_.size(); ++task) {
      const TaskClass& of = graph_.task_class(task);
      if (of.kind != TaskKind::kCompute || of.device >= devices_) continue;
      if (graph_.iteration(task) == middle) visit(task, of.device);
    }
  }

  void paint(TaskId task, std::vector<Column>& row) const {
    const double scale = static_cast<double>(columns_) / (end_ - begin_);
    const double from = (timeline_.start[task] - begin_) * scale;
    const double to = (timeline_.end[task] - begin_) * scale;
    const auto first = static_cast<size_t>(from);
    const auto last = std::min(columns_, static_cast<size_t>(std::ceil(to)));
    for (size_t c = first; c < last; ++c) {
      const double covered =
          std::min(to, static_cast<double>(c + 1)) - std::max(from, static_cast<double>(c));
      if (covered > row[c].covered) row[c] = {covered, task};
    }
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  size_t devices_;
  size_t columns_;
  std::vector<std::vector<Column>> rows_;
  double begin_ = std::numeric_limits<double>::infinity();
  double end_ = 0;
};

// A pass's columns hold its letter, then its microbatch's digits as far as the width goes.
std::string line_of(const TaskGraph& graph, const std::vector<Column>& row, bool colour) {
  std::string line;
  for (size_t c = 0, begin = 0; c < row.size(); ++c) {
    const TaskId owner = row[c].owner;
    if (owner == kNoTask) {
      line += '.';
      continue;
    }
    if (c == 0 || row[c - 1].owner != owner) begin = c;
    const PassKind kind = graph.task_class(owner).pass;
    const std::string label = fmt::format("{}{}", letter_of(kind), graph.microbatch(owner));
    const char shown = c - begin < label.size() ? label[c - begin] : '-';
    line += colour ? fmt::format("{}{}\033[0m", colour_of(kind), shown) : std::string(1, shown);
  }
  return line;
}

}  // namespace

std::string draw(const Simulation& simulation, const PictureOptions& options) {
  const Drawing drawing(simulation, options.columns);
  std::string text;
  const size_t label = fmt::format("{}", drawing.rows().size() - 1).size();
  for (size_t device = 0; device < drawing.rows().size(); ++device) {
    text += fmt::format("{:>{}} |{}|\n", device, label,
                        line_of(*simulation.graph, drawing.rows()[device], options.colour));
  }
  text += fmt::format(
      "{:>{}}  0 .. {}; F forward, B input gradient, W weight gradient, X both, "
      "& overlapped, R recompute, . idle; digits: microbatch\n",
      "", label, human(Seconds(drawing.seconds())));
  return text;
}

std::string pass_lists(const Program& program) {
  std::string text;
  for (int device = 0; device < program.shape().devices; ++device) {
    const auto passes = program.passes(device);
    for (size_t i = 0; i < passes.size(); ++i) {
      if (i > 0) text += ' ';
      text += program.text(device, passes[i]);
    }
    text += '\n';
  }
  return text;
}

}  // namespace pipesim
