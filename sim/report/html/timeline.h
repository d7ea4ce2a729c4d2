// A result's middle iteration as a page draws it, in arrays of numbers in base64. It has passes
// with the optimizer's step, messages, copies and collectives, the critical path and memory over
// time.
//
// Times are 32-bit fractions of the time from the first pass's start to the end of the last pass,
// step or collective. Neighbours meet exactly, and 50,000 passes are 2 MB of text. Passes stand
// device after device, in order of time.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/case/simulate.h"

namespace pipesim {

// Compute passes of one iteration, of all pipelines.
size_t passes_of_iteration(const Result& result);

// {seconds, splits, classes, first, start, length, microbatch, class, [second], critical, beside,
// [memory]}:
// sim/report/html/page/data.js reads it. `bytes`: whether the scenario knows memory. O(tasks), with
// copies O(n log n).
nlohmann::ordered_json timeline_json(const Result& result, bool bytes);

}  // namespace pipesim
