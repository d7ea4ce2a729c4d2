#include "sim/interop/torch/csv_writer.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/execution/walk.h"
#include "sim/interop/torch/cells.h"
#include "sim/interop/torch/rules.h"
#include "sim/pipeline/copy_cells.h"

namespace pipesim {
namespace {

// The slot of every pass when each takes one slot and messages none.
class SlotVisitor {
 public:
  using Value = long;
  static constexpr Value kNotYet = -1;
  static constexpr Value kNothing = 0;

  explicit SlotVisitor(int devices) : slots_(devices), free_(devices, 0) {}

  Value run(int device, const Pass& /*pass*/, Value input, Value gradient) {
    slots_[device].push_back(std::max({free_[device], input, gradient}));
    return free_[device] = slots_[device].back() + 1;
  }
  static Value join(Barrier /*barrier*/, std::uint32_t /*unit*/, std::span<const Value> results) {
    return std::ranges::max(results);
  }
  [[nodiscard]] Value last(int device) const { return free_[device]; }
  void hold(int device, Value until) { free_[device] = std::max(free_[device], until); }
  Value deliver(Value result, PassKind /*kind*/, int /*from*/, int /*to*/, std::uint32_t /*unit*/) {
    return result;
  }
  [[nodiscard]] const std::vector<long>& slots(int device) const { return slots_[device]; }

 private:
  std::vector<std::vector<long>> slots_;
  std::vector<Value> free_;  // by device: the first slot after what it ran
};

std::string plain_cell(const Program& program, int device, const Pass& pass) {
  const Placement& place = program.placement();
  return cell_text(place, program.shape().splits, pass.kind,
                   place.virtual_stage(device, pass.chunk), static_cast<int>(pass.microbatch));
}

std::string cell(const Program& program, int device, const Pass& pass) {
  if (pass.kind != PassKind::kFB) return plain_cell(program, device, pass);
  const OverlappedPair& pair = program.pair(pass);
  return fmt::format("({};{})OVERLAP_F_B", plain_cell(program, device, pair.forward),
                     plain_cell(program, device, pair.backward));
}

// Copies take no slots: rows that have them are without idle ones.
void write_rows_with(std::ostream& out, const Program& program, std::span<const CopyCell> copies) {
  size_t next = 0;
  for (int device = 0; device < program.shape().devices; ++device) {
    const auto passes = program.passes(device);
    std::vector<std::string> row;
    for (size_t position = 0; position <= passes.size(); ++position) {
      for (; next < copies.size() && copies[next].device == device &&
             copies[next].position == position;
           ++next) {
        row.push_back(cell_text(program.placement(), program.shape().splits, copies[next]));
      }
      if (position < passes.size()) row.push_back(cell(program, device, passes[position]));
    }
    out << fmt::format("{}\n", fmt::join(row, ","));
  }
}

void write_rows(std::ostream& out, const Program& program) {
  SlotVisitor visitor(program.shape().devices);
  walk(program, visitor);
  for (int device = 0; device < program.shape().devices; ++device) {
    const auto passes = program.passes(device);
    const auto& slots = visitor.slots(device);
    long slot = 0;
    std::string row;
    for (size_t i = 0; i < passes.size(); ++i, ++slot) {
      for (; slot < slots[i]; ++slot) row += ',';
      row += cell(program, device, passes[i]);
      if (i + 1 < passes.size()) row += ',';
    }
    out << row << '\n';
  }
}

// True if some stage is on as many devices as there are copies of the model, by which readers count
// them.
bool tells_copies_apart(const Placement& place) {
  const int stages = place.model_stages();
  for (int stage = 0; stage < stages; ++stage) {
    std::set<int> devices;
    for (int copy = 0; copy < place.directions(); ++copy) {
      devices.insert(place.device(copy * stages + stage));
    }
    if (std::ssize(devices) == place.directions()) return true;
  }
  return false;
}

}  // namespace

void write_torch_csv(std::ostream& out, const Program& program, std::string_view name) {
  if (const auto objection = torch_objection(program)) {
    throw InfeasibleError(
        fmt::format("PyTorch's schedule CSV cannot express {}: {}", name, *objection));
  }
  write_rows(out, program);
}

void write_csv(std::ostream& out, const Program& program, std::string_view name) {
  const auto refuse = [name](std::string_view why) {
    throw InfeasibleError(fmt::format("a CSV cannot express {}: {}", name, why));
  };
  if (program.wrap_around() != WrapAround::kEvery) {
    refuse("it does not wait for every message at the wrap-around boundary");
  }
  if (!tells_copies_apart(program.placement())) {
    refuse("copies of the model stand on the same devices, and rows do not say which is which");
  }
  if (program.copies() == nullptr) return write_rows(out, program);
  check_executable(program);
  const auto copies = copy_cells_of(program);
  if (!copies) {
    refuse(
        "devices copy to the host over links that they share, and rows have no order among them");
  }
  write_rows_with(out, program, *copies);
}

}  // namespace pipesim
