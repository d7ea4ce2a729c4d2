#include "sim/execution/message_ends.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace pipesim {

Parts::Parts(const Program& program)
    : program_(program),
      place_(program.placement()),
      units_(static_cast<MessageId>(program.shape().units())),
      gradients_(static_cast<MessageId>(place_.virtual_stages()) * units_),
      index_(std::size_t{gradients_} * 2) {
  for (int device = 0; device < place_.devices(); ++device) add_device(device);
}

void Parts::add_device(int device) {
  auto& parts = parts_.emplace_back();
  const auto passes = program_.passes(device);
  for (std::uint32_t at = 0; at < passes.size(); ++at) {
    program_.visit_parts(passes[at], [&](const Pass& pass) {
      if (pass.kind != PassKind::kF && !is_backward(pass.kind)) return;
      parts.push_back(part(device, pass, at));
    });
  }
  int forwards = 0;
  int backwards = 0;
  for (Part& each : parts) {
    each.index = each.forward ? forwards++ : backwards++;
    if (each.out != kNoMessage) index_[each.out] = each.index;
  }
}

Part Parts::part(int device, const Pass& pass, std::uint32_t at) const {
  const StagePass here{pass.kind, place_.virtual_stage(device, pass.chunk)};
  return {.at = at,
          .forward = pass.kind == PassKind::kF,
          .chunk = pass.chunk,
          .in = message(source_of(place_, here), here, pass.microbatch),
          .out = message(here, target_of(place_, here), pass.microbatch)};
}

MessageId Parts::message(const StagePass& from, const StagePass& to, std::uint32_t unit) const {
  if (!from.exists() || !to.exists() || place_.device(from.vs) == place_.device(to.vs)) {
    return kNoMessage;
  }
  const MessageId first = from.kind == PassKind::kF ? 0 : gradients_;
  return first + static_cast<MessageId>(from.vs) * units_ + unit;
}

std::vector<Post> Posts::sorted() && {
  std::ranges::sort(posts_, {}, [](const Post& post) {
    return std::tuple(post.before, post.call, post.message);
  });
  return std::move(posts_);
}

}  // namespace pipesim
