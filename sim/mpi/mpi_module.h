// The calls of MPI that pipesim needs, in a module of their own. The library libmpi takes tens of
// milliseconds to load, and only a process that mpirun or srun has started needs it.
#pragma once

#include <cstddef>

namespace pipesim {

struct MpiCalls {
  void (*start)();
  int (*rank)();
  int (*size)();
  // Returns at once; the bytes may change then.
  void (*send)(int to, const void* bytes, std::size_t count);
  // Bytes of a message that has come, and from whom; -1 when there is none.
  long (*waiting)(int* from);
  void (*receive)(int from, void* bytes, std::size_t count);
  void (*end)();  // when all has been sent
  void (*abort)(int code);
};

// The module's one symbol, as extern "C".
using MpiModuleEntry = const MpiCalls*();
inline constexpr const char* kMpiModuleEntry = "pipesim_mpi_calls";

}  // namespace pipesim
