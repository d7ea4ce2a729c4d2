// Models of GPUs, number by number, as JSON (docs/reference/json.md).
#pragma once

#include <iosfwd>
#include <span>

#include "sim/read/hardware.h"

namespace pipesim {

// A number that is derived or assumed has `assumed: true`.
void write_gpus(std::ostream& out, std::span<const GpuEntry> gpus);

}  // namespace pipesim
