#include "sim/interop/megatron/memory_log.h"

#include <algorithm>
#include <array>
#include <optional>

#include "sim/interop/megatron/log_numbers.h"

namespace pipesim {
namespace {

constexpr double kMebibyte = 1048576;
constexpr double kGibibyte = 1024 * kMebibyte;

// Behind `key` stand so many `unit`; where `follows` is given, only in front of it.
struct MemoryForm {
  std::string_view key;
  double unit = kGibibyte;
  bool reserved = false;
  std::string_view follows = {};
};

constexpr std::array kMemoryForms{
    MemoryForm{"max allocated: ", kMebibyte},
    MemoryForm{"MaxMemAllocated=", kGibibyte},
    MemoryForm{"Max_MA ", kGibibyte},
    MemoryForm{"memory:", kGibibyte, true, "GiB("},
    MemoryForm{"cuda_max_memory_reserved:", 1, true},
    MemoryForm{"memory(GiB)':", kGibibyte, true},
};

constexpr double kMostLogged = 1 << 20;  // ranks
constexpr Bytes kMostBytes(1e18);

// "[Rank 3]" or "[rank3]" in front of the place, on its line.
std::optional<int> rank_before(std::string_view log, size_t at) {
  const size_t line = log.rfind('\n', at) == std::string_view::npos ? 0 : log.rfind('\n', at) + 1;
  const std::string_view before = log.substr(line, at - line);
  for (const std::string_view word : {"[Rank ", "[rank"}) {
    const size_t found = before.find(word);
    if (found == std::string_view::npos) continue;
    const std::string_view behind = before.substr(found + word.size());
    if (behind.starts_with("0]")) return 0;
    const auto rank = logged_number(behind);
    if (rank && *rank < kMostLogged) return static_cast<int>(*rank);
  }
  return std::nullopt;
}

}  // namespace

LoggedMemory memory_of_log(std::string_view log) {
  LoggedMemory memory;
  for (const MemoryForm& form : kMemoryForms) {
    if (memory.lines > 0) break;
    memory.reserved = form.reserved;
    for_each_place(log, form.key, [&](std::string_view behind, size_t at) {
      std::string_view rest;
      const auto number = logged_number(behind, &rest);
      if (!number || !rest.starts_with(form.follows)) return;
      const Bytes bytes(*number * form.unit);
      if (bytes > kMostBytes) return;
      memory.allocated = std::max(memory.allocated, bytes);
      ++memory.lines;
      if (const auto rank = rank_before(log, at)) {
        Bytes& most = memory.of_rank[*rank];
        most = std::max(most, bytes);
      }
    });
  }
  return memory;
}

}  // namespace pipesim
