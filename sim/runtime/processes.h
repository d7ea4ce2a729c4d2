// A process for every device on this machine, forked, watched and ended.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/runtime/board.h"

namespace pipesim::runtime {

// Somebody has asked, by SIGINT or SIGTERM, that it ends.
class Interrupted : public std::exception {};

// Runs `device` in a process for each, and returns their records. All processes have ended when it
// returns or throws. InfeasibleError, with the device and the reason: one died or threw, or some
// are not done after `deadline` seconds. `place` says in words where a device stands.
std::vector<DeviceRecord> run_processes(
    int devices, SharedBoards& boards, double deadline,
    const std::function<DeviceRecord(int device, Board& board)>& run,
    const std::function<std::string(int device, std::uint32_t item)>& place);

}  // namespace pipesim::runtime
