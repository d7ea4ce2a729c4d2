#include "sim/execution/comm_batches.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <tuple>
#include <utility>

#include "sim/core/error.h"
#include "sim/execution/walk.h"

namespace pipesim {
namespace {

constexpr MessageId kNoMessage = std::numeric_limits<MessageId>::max();
constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();

// A forward or a backward of a program, with the messages that it waits for and makes.
struct Part {
  std::uint32_t at = 0;  // position; the two of an overlapped block share it
  bool forward = true;
  int chunk = 0;
  int index = 0;  // among the forwards, or the backwards, of its device
  MessageId in = kNoMessage;
  MessageId out = kNoMessage;
};

// An end of a message: in which call of the device, which stands before which position.
struct Post {
  std::uint32_t before = 0;
  std::uint32_t call = 0;  // of several at one position
  MessageId message = 0;
};

class Parts {
 public:
  explicit Parts(const Program& program)
      : program_(program),
        place_(program.placement()),
        units_(static_cast<MessageId>(program.shape().units())),
        gradients_(static_cast<MessageId>(place_.virtual_stages()) * units_),
        index_(size_t{gradients_} * 2) {
    for (int device = 0; device < place_.devices(); ++device) add_device(device);
  }

  [[nodiscard]] const std::vector<Part>& of(int device) const { return parts_[device]; }
  // Of the pass that makes the message, on its device.
  [[nodiscard]] int index_of_sender(MessageId message) const { return index_[message]; }

 private:
  void add_device(int device) {
    auto& parts = parts_.emplace_back();
    int counts[2] = {0, 0};
    const auto passes = program_.passes(device);
    for (std::uint32_t at = 0; at < passes.size(); ++at) {
      const Pass& pass = passes[at];
      if (pass.kind == PassKind::kFB) {
        parts.push_back(part(device, program_.pair(pass).forward, at));
        parts.push_back(part(device, program_.pair(pass).backward, at));
      } else if (pass.kind == PassKind::kF || pass.kind == PassKind::kB ||
                 pass.kind == PassKind::kBW) {
        parts.push_back(part(device, pass, at));
      }
    }
    for (Part& each : parts) {
      each.index = counts[each.forward ? 0 : 1]++;
      if (each.out != kNoMessage) index_[each.out] = each.index;
    }
  }

  [[nodiscard]] Part part(int device, const Pass& pass, std::uint32_t at) const {
    const int vs = place_.virtual_stage(device, pass.chunk);
    const bool forward = pass.kind == PassKind::kF;
    const int up = place_.upstream(vs);
    const int down = place_.downstream(vs);
    return {.at = at,
            .forward = forward,
            .chunk = pass.chunk,
            .in = message(forward, forward ? up : down, vs, pass.microbatch),
            .out = message(forward, vs, forward ? down : up, pass.microbatch)};
  }
  [[nodiscard]] MessageId message(bool forward, int from, int to, std::uint32_t unit) const {
    if (from < 0 || to < 0 || place_.device(from) == place_.device(to)) return kNoMessage;
    return (forward ? 0 : gradients_) + static_cast<MessageId>(from) * units_ + unit;
  }

  const Program& program_;
  const Placement& place_;
  MessageId units_;
  MessageId gradients_;  // the first id of a gradient
  std::vector<std::vector<Part>> parts_;
  std::vector<int> index_;
};

class Posts {
 public:
  void add(MessageId message, std::uint32_t before, std::uint32_t call = 0) {
    if (message != kNoMessage) posts_.push_back({before, call, message});
  }
  [[nodiscard]] std::vector<Post> sorted() && {
    std::ranges::sort(posts_, {}, [](const Post& post) {
      return std::tuple(post.before, post.call, post.message);
    });
    return std::move(posts_);
  }

 private:
  std::vector<Post> posts_;
};

Posts before_every_pass(const std::vector<Part>& parts) {
  Posts posts;
  for (const Part& part : parts) {
    posts.add(part.in, part.at);
    posts.add(part.out, part.at + 1);
  }
  return posts;
}

// Megatron-LM's p2p_communication calls, in its schedules with and without interleaving.
class Megatron {
 public:
  Megatron(const Program& program, const Parts& all, int device)
      : place_(program.placement()), all_(all), parts_(all.of(device)), device_(device) {
    count_warm_up();
    for (std::uint32_t i = 0; i < parts_.size(); ++i) {
      if (i == 0 || !joined(parts_[i - 1], parts_[i])) groups_.push_back(i);
      group_of_[parts_[i].forward ? 0 : 1].push_back(groups_.size() - 1);
    }
  }

  [[nodiscard]] Posts posts() const {
    Posts posts;
    for (size_t i = 0, group = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      if (group + 1 < groups_.size() && groups_[group + 1] == i) ++group;
      // What a group makes is sent in the call after its last part.
      posts.add(part.out, call_before(group + 1));
      const size_t earliest = group_that_receives(part, group);
      posts.add(part.in, call_before(earliest), one_call(earliest) ? 0 : 1);
    }
    return posts;
  }

 private:
  [[nodiscard]] bool interleaved() const { return place_.chunks() > 1; }

  // The forwards that no backward follows at once.
  void count_warm_up() {
    const auto backward = std::ranges::find(parts_, false, &Part::forward);
    const auto first = static_cast<int>(backward - parts_.begin());
    const auto all = static_cast<int>(std::ranges::count(parts_, true, &Part::forward));
    const int after = place_.devices() - 1 - device_;
    if (!interleaved()) {
      warm_up_ = after;
    } else if (first < all) {
      warm_up_ = first - 1;
    } else {  // all of them, or all but the last
      const auto other = std::ranges::find_if(parts_, [](const Part& p) { return p.chunk > 0; });
      const auto group = static_cast<int>(other - parts_.begin());
      warm_up_ = 2 * after + (place_.chunks() - 1) * group >= all ? all : all - 1;
    }
  }

  [[nodiscard]] bool turns_in_warm_up(const Part& a, const Part& b) const {
    return a.forward && !b.forward && a.index < warm_up_;
  }
  // No call stands between the forward and the backward of the interleaved steady state.
  [[nodiscard]] bool joined(const Part& a, const Part& b) const {
    return interleaved() && a.forward && !b.forward && !turns_in_warm_up(a, b);
  }
  // Whether what precedes the group is sent in the call that receives for it.
  [[nodiscard]] bool one_call(size_t group) const {
    if (group == 0) return true;
    const Part& a = parts_[groups_[group] - 1];
    const Part& b = parts_[groups_[group]];
    return !turns_in_warm_up(a, b) && (interleaved() || a.forward != b.forward);
  }
  [[nodiscard]] std::uint32_t call_before(size_t group) const {
    if (group == 0) return parts_.front().at;
    const size_t end = group < groups_.size() ? groups_[group] : parts_.size();
    return parts_[end - 1].at + 1;
  }

  // From the other end of the pipeline a device receives what is sent p-1 of its own passes later,
  // even when its own turn comes later still (groups of more than p microbatches).
  [[nodiscard]] size_t group_that_receives(const Part& part, size_t group) const {
    const int first = part.forward ? 0 : place_.devices() - 1;
    if (!interleaved() || device_ != first || part.in == kNoMessage) return group;
    const auto& group_of = group_of_[part.forward ? 0 : 1];
    const int due = all_.index_of_sender(part.in) + place_.devices();
    return group_of[std::min(due, part.index)];
  }

  const Placement& place_;
  const Parts& all_;
  const std::vector<Part>& parts_;
  int device_;
  int warm_up_ = 0;
  std::vector<std::uint32_t> groups_;  // the first part of each
  std::vector<size_t> group_of_[2];    // of the forwards and the backwards, in their order
};

// DualPipe's step(): as before_every_pass, with these exceptions among the passes before the first
// backward, where `early` is the chunk that starts first and `late` the other.
//   - A late forward also receives for the early forward that comes next.
//   - An early forward's result is sent after the late forward that follows it; not in the middle,
//     where the late forward needs the early one of the device beside, and not with fewer than the
//     2p microbatches that DualPipe asks for.
//   - There, the last two forwards are sent one call later, the early one with the first backward's
//     gradient, as if the two were an overlapped block.
//   - A forward behind a W is received before the W.
//   - Without overlapped blocks, a forward and the BW of the other chunk behind it are received for
//     and sent as if they were one.
Posts dual_pipe(const std::vector<Part>& parts, std::span<const Pass> passes, bool middle,
                bool puts_off, bool overlaps) {
  Posts posts;
  const int early = parts.front().chunk;
  const auto backward = std::ranges::find_if(parts, [](const Part& p) { return !p.forward; });
  const std::uint32_t end = backward == parts.end() ? kNowhere : backward->at;
  const auto lone = [&](std::uint32_t at, bool is_early) {
    return at < end && passes[at].kind == PassKind::kF && (passes[at].chunk == early) == is_early;
  };
  const bool in_turn =
      middle && end != kNowhere && end > 0 && backward->chunk != early && lone(end - 1, true);
  // Of a block whose two passes run one after the other: the forward.
  const auto opens_block = [&](std::uint32_t at) {
    return !overlaps && at + 1 < passes.size() && passes[at].kind == PassKind::kF &&
           passes[at + 1].kind == PassKind::kBW && passes[at].chunk != passes[at + 1].chunk &&
           !(in_turn && at + 1 == end);
  };
  std::uint32_t receiver = kNowhere;  // the late forward that receives for the next early one
  for (const Part& part : parts) {
    std::uint32_t receive = part.at;
    std::uint32_t send = part.at + 1;
    const bool is_early = part.chunk == early;
    if (part.forward && is_early && receiver != kNowhere) {
      receive = std::exchange(receiver, kNowhere);
    } else if (part.at > 0 && (part.forward ? passes[part.at - 1].kind == PassKind::kW
                                            : opens_block(part.at - 1))) {
      receive = part.at - 1;
    }
    if (part.forward && opens_block(part.at)) send = part.at + 2;
    if (part.at < end) {
      const bool last = in_turn && part.at + (is_early ? 1 : 2) == end;
      const bool followed = puts_off && is_early && !middle && lone(part.at + 1, false);
      if (last || followed) send = part.at + 2;
      if (!is_early) receiver = part.at;
    }
    posts.add(part.in, receive);
    posts.add(part.out, send);
  }
  return posts;
}

Posts posts_of(const Program& program, const Parts& all, int device, CallGroups calls) {
  const std::vector<Part>& parts = all.of(device);
  if (calls == CallGroups::kMegatron && program.pairs().empty()) {
    return Megatron(program, all, device).posts();
  }
  const Placement& place = program.placement();
  const int p = place.devices();
  if (calls == CallGroups::kDualPipe && program.shape().chunks == 2 && !parts.empty()) {
    const bool middle =
        place.directions() == 2 ? std::min(device, p - 1 - device) == p / 2 - 1 : device == p - 1;
    // With fewer microbatches the steps are cut short, and what is put off may be waited for.
    const bool puts_off = program.shape().microbatches >= 2 * p;
    return dual_pipe(parts, program.passes(device), middle, puts_off, !program.pairs().empty());
  }
  return before_every_pass(parts);
}

}  // namespace

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
  return {forward, from, forward ? place_.downstream(from) : place_.upstream(from),
          static_cast<std::uint32_t>(id % units_)};
}

void report_held(const Program& program, const CommBatches& batches,
                 std::span<const std::uint32_t> position, std::span<const std::uint32_t> issued,
                 std::span<const std::uint8_t> met) {
  const Placement& place = program.placement();
  std::string text = "deadlock: devices hold each other in blocking transfers:";
  for (int device = 0; device < place.devices(); ++device) {
    const auto d = static_cast<size_t>(device);
    const auto passes = program.passes(device);
    if (issued[d] == 0) continue;
    std::string waits;
    for (const MessageId id : batches.messages(device, batches.batches(device)[issued[d] - 1])) {
      if (met[id] > 1) continue;
      const Message message = batches.message(id);
      const bool sends = place.device(message.from) == device;
      waits += fmt::format("{} {} {}{}{} {} device {}", waits.empty() ? "" : " and",
                           sends ? "to send" : "for", message.from, message.forward ? "F" : "B",
                           message.unit, sends ? "to" : "of",
                           place.device(sends ? message.to : message.from));
    }
    if (waits.empty()) continue;
    text += fmt::format("\n  device {} waits {}{}", device,
                        position[d] < passes.size()
                            ? "before " + program.text(device, passes[position[d]])
                            : std::string("at its end"),
                        waits);
  }
  throw InfeasibleError(text);
}

}  // namespace pipesim
