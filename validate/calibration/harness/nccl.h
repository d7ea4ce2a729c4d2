// NCCL's communicators as values that free themselves, and its errors as exceptions.
//
// A process has one rank on a device and calls NCCL from one thread; hence calls of several ranks
// stand in a group. Only where NCCL is (PIPESIM_NCCL). Errors: NcclError with the
// name of the call and NCCL's own reason.
#pragma once

#ifdef PIPESIM_NCCL

#include <memory>
#include <nccl.h>
#include <span>
#include <string_view>
#include <vector>

#include "validate/calibration/harness/timer.h"

namespace pipesim::calibration {

class NcclError : public MeasureError {
 public:
  using MeasureError::MeasureError;
};

void check_nccl(ncclResult_t status, std::string_view what);

// Calls between its making and `end` are one. Left by an exception it ends too, so that NCCL does
// not take what comes next for a part of it.
class NcclGroup {
 public:
  NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  ~NcclGroup();
  void end();

 private:
  bool open_ = true;
};

struct DestroyCommunicator {
  void operator()(ncclComm_t communicator) const { ncclCommDestroy(communicator); }
};
using Communicator = std::unique_ptr<ncclComm, DestroyCommunicator>;

// Rank i on devices[i], all of this process.
[[nodiscard]] std::vector<Communicator> communicate(std::span<const int> devices);

// The ranks from `first` on among `ranks`, on devices 0 to count - 1; other processes with the same
// id bring the rest. Returns when all have joined.
[[nodiscard]] std::vector<Communicator> communicate(const ncclUniqueId& id, int ranks, int first,
                                                    int count);

}  // namespace pipesim::calibration

#endif
