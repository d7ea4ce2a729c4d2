#include "sim/pipeline/copy_cells.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <utility>

#include "sim/core/grid.h"

namespace pipesim {
namespace {

constexpr std::uint32_t kNone = Stay::kNowhere;

// The stay of one activation on the host.
struct Life : Stay {
  std::uint32_t out = kNone;  // number of its copy out among those of the device
  std::size_t cell = 0;       // of that
  bool in = false;
};

class Lives {
 public:
  explicit Lives(const Program& program)
      : lives_(program.placement().virtual_stages(), program.shape().units()) {
    const Grid<Stay> stays = stays_of(program);
    for (std::size_t i = 0; i < stays.cells().size(); ++i) lives_.cells()[i] = {stays.cells()[i]};
  }

  [[nodiscard]] Life& of(const CopyCell& cell) { return lives_(cell.vs, cell.unit); }

 private:
  Grid<Life> lives_;  // by virtual stage and unit
};

// Why the cell cannot stand where it does; empty where it can.
std::string fault_of(const CopyCell& cell, const Life& life) {
  if (cell.kind == CopyCellKind::kOut) {
    if (life.out != kNone) return "it has left already";
    if (cell.position <= life.made) return "its F stands behind it";
    if (cell.position > life.needed) return "the backward that needs it stands before it";
    return "";
  }
  if (life.out == kNone) return "no OUT of it stands before it";
  if (cell.kind == CopyCellKind::kWait) return "";
  if (life.in) return "it has come back already";
  if (cell.position > life.needed) return "the backward that needs it stands before it";
  return "";
}

}  // namespace

Grid<Stay> stays_of(const Program& program) {
  const Placement& place = program.placement();
  Grid<Stay> stays(place.virtual_stages(), program.shape().units());
  const auto note = [&](int device, std::uint32_t at, const Pass& pass) {
    if (is_vocabulary(pass.kind)) return;
    Stay& stay = stays(place.virtual_stage(device, pass.chunk), pass.microbatch);
    if (pass.kind == PassKind::kF) stay.made = at;
    const bool needs = pass.kind == PassKind::kR || is_backward(pass.kind);
    if (needs) stay.needed = std::min(stay.needed, at);
  };
  for (int device = 0; device < place.devices(); ++device) {
    const auto passes = program.passes(device);
    for (std::uint32_t at = 0; at < passes.size(); ++at) {
      program.visit_parts(passes[at], [&](const Pass& part) { note(device, at, part); });
    }
  }
  return stays;
}

std::optional<CopyCellFault> find_copy_fault(const Program& program,
                                             std::span<const CopyCell> cells) {
  Lives lives(program);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const CopyCell& cell = cells[i];
    Life& life = lives.of(cell);
    if (std::string fault = fault_of(cell, life); !fault.empty()) return {{i, std::move(fault)}};
    const std::size_t passes = program.passes(cell.device).size();
    if (cell.kind == CopyCellKind::kWait && cell.position == passes) {
      return {{i, "no pass stands behind it"}};
    }
    if (cell.kind == CopyCellKind::kIn) life.in = true;
    if (cell.kind != CopyCellKind::kOut) continue;
    life.out = 0;
    life.cell = i;
  }
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!lives.of(cells[i]).in) return {{i, "no IN of it stands behind it"}};
  }
  return std::nullopt;
}

Program with_copy_cells(const Program& program, std::span<const CopyCell> cells) {
  const Placement& place = program.placement();
  Lives lives(program);
  CopyPlan plan;
  plan.links.resize(static_cast<std::size_t>(place.devices()));
  plan.gates.resize(plan.links.size());
  for (const CopyCell& cell : cells) {
    LinkCopies& link = plan.links[static_cast<std::size_t>(cell.device)];
    Life& life = lives.of(cell);
    const auto position = static_cast<std::uint32_t>(cell.position);
    const Copy copy{.device = static_cast<std::uint32_t>(cell.device),
                    .unit = static_cast<std::uint32_t>(cell.unit),
                    .chunk = static_cast<std::uint16_t>(place.chunk(cell.vs)),
                    .alone = cell.alone};
    if (cell.kind == CopyCellKind::kOut) {
      life.out = static_cast<std::uint32_t>(link.out.size());
      link.out.push_back(copy);
    } else if (cell.kind == CopyCellKind::kIn) {
      link.in.push_back(copy);
      link.in.back().after = position - 1;  // its F is before it
    } else {
      auto& gates = plan.gates[static_cast<std::size_t>(cell.device)];
      if (gates.empty() || gates.back().position < position) gates.push_back({position, 0});
      gates.back().out = std::max(gates.back().out, life.out);
    }
  }
  return program.with_copies(std::move(plan));
}

namespace {

// The cells of one device, between its passes.
class DeviceCells {
 public:
  DeviceCells(const Program& program, int device, Lives& lives)
      : place_(program.placement()),
        device_(device),
        lives_(lives),
        link_(program.copies()->links[static_cast<std::size_t>(device)]),
        gates_(program.copies()->gates[static_cast<std::size_t>(device)]),
        passes_(program.passes(device).size()) {}

  bool add_to(std::vector<CopyCell>& cells) {
    for (std::size_t position = 0; position <= passes_; ++position) {
      for (; out_ < link_.out.size(); ++out_) {
        const CopyCell cell = cell_of(CopyCellKind::kOut, link_.out[out_], position);
        if (lives_.of(cell).made >= position) break;
        cells.push_back(cell);
      }
      for (; in_ < link_.in.size() && link_.in[in_].after + 1 == position; ++in_) {
        cells.push_back(cell_of(CopyCellKind::kIn, link_.in[in_], position));
      }
      for (; gate_ < gates_.size() && gates_[gate_].position == position; ++gate_) {
        cells.push_back(cell_of(CopyCellKind::kWait, link_.out[gates_[gate_].out], position));
        cells.back().alone = false;
      }
    }
    return out_ == link_.out.size() && in_ == link_.in.size() && gate_ == gates_.size();
  }

 private:
  [[nodiscard]] CopyCell cell_of(CopyCellKind kind, const Copy& copy, std::size_t position) const {
    return {kind,
            device_,
            position,
            place_.virtual_stage(device_, copy.chunk),
            static_cast<int>(copy.unit),
            copy.alone};
  }

  const Placement& place_;
  int device_;
  Lives& lives_;
  const LinkCopies& link_;
  const std::vector<Gate>& gates_;
  std::size_t passes_;
  std::size_t out_ = 0, in_ = 0, gate_ = 0;  // the next of each
};

}  // namespace

std::optional<std::vector<CopyCell>> copy_cells_of(const Program& program) {
  std::vector<CopyCell> cells;
  if (program.copies() == nullptr) return cells;
  if (program.copies()->devices_per_link != 1) return std::nullopt;
  Lives lives(program);
  for (int device = 0; device < program.shape().devices; ++device) {
    if (!DeviceCells(program, device, lives).add_to(cells)) return std::nullopt;
  }
  if (find_copy_fault(program, cells)) return std::nullopt;
  return cells;
}

}  // namespace pipesim
