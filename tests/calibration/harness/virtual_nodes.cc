// Nodes with NCCL between them, of which each process that mpirun starts on this machine is one:
// with virtual devices, a calibration of several nodes without any. A group's calls take, on each
// stream, as long as the most that its rank sends or receives. By the environment:
//   VIRTUAL_GPUS=N             GPUs of every node
//   VIRTUAL_MACHINE=NAME       all processes are on one machine
//   VIRTUAL_NCCL_LOG=PREFIX    what each rank called, to PREFIX.COMMUNICATOR.RANK
//   VIRTUAL_NCCL_FAIL=P:CALL   in process P, or all, this call returns an error
//   VIRTUAL_NCCL_STALL=P:CALL  in process P it does not return
#include <algorithm>
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <fstream>
#include <map>
#include <nccl.h>
#include <string>
#include <unistd.h>
#include <utility>

#include "tests/calibration/harness/virtual_device.h"
#include "validate/calibration/harness/machine.h"

namespace vd = pipesim::calibration::virtual_device;

struct ncclComm {
  std::string id;
  int rank = 0;
  int ranks = 1;
  std::map<std::string, std::pair<int, std::size_t>> calls;  // how many, of how many elements
};

namespace {

constexpr double kCallUs = 20;           // of every group
constexpr double kLinkBytesPerUs = 5e4;  // 50 GB/s, each way

std::string setting(const std::string& name) {
  const char* text = std::getenv(name.c_str());
  return text == nullptr ? "" : text;
}

const std::string kProcess = setting("OMPI_COMM_WORLD_RANK");

// The GPUs are there before anybody asks.
const bool kReady = [] {
  if (const std::string gpus = setting("VIRTUAL_GPUS"); !gpus.empty()) {
    vd::state().devices = std::stoi(gpus);
  }
  return true;
}();

ncclResult_t outcome_of(const std::string& call) {
  if (setting("VIRTUAL_NCCL_STALL") == kProcess + ":" + call) sleep(600);
  const std::string failing = setting("VIRTUAL_NCCL_FAIL");
  const bool fails = failing == kProcess + ":" + call || failing == "all:" + call;
  return fails ? ncclSystemError : ncclSuccess;
}

struct Traffic {
  double sent = 0, received = 0;  // bytes
};
std::map<cudaStream_t, Traffic> group;
int depth = 0;

void end_group() {
  for (const auto& [stream, traffic] : group) {
    double& now = vd::time_of(stream);
    now = std::max(now, vd::state().host_us) + kCallUs +
          std::max(traffic.sent, traffic.received) / kLinkBytesPerUs;
  }
  group.clear();
}

std::size_t bytes_of(std::size_t elements) { return 2 * elements; }  // bf16

// Bytes over the link as what moves between ranks, in each direction; a call alone is a group.
ncclResult_t call(const char* name, const std::string& peer, ncclComm_t by, std::size_t elements,
                  cudaStream_t stream, Traffic traffic) {
  auto& [count, sum] = by->calls[name + peer];
  ++count;
  sum += elements;
  group[stream].sent += traffic.sent;
  group[stream].received += traffic.received;
  if (depth == 0) end_group();
  return outcome_of(name);
}

ncclResult_t message(const char* name, const void* buffer, std::size_t count, int peer,
                     ncclComm_t by, cudaStream_t stream) {
  vd::require_region("message", buffer, bytes_of(count));
  const double bytes = peer == by->rank ? 0 : static_cast<double>(bytes_of(count));
  const bool sends = name == std::string("ncclSend");
  return call(name, std::string(" ").append(std::to_string(peer)), by, count, stream,
              {sends ? bytes : 0, sends ? 0 : bytes});
}

// Works on a share or a whole; every rank sends and receives `parts` of it.
ncclResult_t collective(const char* name, ncclComm_t by, const void* from, std::size_t sent,
                        void* to, std::size_t received, double parts, cudaStream_t stream) {
  vd::require_region("source", from, bytes_of(sent));
  vd::require_region("target", to, bytes_of(received));
  const double bytes = parts * static_cast<double>(bytes_of(std::min(sent, received)));
  return call(name, "", by, sent, stream, {bytes, bytes});
}

std::size_t whole(std::size_t share, ncclComm_t of) {
  return share * static_cast<std::size_t>(of->ranks);
}

}  // namespace

namespace pipesim::calibration {

Machine this_machine() {
  const std::string shared = setting("VIRTUAL_MACHINE");
  const std::string name = shared.empty() ? std::string("node").append(kProcess) : shared;
  return {name, name};
}

}  // namespace pipesim::calibration

extern "C" {

const char* ncclGetErrorString(ncclResult_t) { return "virtual"; }
ncclResult_t ncclGetVersion(int* version) { return *version = 22800, ncclSuccess; }
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static char next = 'a';
  *id = {};
  id->internal[0] = next++;
  return outcome_of("ncclGetUniqueId");
}
ncclResult_t ncclCommInitRank(ncclComm_t* made, int ranks, ncclUniqueId id, int rank) {
  *made = new ncclComm{id.internal, rank, ranks, {}};
  return outcome_of("ncclCommInitRank");
}
ncclResult_t ncclCommInitAll(ncclComm_t* made, int count, const int*) {
  for (int rank = 0; rank < count; ++rank) made[rank] = new ncclComm{"within", rank, count, {}};
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  if (const std::string prefix = setting("VIRTUAL_NCCL_LOG"); !prefix.empty()) {
    std::ofstream log(prefix + "." + communicator->id + "." + std::to_string(communicator->rank));
    for (const auto& [name, calls] : communicator->calls) {
      log << name << ": " << calls.first << " of " << calls.second << '\n';
    }
  }
  return delete communicator, ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) { return delete communicator, ncclSuccess; }

ncclResult_t ncclGroupStart() { return ++depth, ncclSuccess; }
ncclResult_t ncclGroupEnd() {
  if (--depth == 0) end_group();
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t, int peer, ncclComm_t by,
                      cudaStream_t stream) {
  return message("ncclSend", from, count, peer, by, stream);
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t, int peer, ncclComm_t by,
                      cudaStream_t stream) {
  return message("ncclRecv", to, count, peer, by, stream);
}
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t, ncclRedOp_t,
                           ncclComm_t by, cudaStream_t stream) {
  const double parts = 2.0 * (by->ranks - 1) / by->ranks;
  return collective("ncclAllReduce", by, from, count, to, count, parts, stream);
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t share, ncclDataType_t, ncclComm_t by,
                           cudaStream_t stream) {
  return collective("ncclAllGather", by, from, share, to, whole(share, by), by->ranks - 1, stream);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t share, ncclDataType_t,
                               ncclRedOp_t, ncclComm_t by, cudaStream_t stream) {
  return collective("ncclReduceScatter", by, from, whole(share, by), to, share, by->ranks - 1,
                    stream);
}

}  // extern "C"
