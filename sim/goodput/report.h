// Goodput for people and programs.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "sim/goodput/goodput.h"

namespace pipesim {

// A block of lines: the interval between checkpoints, a row per term, the distribution, the costs.
std::string goodput_text(const Goodput& goodput, const GoodputQuestion& question);

// {"schema", "pipesim", "tokens", "runs", "seed", "goodput": [...]}: seconds, bytes, joules.
void write_goodput_json(std::ostream& out, std::span<const Goodput> all,
                        const GoodputQuestion& question, const std::string& version);

}  // namespace pipesim
