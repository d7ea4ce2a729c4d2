// The schedules of torch.distributed.pipelining (schedules.py, get_schedule_class) and ours.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace pipesim {

// Stages of a rank: one, two, or as many as there are layers for.
enum class StagesOfRank : std::uint8_t { kOne, kTwo, kAny };

struct TorchSchedule {
  std::string_view theirs, ours;
  StagesOfRank stages;
  bool waits = false;  // for a send with the receive beside it
};

// GPipe waits for its sends at the end, and what _PipelineScheduleRuntime runs for none.
inline constexpr std::array kTorchSchedules{
    TorchSchedule{"1F1B", "1f1b", StagesOfRank::kOne, true},
    TorchSchedule{"GPipe", "gpipe", StagesOfRank::kOne},
    TorchSchedule{"Interleaved1F1B", "interleaved-1f1b", StagesOfRank::kAny, true},
    TorchSchedule{"LoopedBFS", "looped-bfs", StagesOfRank::kAny, true},
    TorchSchedule{"InterleavedZeroBubble", "interleaved-zb", StagesOfRank::kAny, true},
    TorchSchedule{"ZBVZeroBubble", "zb-v-handmade", StagesOfRank::kTwo},
    TorchSchedule{"DualPipeV", "dualpipev", StagesOfRank::kTwo}};

}  // namespace pipesim
