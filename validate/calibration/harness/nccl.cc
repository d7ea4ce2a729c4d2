#include "validate/calibration/harness/nccl.h"

#ifdef PIPESIM_NCCL

#include <string>

namespace pipesim::calibration {
namespace {

std::vector<Communicator> owned(const std::vector<ncclComm_t>& raw) {
  std::vector<Communicator> communicators;
  for (const ncclComm_t communicator : raw) communicators.emplace_back(communicator);
  return communicators;
}

}  // namespace

void check_nccl(ncclResult_t status, std::string_view what) {
  if (status == ncclSuccess) return;
  throw NcclError(std::string(what) + ": " + ncclGetErrorString(status));
}

NcclGroup::NcclGroup() { check_nccl(ncclGroupStart(), "ncclGroupStart"); }

NcclGroup::~NcclGroup() {
  if (open_) ncclGroupEnd();
}

void NcclGroup::end() {
  open_ = false;
  check_nccl(ncclGroupEnd(), "ncclGroupEnd");
}

std::vector<Communicator> communicate(std::span<const int> devices) {
  const auto count = static_cast<int>(devices.size());
  std::vector<ncclComm_t> raw(devices.size());
  check_nccl(ncclCommInitAll(raw.data(), count, devices.data()), "ncclCommInitAll");
  return owned(raw);
}

std::vector<Communicator> communicate(const ncclUniqueId& id, int ranks, int first, int count) {
  std::vector<ncclComm_t> raw(static_cast<std::size_t>(count));
  NcclGroup group;
  for (int device = 0; device < count; ++device) {
    check_cuda(cudaSetDevice(device), "cudaSetDevice");
    check_nccl(ncclCommInitRank(&raw[static_cast<std::size_t>(device)], ranks, id, first + device),
               "ncclCommInitRank");
  }
  group.end();
  check_cuda(cudaSetDevice(0), "cudaSetDevice");
  return owned(raw);
}

}  // namespace pipesim::calibration

#endif
