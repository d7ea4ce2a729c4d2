#include <algorithm>

#include "sim/execution/call_rules.h"

namespace pipesim {
namespace {

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
      // A group's results are sent in the call after its last part.
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
  // True if the results before the group are sent in the call that receives for it.
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

}  // namespace

Posts calls_of_megatron(const Program& program, const Parts& all, int device) {
  return Megatron(program, all, device).posts();
}

}  // namespace pipesim
