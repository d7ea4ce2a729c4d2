// Builds a program by playing the pipeline in time. An idle device starts its best available pass,
// by a few rules, and waits when it has none.
//
// For schedules that compare several plans of one problem: two chunks per device, in V-shape, with
// split backwards. Deterministic. O(passes) per run, no allocation in `run`.
//
// Every run that does not give up ends in an executable program within the limit, if one microbatch
// fits on every device. Proof. An F runs only where, all owed W done, its activation fits (a). An
// F0 must also leave room for the next F1, as if only F0 without their F1 were held (b). With its
// own F0 counted, (f0 - f1) a0 + a1 <= limit.
//
// Let i be the least microbatch that is not through. Its next pass has its input, or the message is
// on its way. A B needs no memory. An F0 of i finds a device that holds nothing once the owed W
// have run. An F1 of i finds (f0 - i) a0. When the last of these F0 ran, f1 was at most i, so that
// (b) says that it fits. The further rules hold back an F0 only in two cases. Another F1 is due on
// the device (memory kept for chunk 1), or a message is on its way to it (patience). So there is
// always a pass that may run, and a device that may run one does.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sim/core/enum_array.h"
#include "sim/core/units.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/planning/plan_time.h"
#include "sim/planning/player.h"
#include "sim/planning/room.h"

namespace pipesim {

// F of chunk 0 and 1, B of chunk 1 and 0: the order of a microbatch on a device.
enum class GreedyStep : std::uint8_t { kF0, kF1, kB1, kB0 };
template <>
inline constexpr std::size_t kSizeOf<GreedyStep> = 4;

// F1 and both B come before F0, which only adds to what is in flight.
struct GreedyRules {
  bool b1_before_f1 = false;
  // Before its first B, a device idles rather than run an F0 that would delay a pass due within
  // this part of an F0.
  double patience = 0;
  // How many more F0 may be in flight than chunk 0's share of the memory holds.
  double beyond_share = 0;
};

class GreedyPlanner {
 public:
  explicit GreedyPlanner(const Problem& problem);

  // Before a run. Requires at least what one microbatch keeps on any device.
  void set_limit(Bytes limit) { room_.set_limit(limit); }
  // The most that a run since then wanted and had room for. With any limit from there on up to the
  // one set, all runs would have been the same.
  [[nodiscard]] Bytes asked() const { return room_.asked(); }

  // Leaves the program in `lists`. Gives up, and returns infinity, once it cannot take less than
  // `most`. The time is that of the decisions: executed, the program can only be faster.
  PlanTime run(const GreedyRules& rules, const PlanTime& most);
  [[nodiscard]] PassLists& lists() { return player_.lists(); }

 private:
  using Step = GreedyStep;
  using enum GreedyStep;
  template <class T>
  using BySteps = EnumArray<Step, T>;

  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct Device {
    BySteps<double> arrival{};  // of the input of the next pass of each step that `sent` has
    unsigned sent = 0;          // steps whose input is there or on its way, bits of bit_
    double chunks_of_f0 = 0;    // of the whole memory, for an F0 in flight while an F1 is due
    double wake = 0;
    int earlier = -1, later = -1;  // neighbours in the bucket
    int bucket = -1;
  };

  // The options of an idle device.
  struct Choice {
    std::optional<Step> now;
    double next = kNever;       // when the next input comes, of passes that have room
    bool lacks_memory = false;  // a forward has come and needs room that an owed W makes
  };

  void count_work(Objective objective);
  void share_memory(const Problem& problem);
  void reset();
  void act(int device);
  Choice choose(int device);
  bool fits(int device, Step step);
  bool fits_now(int device, Step step);
  bool has_share(int device);
  [[nodiscard]] bool warms_up(int device) const;
  void start(int device, Step step);
  void await(int device, Step step, bool sent, double arrival);
  void deliver(int device, Step step, double arrival);
  void wake_at(int device, double time);
  void take_out(int device);

  [[nodiscard]] const Player::Chunk& chunk(int d, int c) const { return player_.at_row(2 * d + c); }

  static constexpr int kSteps = static_cast<int>(kSizeOf<Step>);

  double largest_chunk_ = 0;  // bytes
  Room room_;
  Player player_;
  double buckets_per_tick_ = 1;
  GreedyRules rules_;
  std::array<Step, kSteps> steps_{};  // of the run, those that run first first
  BySteps<unsigned> bit_{};           // of a step; by its place among them
  std::vector<Device> devices_;
  std::vector<int> buckets_;  // a ring of lists of devices, by time
  int waiting_ = 0;
  double most_work_ = 0;  // of a device; of a makespan with the way of the first F to it
};

}  // namespace pipesim
