#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <nccl.h>
#include <vector>

#include "tests/calibration/harness/virtual_device.h"

namespace vd = pipesim::calibration::virtual_device;

struct Clique {
  std::vector<int> devices;  // by rank
};
struct ncclComm {
  std::shared_ptr<const Clique> clique;
  int rank = 0;
};

namespace {

enum class Kind : std::uint8_t { kSend, kReceive, kCollective };

struct Call {
  Kind kind;
  const ncclComm* by;
  int peer;
  std::size_t bytes;
  cudaStream_t stream;
  double ready_us;  // when its stream gets there
  bool done = false;
};

std::vector<Call> calls;
int depth = 0;

std::size_t size_of(ncclDataType_t type) {
  if (type == ncclInt8) return 1;
  if (type == ncclBfloat16) return 2;
  vd::fail("a type of NCCL's that is not kept here");
}

void run(const std::vector<Call*>& together, std::size_t bytes) {
  double start = 0;
  for (const Call* call : together) start = std::max(start, call->ready_us);
  const double end = start + vd::kMessageUs + static_cast<double>(bytes) / vd::kLinkBytesPerUs;
  for (Call* call : together) {
    call->done = true;
    double& now = vd::time_of(call->stream);
    now = std::max(now, end);
  }
}

// The other end of a message, or what the other ranks call.
std::vector<Call*> others_of(const Call& call) {
  std::vector<Call*> found;
  for (Call& other : calls) {
    if (other.done || &other == &call || other.by->clique != call.by->clique) continue;
    const bool collective = call.kind == Kind::kCollective && other.kind == Kind::kCollective &&
                            other.by->rank != call.by->rank;
    const bool receives = call.kind == Kind::kSend && other.kind == Kind::kReceive &&
                          other.by->rank == call.peer && other.peer == call.by->rank;
    if (!collective && !receives) continue;
    if (other.bytes != call.bytes) vd::fail("ranks that do not agree on the bytes");
    found.push_back(&other);
    if (receives) break;
  }
  return found;
}

ncclResult_t end_of_group() {
  for (Call& call : calls) {
    if (call.done || call.kind == Kind::kReceive) continue;
    std::vector<Call*> all = others_of(call);
    const std::size_t needed = call.kind == Kind::kSend ? 1 : call.by->clique->devices.size() - 1;
    if (all.size() != needed) vd::fail("a rank calls and the others do not");
    all.push_back(&call);
    run(all, call.bytes);
  }
  if (!std::ranges::all_of(calls, &Call::done)) vd::fail("a message that nobody sends");
  calls.clear();
  return ncclSuccess;
}

ncclResult_t add(Kind kind, const void* buffer, std::size_t count, ncclDataType_t type, int peer,
                 const ncclComm* by, cudaStream_t stream) {
  const std::size_t bytes = count * size_of(type);
  vd::require_region("a message", buffer, bytes);
  if (vd::device_of(stream) != by->clique->devices[static_cast<std::size_t>(by->rank)]) {
    vd::fail("a rank on a stream of another device");
  }
  vd::state().host_us += vd::kLaunchUs;
  calls.push_back(
      {kind, by, peer, bytes, stream, std::max(vd::time_of(stream), vd::state().host_us)});
  return depth == 0 ? end_of_group() : ncclSuccess;
}

}  // namespace

extern "C" {

const char* ncclGetErrorString(ncclResult_t) { return "virtual"; }

ncclResult_t ncclCommInitAll(ncclComm_t* communicators, int count, const int* devices) {
  auto clique = std::make_shared<Clique>();
  for (int rank = 0; rank < count; ++rank) {
    const int device = devices == nullptr ? rank : devices[rank];
    if (device >= vd::state().devices) vd::fail("a rank on a device that is not there");
    clique->devices.push_back(device);
  }
  for (int rank = 0; rank < count; ++rank) communicators[rank] = new ncclComm{clique, rank};
  return ncclSuccess;
}
ncclResult_t ncclGetVersion(int* version) { return *version = 22800, ncclSuccess; }
ncclResult_t ncclGetUniqueId(ncclUniqueId*) { vd::fail("there is one process"); }
ncclResult_t ncclCommInitRank(ncclComm_t*, int, ncclUniqueId, int) {
  vd::fail("there is one process");
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) { return delete communicator, ncclSuccess; }
ncclResult_t ncclCommAbort(ncclComm_t communicator) { return delete communicator, ncclSuccess; }

ncclResult_t ncclGroupStart() { return ++depth, ncclSuccess; }
ncclResult_t ncclGroupEnd() { return --depth == 0 ? end_of_group() : ncclSuccess; }

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  return add(Kind::kSend, from, count, type, peer, communicator, stream);
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  return add(Kind::kReceive, to, count, type, peer, communicator, stream);
}
ncclResult_t ncclAllReduce(const void* from, void*, size_t count, ncclDataType_t type, ncclRedOp_t,
                           ncclComm_t communicator, cudaStream_t stream) {
  return add(Kind::kCollective, from, count, type, 0, communicator, stream);
}
ncclResult_t ncclAllGather(const void* from, void*, size_t count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t stream) {
  return add(Kind::kCollective, from, count, type, 0, communicator, stream);
}
ncclResult_t ncclReduceScatter(const void*, void* to, size_t count, ncclDataType_t type,
                               ncclRedOp_t, ncclComm_t communicator, cudaStream_t stream) {
  return add(Kind::kCollective, to, count, type, 0, communicator, stream);
}

}  // extern "C"
