#include "sim/execution/comm_batches.h"

#include <fmt/format.h>
#include <string>

#include "sim/core/error.h"
#include "sim/execution/call_rules.h"
#include "sim/execution/walk.h"

namespace pipesim {
namespace {

Posts posts_of(const Program& program, const Parts& all, int device, CallGroups calls) {
  if (calls == CallGroups::kMegatron && program.pairs().empty()) {
    return calls_of_megatron(program, all, device);
  }
  if (calls == CallGroups::kDualPipe && program.shape().chunks == 2 && !all.of(device).empty()) {
    return calls_of_dual_pipe(program, all, device);
  }
  return calls_before_every_pass(all.of(device));
}

}  // namespace

Posts calls_before_every_pass(const std::vector<Part>& parts) {
  Posts posts;
  for (const Part& part : parts) {
    posts.add(part.in, part.at);
    posts.add(part.out, part.at + 1);
  }
  return posts;
}

CommBatches::CommBatches(const Program& program, CallGroups calls)
    : place_(program.placement()),
      stages_(place_.virtual_stages()),
      units_(program.shape().units()) {
  if (program.wrap_around() != WrapAround::kEvery) {
    throw InfeasibleError("transfers cannot hold devices that do not wait for every message");
  }
  check_executable(program);
  const Parts parts(program);
  for (int device = 0; device < place_.devices(); ++device) {
    Device& of = devices_.emplace_back();
    std::uint32_t call = 0;
    for (const Post& post : posts_of(program, parts, device, calls).sorted()) {
      if (of.batches.empty() || of.batches.back().before != post.before || call != post.call) {
        of.batches.push_back({post.before, static_cast<std::uint32_t>(of.messages.size()), 0});
        call = post.call;
      }
      ++of.batches.back().count;
      of.messages.push_back(post.message);
    }
  }
}

Message CommBatches::message(MessageId id) const {
  const bool forward = id < stages_ * units_;
  const auto from = static_cast<int>(id / units_ % stages_);
  const PassKind kind = forward ? PassKind::kF : PassKind::kB;
  return {forward, from, target_of(place_, {kind, from}).vs,
          static_cast<std::uint32_t>(id % units_)};
}

namespace {

// Names the messages that the device still awaits in its last issued batch.
std::string awaited_by(int device, const Placement& place, const CommBatches& batches,
                       std::uint32_t issued, std::span<const std::uint8_t> met) {
  std::string text;
  if (issued == 0) return text;
  for (const MessageId id : batches.messages(device, batches.batches(device)[issued - 1])) {
    if (met[id] > 1) continue;
    const Message message = batches.message(id);
    const bool sends = place.device(message.from) == device;
    text += fmt::format("{} {} {}{}{} {} device {}", text.empty() ? "" : " and",
                        sends ? "to send" : "for", message.from, message.forward ? "F" : "B",
                        message.unit, sends ? "to" : "of",
                        place.device(sends ? message.to : message.from));
  }
  return text;
}

}  // namespace

void report_held(const Program& program, const CommBatches& batches,
                 std::span<const std::uint32_t> position, std::span<const std::uint32_t> issued,
                 std::span<const std::uint8_t> met) {
  const Placement& place = program.placement();
  std::string text = "deadlock: devices hold each other in blocking transfers:";
  for (int device = 0; device < place.devices(); ++device) {
    const std::string waits = awaited_by(device, place, batches, issued[device], met);
    if (waits.empty()) continue;
    const auto passes = program.passes(device);
    const std::uint32_t at = position[device];
    text += fmt::format(
        "\n  device {} waits {}{}", device,
        at < passes.size() ? "before " + program.text(device, passes[at]) : "at its end", waits);
  }
  throw InfeasibleError(text);
}

}  // namespace pipesim
