#include "sim/planning/best_slices.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace pipesim {
namespace {

const Seconds kNoSlices(std::numeric_limits<double>::infinity());

class SlicePlanner {
 public:
  SlicePlanner(int units, const std::function<SliceTime(int, int)>& time)
      : units_(units), work_(static_cast<size_t>(units) + 1), last_(work_.size()) {
    for (int end = 1; end <= units; ++end) {
      for (int length = 1; length <= end; ++length) {
        times_.push_back(time(end - length, length));
      }
    }
  }

  // Every time that a slice takes to pass, each once, rising.
  [[nodiscard]] std::vector<Seconds> bounds() const {
    std::vector<Seconds> all;
    for (const SliceTime& each : times_) all.push_back(each.passing);
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  // The least work of a whole sequence whose slices keep to the bound; kNoSlices where none do.
  Seconds plan(Seconds bound) {
    work_[0] = Seconds(0);
    for (int end = 1; end <= units_; ++end) {
      work_[end] = kNoSlices;
      for (int length = 1; length <= end; ++length) {
        const SliceTime& slice = time(end, length);
        if (slice.passing > bound || work_[end - length] + slice.work >= work_[end]) continue;
        work_[end] = work_[end - length] + slice.work;
        last_[end] = length;
      }
    }
    return work_[units_];
  }

  // Slice lengths of the last plan, first slice first.
  [[nodiscard]] std::vector<long> lengths() const {
    std::vector<long> lengths;
    for (int end = units_; end > 0; end -= last_[end]) lengths.push_back(last_[end]);
    std::reverse(lengths.begin(), lengths.end());
    return lengths;
  }

 private:
  [[nodiscard]] const SliceTime& time(int end, int length) const {
    return times_[static_cast<size_t>(end) * (end - 1) / 2 + length - 1];
  }

  int units_;
  std::vector<SliceTime> times_;  // by end, then by length
  std::vector<Seconds> work_;     // of the first so many units
  std::vector<int> last_;         // length of the slice that ends there
};

}  // namespace

Seconds latency(const std::vector<SliceTime>& slices, int microbatches) {
  Seconds work;
  Seconds passing;
  for (const SliceTime& slice : slices) {
    work += slice.work;
    passing = std::max(passing, slice.passing);
  }
  return microbatches * work + passing;
}

std::vector<std::vector<long>> best_slices(int units, int microbatches, size_t most,
                                           const std::function<SliceTime(int, int)>& time) {
  SlicePlanner planner(units, time);
  std::vector<std::pair<Seconds, std::vector<long>>> plans;
  Seconds least_work = kNoSlices;
  for (const Seconds bound : planner.bounds()) {
    const Seconds work = planner.plan(bound);
    // A higher bound that spares no work is no plan of its own.
    if (work >= least_work) continue;
    least_work = work;
    plans.emplace_back(microbatches * work + bound, planner.lengths());
  }
  std::ranges::stable_sort(plans, {}, &std::pair<Seconds, std::vector<long>>::first);
  plans.resize(std::min(plans.size(), most));
  std::vector<std::vector<long>> best;
  for (auto& plan : plans) best.push_back(std::move(plan.second));
  return best;
}

}  // namespace pipesim
