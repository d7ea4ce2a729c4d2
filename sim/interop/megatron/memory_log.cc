#include "sim/interop/megatron/memory_log.h"

#include <algorithm>
#include <charconv>

namespace pipesim {

LoggedMemory memory_of_log(std::string_view log) {
  constexpr std::string_view kKey = "max allocated: ";
  constexpr double kMebibyte = 1048576;
  LoggedMemory memory;
  for (size_t at = log.find(kKey); at != std::string_view::npos; at = log.find(kKey, at + 1)) {
    double mebibytes = 0;
    const auto read =
        std::from_chars(log.data() + at + kKey.size(), log.data() + log.size(), mebibytes);
    if (read.ec != std::errc() || mebibytes <= 0) continue;
    memory.allocated = std::max(memory.allocated, Bytes(mebibytes * kMebibyte));
    ++memory.lines;
  }
  return memory;
}

}  // namespace pipesim
