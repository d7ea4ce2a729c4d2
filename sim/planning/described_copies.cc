#include "sim/planning/described_copies.h"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>

#include "sim/core/error.h"
#include "sim/core/grid.h"
#include "sim/pipeline/copy_cells.h"

namespace pipesim {
namespace {

class DescribedCells {
 public:
  DescribedCells(const std::vector<DescribedCopies>& lines, const std::vector<long>& values,
                 const Program& program)
      : lines_(lines),
        values_(values),
        program_(program),
        place_(program.placement()),
        stays_(stays_of(program)),
        line_of_(place_.virtual_stages(), program.shape().units(), -1) {}

  std::vector<CopyCell> make() {
    for (size_t line = 0; line < lines_.size(); ++line) {
      const auto [first, last] = lines_[line].stages.of(values_, place_.model_stages());
      for (int vs = 0; vs < place_.virtual_stages(); ++vs) {
        const int stage = place_.model_stage(vs);
        if (stage >= first && stage <= last) add_stage(line, vs);
      }
    }
    // Copies at one position keep the order of their passes.
    std::ranges::sort(cells_, {}, [this](const CopyCell& cell) {
      const Stay& stay = stays_(cell.vs, cell.unit);
      return std::tuple(cell.device, cell.position, cell.kind,
                        cell.kind == CopyCellKind::kIn ? stay.needed : stay.made);
    });
    return std::move(cells_);
  }

 private:
  void add_stage(size_t line, int vs) {
    const DescribedCopies& copies = lines_[line];
    const int units = program_.shape().units();
    const int first = place_.first_unit(vs, units);
    const auto splits = program_.shape().splits;
    for (int unit = first; unit < place_.end_unit(vs, units); ++unit) {
      std::vector<long> values = values_;
      for (const long value :
           {place_.model_stage(vs), place_.device(vs), place_.chunk(vs), (unit - first) / splits,
            (unit - first) % splits, vs / place_.model_stages()}) {
        values.push_back(value);
      }
      if (copies.only && copies.only->value(values) == 0) continue;
      take_line(line, vs, unit);
      add(copies, values, vs, unit);
    }
  }

  void add(const DescribedCopies& copies, const std::vector<long>& values, int vs, int unit) {
    const Stay& stay = stays_(vs, unit);
    const long behind = stay.made + 1L;
    const long ahead = copies.ahead ? copies.ahead->value(values) : 1;
    if (ahead < 0) fail(copies.ahead->where(), "passes ahead", ahead, 0);
    add_cell(CopyCellKind::kOut, behind, vs, unit);
    add_cell(CopyCellKind::kIn, std::max(behind, stay.needed - ahead), vs, unit);
    if (!copies.room) return;
    const long room = copies.room->value(values);
    if (room < 1) fail(copies.room->where(), "passes behind F", room, 1);
    // From there on the pass that needs it waits for both copies.
    const long lifespan = static_cast<long>(stay.needed) - stay.made;
    if (room < lifespan) add_cell(CopyCellKind::kWait, stay.made + room, vs, unit);
  }

  void add_cell(CopyCellKind kind, long position, int vs, int unit) {
    cells_.push_back({kind, place_.device(vs), static_cast<size_t>(position), vs, unit});
  }

  void take_line(size_t line, int vs, int unit) {
    int& before = line_of_(vs, unit);
    if (before >= 0) {
      throw InputError(lines_[line].where,
                       fmt::format("line {} copies the activation of stage {} and microbatch {} "
                                   "already",
                                   lines_[static_cast<size_t>(before)].where.line,
                                   place_.model_stage(vs), unit / program_.shape().splits));
    }
    before = static_cast<int>(line);
  }

  [[noreturn]] static void fail(const Location& where, const char* what, long value, int least) {
    throw InputError(where, fmt::format("{} {}: expected at least {}", value, what, least));
  }

  const std::vector<DescribedCopies>& lines_;
  const std::vector<long>& values_;
  const Program& program_;
  const Placement& place_;
  Grid<Stay> stays_;
  Grid<int> line_of_;  // by virtual stage and unit
  std::vector<CopyCell> cells_;
};

}  // namespace

DescribedStages::Range DescribedStages::of(const std::vector<long>& values,
                                           int model_stages) const {
  const auto stage_at = [&](const Expression& formula) {
    const long stage = formula.value(values);
    if (stage < 0 || stage >= model_stages) {
      throw InputError(formula.where(), fmt::format("there is no stage {}: they are 0 to {}", stage,
                                                    model_stages - 1));
    }
    return static_cast<int>(stage);
  };
  if (!first) return {0, model_stages - 1};
  const int one = stage_at(*first);
  return {one, last ? stage_at(*last) : one};
}

Program with_described_copies(const std::vector<DescribedCopies>& lines,
                              const std::vector<long>& values, const Program& program) {
  return with_copy_cells(program, DescribedCells(lines, values, program).make());
}

}  // namespace pipesim
