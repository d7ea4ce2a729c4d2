#include "sim/interop/torch/csv_writer.h"

#include <algorithm>
#include <fmt/format.h>
#include <ostream>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/execution/walk.h"
#include "sim/interop/torch/rules.h"

namespace pipesim {
namespace {

// The slot of every pass when each takes one slot and messages none.
class SlotVisitor {
 public:
  using Value = long;
  static constexpr Value kNotYet = -1;
  static constexpr Value kNothing = 0;

  explicit SlotVisitor(int devices) : slots_(devices) {}

  Value run(int device, const Pass& /*pass*/, Value input, Value gradient) {
    auto& slots = slots_[device];
    const Value free = slots.empty() ? 0 : slots.back() + 1;
    slots.push_back(std::max({free, input, gradient}));
    return slots.back() + 1;
  }
  Value deliver(Value result, PassKind /*kind*/, int /*from*/, int /*to*/, std::uint32_t /*unit*/) {
    return result;
  }
  [[nodiscard]] const std::vector<long>& slots(int device) const { return slots_[device]; }

 private:
  std::vector<std::vector<long>> slots_;
};

std::string plain_cell(const Placement& place, int device, const Pass& pass) {
  const char* letter = "F";
  if (pass.kind == PassKind::kB) letter = "I";
  if (pass.kind == PassKind::kW) letter = "W";
  if (pass.kind == PassKind::kBW) letter = "B";
  return fmt::format("{}{}{}", place.virtual_stage(device, pass.chunk), letter, pass.microbatch);
}

std::string cell(const Program& program, int device, const Pass& pass) {
  if (pass.kind != PassKind::kFB) return plain_cell(program.placement(), device, pass);
  const OverlappedPair& pair = program.pair(pass);
  return fmt::format("({};{})OVERLAP_F_B", plain_cell(program.placement(), device, pair.forward),
                     plain_cell(program.placement(), device, pair.backward));
}

}  // namespace

void write_torch_csv(std::ostream& out, const Program& program, std::string_view name) {
  if (const auto objection = torch_objection(program)) {
    throw InfeasibleError(
        fmt::format("PyTorch's schedule CSV cannot express {}: {}", name, *objection));
  }
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

}  // namespace pipesim
