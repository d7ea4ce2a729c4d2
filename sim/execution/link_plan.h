// Which activations cross one host link, and when: the heart of `with_offload` (with_offload.h),
// for pass times that are settled.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sim/pipeline/copies.h"

namespace pipesim {

inline constexpr double kTimeSlack = 1e-12;  // relative, for sums that are equal but for rounding

// An activation that could go to the host.
struct Candidate {
  Copy copy;
  double made = 0;    // end of its F
  double needed = 0;  // by when it must be back
  double out = 0;     // seconds
  double back = 0;
  double bytes = 0;
  int rank = 0;  // of its chunk on its device, those that live longest first

  [[nodiscard]] double lifespan() const { return needed - made; }
};

// Bytes that the passes of a device acquire or release.
struct HeldChange {
  double seconds = 0;
  double bytes = 0;
};

// A device's changes and ends of passes by time, without copies.
struct DevicePasses {
  std::vector<HeldChange> held;
  std::span<const double> ends;
};

// The candidates of a plan, and the longest wait of a copy for its link. The wait is a share of its
// activation's time on the host with a link of its own.
struct LinkRule {
  int chunks = 0;                                         // of every device, by rank
  std::uint32_t every = 1;                                // microbatches: one of so many,
  std::uint32_t first = 0;                                // from this one
  double wait = std::numeric_limits<double>::infinity();  // no bound
  bool turns = false;                                     // of the devices, as PipeOffload's plans

  bool operator==(const LinkRule&) const = default;
};

// The rules to plan by, the most successful first: all of `chunks` chunks, in turns and without,
// fewer, and every second microbatch. Each comes with and without a bound on waiting. `devices`
// share a link; one by itself takes no turns. `most` are enough.
std::vector<LinkRule> link_rules(int chunks, int devices, size_t most);

// The most bytes that devices of a link keep: the device that keeps most, and all together.
struct LinkPeak {
  double most = 0;
  double sum = 0;
  auto operator<=>(const LinkPeak&) const = default;
};

// The copies over one link.
class LinkPlan {
 public:
  // `devices` are those of the link, from `first_device`. A copy out takes `alone` of its seconds
  // before the first copy back; a microbatch has `splits` units.
  LinkPlan(std::vector<Candidate> all, std::span<const DevicePasses> devices, int first_device,
           double alone, int splits);

  // Plans by the rule: no copy back is late. O(n log n).
  void plan(const LinkRule& rule);

  // The plan's peak.
  [[nodiscard]] LinkPeak peak() const;

  // Plans by the rule that keeps least, ties to the first. `peaks`, where given, gets each rule's
  // peak, or a lower bound on it. Without `peaks`, no rule is tried once none can keep less.
  LinkRule plan_least(std::span<const LinkRule> rules, std::vector<double>* peaks);

  // The copies in the order of the link, and for those out when they end.
  [[nodiscard]] std::vector<std::pair<Copy, double>> out() const;
  // Likewise back, and when they start.
  [[nodiscard]] std::vector<std::pair<Copy, double>> back() const;

 private:
  void choose(const LinkRule& rule);
  void take_turns();
  void drop_what_cannot_come_back(double wait);
  void drop_what_cannot_go_out(double wait);
  void place_back();
  void place_out();
  bool drop_half_of_what_stays();
  [[nodiscard]] LinkPeak peak_with_links_of_their_own();
  // No plan of any candidates has less.
  [[nodiscard]] LinkPeak least_peak() const;
  [[nodiscard]] LinkPeak peak_of(const std::vector<std::vector<HeldChange>>& gone,
                                 const std::vector<std::vector<HeldChange>>& returned) const;
  [[nodiscard]] double out_seconds(size_t i, double start) const;

  std::vector<Candidate> all_;
  std::span<const DevicePasses> devices_;
  size_t first_device_;
  double alone_;
  std::uint32_t splits_;
  std::vector<std::uint32_t> by_made_, by_needed_;
  std::vector<std::uint32_t> out_order_, back_order_;  // of the plan: as the link copies
  std::vector<bool> kept_;
  std::vector<double> out_end_, back_start_;
  double first_back_ = std::numeric_limits<double>::infinity();
};

}  // namespace pipesim
