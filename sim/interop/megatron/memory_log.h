// The memory of a training log: of Megatron-LM, torchtitan, DeepSpeed, nanotron and ms-swift.
#pragma once

#include <cstddef>
#include <map>
#include <string_view>

#include "sim/core/units.h"

namespace pipesim {

struct LoggedMemory {
  Bytes allocated;        // the most that a rank allocated, or reserved; 0 where no line says it
  bool reserved = false;  // what PyTorch's allocator keeps, of which some is free
  std::size_t lines = 0;  // that say it, of any rank
  std::map<int, Bytes> of_rank = {};  // where a line names its rank
};

// The largest number of the first form that any line has. O(n).
//
//   Megatron-LM   [Rank 0] ... memory (MB) | allocated: A | max allocated: M | reserved: ...  (MiB)
//   torchtitan    memory: 61.20GiB(77.41%)                                              reserved
//   DeepSpeed     MaxMemAllocated=12.3GB, or Max_MA 12.3 GB                                  (GiB)
//   nanotron      cuda_max_memory_reserved: 45.2B, or 45.2G                  (bytes)    reserved
//   ms-swift      'memory(GiB)': 45.2                                                   reserved
LoggedMemory memory_of_log(std::string_view log);

}  // namespace pipesim
