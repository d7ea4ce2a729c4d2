// Passes that take time and compute next to nothing. Every result is a number, carried in real
// buffers, so that a result from a wrong message, activation or copy shows in the end.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/runtime/device.h"

namespace pipesim::runtime {

inline constexpr std::size_t kNoteBytes = 16 << 10;        // of a message
inline constexpr std::size_t kActivationBytes = 64 << 10;  // that an F keeps

std::unique_ptr<Work> make_timed_work(const Program& program, int device);

// The right digest of every device, by one pass over the microbatches without any schedule.
// O(passes).
std::vector<std::uint64_t> expected_digests(const Program& program);

}  // namespace pipesim::runtime
