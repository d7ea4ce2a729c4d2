// The only place that names MPI.
#include "sim/mpi/mpi_module.h"

#include <list>
#include <mpi.h>
#include <vector>

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

// A message on its way, with a copy of its bytes.
struct Sent {
  std::vector<char> bytes;
  MPI_Request request = MPI_REQUEST_NULL;
};
std::list<Sent>& on_their_way() {
  static std::list<Sent> all;
  return all;
}

void forget_what_has_gone() {
  on_their_way().remove_if([](Sent& sent) {
    int gone = 0;
    MPI_Test(&sent.request, &gone, MPI_STATUS_IGNORE);
    return gone != 0;
  });
}

void send(int to, const void* bytes, std::size_t count) {
  forget_what_has_gone();
  const char* first = static_cast<const char*>(bytes);
  Sent& sent = on_their_way().emplace_back(Sent{{first, first + count}});
  MPI_Isend(sent.bytes.data(), static_cast<int>(count), MPI_BYTE, to, kTag, MPI_COMM_WORLD,
            &sent.request);
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

void end() {
  for (Sent& sent : on_their_way()) MPI_Wait(&sent.request, MPI_STATUS_IGNORE);
  on_their_way().clear();
  MPI_Finalize();
}

void abort_all(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

}  // namespace

extern "C" const pipesim::MpiCalls* pipesim_mpi_calls() {
  static const pipesim::MpiCalls kCalls{start, rank, size, send, waiting, receive, end, abort_all};
  return &kCalls;
}
