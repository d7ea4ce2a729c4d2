// The calls in which a training framework exchanges messages, where transfers hold the compute
// stream (sim/execution/comm_batches.h has the rules).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pipesim {

enum class CallGroups : std::uint8_t {
  // Before every pass one call: the results not yet sent, and what the pass waits for. An order
  // made for asynchronous sends may deadlock in it.
  kEveryPass,
  // Megatron-LM. One chunk: between two forwards, or two backwards, a send and then a receive;
  // between a forward and a backward one call for both. Several chunks: one call for all four after
  // each pass of warm-up and cool-down, and after each forward and backward of the steady state.
  kMegatron,
  // deepseek-ai/DualPipe: kEveryPass but for what it receives early and sends late in its warm-up.
  kDualPipe,
};

constexpr std::string_view to_text(CallGroups calls) {
  constexpr std::string_view kNames[] = {"every pass", "Megatron-LM", "DualPipe"};
  return kNames[static_cast<size_t>(calls)];
}

}  // namespace pipesim
