#include "sim/report/text/picture.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <vector>

#include "sim/core/text.h"
#include "sim/pipeline/copy_cells.h"
#include "sim/report/drawing/drawing.h"
#include "sim/report/drawing/palette.h"

namespace pipesim {
namespace {

char letter_of(PassKind kind) {
  if (kind == PassKind::kBW) return 'X';
  if (kind == PassKind::kFB) return '&';
  return to_text(kind).front();
}

std::string escape_of(const TaskClass& pass, int chunks) {
  const Colour fill = fill_of(pass.pass, pass.chunk, chunks);
  return fmt::format("\033[48;5;{}m\033[38;5;{}m", terminal_colour(fill),
                     terminal_colour(text_on(fill)));
}

// A pass's columns hold its letter, then its microbatch's digits as far as the width goes.
std::string line_of(const Result& result, const std::vector<TaskId>& owners, bool colour) {
  const TaskGraph& graph = *result.graph;
  const int chunks = result.program->shape().chunks;
  std::string line;
  for (size_t c = 0, begin = 0; c < owners.size(); ++c) {
    const TaskId owner = owners[c];
    const bool first = c == 0 || owners[c - 1] != owner;
    if (first) begin = c;
    if (owner == kNoTask) {
      if (colour && first && c > 0) line += "\033[0m";
      line += '.';
      continue;
    }
    const TaskClass& pass = graph.task_class(owner);
    if (colour && first) line += escape_of(pass, chunks);
    const std::string label = fmt::format("{}{}", letter_of(pass.pass), graph.microbatch(owner));
    line += c - begin < label.size() ? label[c - begin] : '-';
  }
  if (colour && !owners.empty() && owners.back() != kNoTask) line += "\033[0m";
  return line;
}

// Explains the letters of every picture, and the rarer ones that this picture has.
std::string legend_of(const Result& result) {
  std::string legend = "F forward, B input gradient, W weight gradient, X both, & overlapped, ";
  for (int kind = static_cast<int>(PassKind::kFB) + 1; kind < kPassKinds; ++kind) {
    const auto pass = static_cast<PassKind>(kind);
    const bool there = std::ranges::any_of(result.graph->classes(), [pass](const TaskClass& of) {
      return of.kind == TaskKind::kCompute && of.pass == pass;
    });
    if (there) legend += fmt::format("{} {}, ", letter_of(pass), meaning_of(pass));
  }
  const int splits = result.program->shape().splits;
  legend += ". idle; digits: ";
  return legend + (splits == 1 ? "microbatch" : fmt::format("slice, {} of a microbatch", splits));
}

}  // namespace

std::string draw(const Result& result, const PictureOptions& options) {
  const Drawing drawing(result);
  std::string text;
  const size_t label = fmt::format("{}", drawing.devices() - 1).size();
  for (size_t device = 0; device < drawing.devices(); ++device) {
    const auto owners = drawing.columns(device, static_cast<size_t>(options.columns));
    text += fmt::format("{:>{}} |{}|\n", device, label, line_of(result, owners, options.colour));
  }
  text += fmt::format("{:>{}}  0 .. {}; {}\n", "", label, human(Seconds(drawing.seconds())),
                      legend_of(result));
  return text;
}

std::string pass_lists(const Program& program) {
  const auto copies = copy_cells_of(program).value_or(std::vector<CopyCell>());
  std::string text;
  auto copy = copies.begin();
  for (int device = 0; device < program.shape().devices; ++device) {
    const auto passes = program.passes(device);
    std::vector<std::string> row;
    for (size_t i = 0; i <= passes.size(); ++i) {
      for (; copy != copies.end() && copy->device == device && copy->position == i; ++copy) {
        row.push_back(fmt::format("{}{}{}", copy->vs, to_text(copy->kind), copy->unit));
      }
      if (i < passes.size()) row.push_back(program.text(device, passes[i]));
    }
    text += fmt::format("{}\n", fmt::join(row, " "));
  }
  return text;
}

}  // namespace pipesim
