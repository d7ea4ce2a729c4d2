// Rules of PyTorch's pipeline runtime for a schedule given as CSV, checked before one is written.
//
// The rules are those of torch.distributed.pipelining (schedules.py, since ScheduleDualPipeV:
// _load_csv, _validate_schedule, _add_send_recv, _maybe_get_loss), for its action-list runtime
// (_PipelineScheduleRuntime):
//   - a stage is on one rank;
//   - an action is F, I, W, B, or an F and a B overlapped, of one stage and one microbatch;
//   - per stage and microbatch F comes before I or B, and I before W;
//   - every stage runs all of them for every microbatch, so that I and W come in equal numbers;
//   - sends and receives can be derived. The runtime lets a sender place its receiver's receive. So
//     a rank's next action is ready only when the data it receives has been sent before;
//   - the last stage runs its forwards in order of microbatches. Losses are kept in a list by
//     arrival, and each backward takes the one at its microbatch's place.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/execution/message_ends.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// Why PyTorch's runtime would not run the program as it stands; nothing when it would. O(passes).
std::optional<std::string> torch_objection(const Program& program);

// By rank, the messages that it sends and receives, in the order in which the runtime places them.
// InfeasibleError with the objection where there is one. O(passes x ranks).
std::vector<std::vector<MessageId>> torch_message_order(const Program& program);

}  // namespace pipesim
