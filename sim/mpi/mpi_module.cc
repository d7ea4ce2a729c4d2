// The only place that names MPI.
#include "sim/mpi/mpi_module.h"

#include <mpi.h>

namespace {

constexpr int kTag = 1;

void start() { MPI_Init(nullptr, nullptr); }

int rank() {
  int number = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  return number;
}

int size() {
  int number = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &number);
  return number;
}

void send(int to, const void* bytes, std::size_t count) {
  MPI_Send(bytes, static_cast<int>(count), MPI_BYTE, to, kTag, MPI_COMM_WORLD);
}

long waiting(int* from) {
  int flag = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &flag, &status);
  if (flag == 0) return -1;
  int count = 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  *from = status.MPI_SOURCE;
  return count;
}

void receive(int from, void* bytes, std::size_t count) {
  MPI_Recv(bytes, static_cast<int>(count), MPI_BYTE, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void end() { MPI_Finalize(); }

void abort_all(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

}  // namespace

extern "C" const pipesim::MpiCalls* pipesim_mpi_calls() {
  static const pipesim::MpiCalls kCalls{start, rank, size, send, waiting, receive, end, abort_all};
  return &kCalls;
}
