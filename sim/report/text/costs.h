// The terms of a case's seconds and bytes, with the source of every number, as text that a person
// can check by hand. The formulas are in docs/reference/model.md.
#pragma once

#include <span>
#include <string>

#include "sim/case/case.h"
#include "sim/scenario/sourced.h"

namespace pipesim {

// With a model: its parameters, the layout and memory per device. With modelled costs besides: the
// kernels and collectives of every layer and pass, stages, what closes an iteration, and the
// hardware's numbers. Given costs: seconds and bytes of every stage. Plans the schedule for its
// peak; throws what make_program throws.
std::string cost_breakdown(const Case& made);

// Every number, and after those that share one, their source.
std::string sourced_list(std::span<const Sourced> numbers);

}  // namespace pipesim
