// From the library's exceptions to the one of its headers.
#pragma once

#include <atomic>
#include <pipesim/error.h>

#include "sim/core/stop.h"

namespace pipesim {

// Throws the exception that is being handled: as api::Error where it is one of pipesim's.
[[noreturn]] void throw_public();

// The flag that stops the work; never true where it has none.
const std::atomic<bool>& stop_of(const api::Watch& watch);

// The result of `work`, which ends when `watch` says so.
template <class Work>
auto watched(const api::Watch& watch, Work work) {
  const StopOn stopping(stop_of(watch));
  try {
    return work();
  } catch (...) {
    throw_public();
  }
}

template <class Work>
auto in_public(Work work) {
  return watched({}, std::move(work));
}

}  // namespace pipesim
