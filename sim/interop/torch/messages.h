// Sends and receives of a schedule CSV, as PyTorch's dump of compute_comms has them.
//
// They are an order of their own. Each runs when those before it in its row have run, and takes
// both ends at once, as NCCL's calls on one stream do. The output of stage 1's forward, 1SEND_F0,
// meets 2RECV_F0. Its input's gradient, 1SEND_B0, meets 0RECV_B0.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/error.h"
#include "sim/pipeline/pass.h"

namespace pipesim {

struct StageMessage {
  bool sends = false;
  bool backward = false;
  int stage = 0;  // of the rank whose row it stands in
  int microbatch = 0;

  friend bool operator==(const StageMessage&, const StageMessage&) = default;
};

// The message of a cell such as `0SEND_F0`; nothing for any other.
std::optional<StageMessage> stage_message(std::string_view cell);
std::string to_text(const StageMessage& message);
// Its other end, which stands in the other rank's row.
StageMessage other_end(const StageMessage& message);

// A cell of a row in order: a message, or the passes of one.
struct RowStep {
  struct Pass {
    PassKind kind;
    int stage, microbatch;
  };
  std::optional<StageMessage> message;
  std::vector<Pass> passes;
  Location where;
};

// InputError at the first cell that runs before its data has been received or sent. Also at a
// message that is missing, double or between stages of one rank, or where ranks deadlock. Nothing
// to check without messages. `rank_of` is of a stage and microbatch, for `stages` stages. O(cells
// log cells).
void check_messages(const std::vector<std::vector<RowStep>>& rows, int stages,
                    const std::function<int(int stage, int microbatch)>& rank_of);

}  // namespace pipesim
