#include <algorithm>
#include <span>

#include "sim/execution/call_rules.h"

namespace pipesim {
namespace {

// Like calls_before_every_pass, with these exceptions among the passes before the first backward,
// where `early` is the chunk that starts first and `late` the other.
//   - A late forward also receives for the early forward that comes next.
//   - An early forward's result is sent after the late forward that follows it; not in the middle,
//     where the late forward needs the early one of the device beside, and not with fewer than the
//     2p microbatches that DualPipe asks for.
//   - There, the last two forwards are sent one call later, the early one with the first backward's
//     gradient, as if the two were an overlapped block.
//   - A forward behind a W is received before the W.
//   - Without overlapped blocks, a forward and the BW of the other chunk behind it are received for
//     and sent as if they were one.
class DualPipe {
 public:
  DualPipe(const Program& program, const std::vector<Part>& parts, int device)
      : parts_(parts),
        passes_(program.passes(device)),
        early_(parts.front().chunk),
        in_the_middle_(stands_in_the_middle(program.placement(), device)),
        cut_short_(program.shape().microbatches < 2 * program.shape().devices),
        overlaps_(!program.pairs().empty()) {
    const Part& backward = *std::ranges::find(parts, false, &Part::forward);
    end_ = backward.at;
    in_turn_ = in_the_middle_ && end_ > 0 && backward.chunk != early_ && is_forward(end_ - 1, true);
  }

  [[nodiscard]] Posts posts() const {
    Posts posts;
    const Part* late = nullptr;  // the late forward that receives for the next early one
    for (const Part& part : parts_) {
      std::uint32_t receive = receives_sooner(part) ? part.at - 1 : part.at;
      if (part.forward && is_early(part) && late != nullptr) {
        receive = late->at;
        late = nullptr;
      }
      if (part.at < end_ && !is_early(part)) late = &part;
      posts.add(part.in, receive);
      posts.add(part.out, part.at + (sends_later(part) ? 2 : 1));
    }
    return posts;
  }

 private:
  static bool stands_in_the_middle(const Placement& place, int device) {
    const int p = place.devices();
    if (place.directions() == 1) return device == p - 1;
    return std::min(device, p - 1 - device) == p / 2 - 1;
  }

  [[nodiscard]] bool is_early(const Part& part) const { return part.chunk == early_; }
  // True if an early, or a late, forward is at this position before the first backward.
  [[nodiscard]] bool is_forward(std::uint32_t at, bool early) const {
    return at < end_ && passes_[at].kind == PassKind::kF && (passes_[at].chunk == early_) == early;
  }
  // True if this is the forward of a block whose two passes run one after the other.
  [[nodiscard]] bool opens_block(std::uint32_t at) const {
    if (overlaps_ || at + 1 >= passes_.size() || (in_turn_ && at + 1 == end_)) return false;
    const Pass& a = passes_[at];
    const Pass& b = passes_[at + 1];
    return a.kind == PassKind::kF && b.kind == PassKind::kBW && a.chunk != b.chunk;
  }

  [[nodiscard]] bool receives_sooner(const Part& part) const {
    if (part.at == 0) return false;
    return part.forward ? passes_[part.at - 1].kind == PassKind::kW : opens_block(part.at - 1);
  }
  [[nodiscard]] bool sends_later(const Part& part) const {
    if (part.forward && opens_block(part.at)) return true;
    if (part.at >= end_) return false;
    const std::uint32_t to_backward = is_early(part) ? 1 : 2;
    if (in_turn_ && part.at + to_backward == end_) return true;
    return is_early(part) && !cut_short_ && !in_the_middle_ && is_forward(part.at + 1, false);
  }

  const std::vector<Part>& parts_;
  std::span<const Pass> passes_;
  int early_;
  bool in_the_middle_;
  bool cut_short_;  // of few microbatches: what is put off may be waited for
  bool overlaps_;
  std::uint32_t end_ = 0;  // of what precedes the first backward
  bool in_turn_ = false;   // the last two forwards are put off as a block is
};

}  // namespace

Posts calls_of_dual_pipe(const Program& program, const Parts& all, int device) {
  return DualPipe(program, all.of(device), device).posts();
}

}  // namespace pipesim
