#include "sim/scenario/delayed_packing.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace pipesim {

DelayedPacking::DelayedPacking(size_t microbatches, long capacity, double room,
                               std::vector<int> outliers, std::function<double(int)> work)
    : microbatches_(microbatches),
      capacity_(capacity),
      room_(room),
      outliers_(std::move(outliers)),
      work_(std::move(work)),
      queues_(outliers_.size()) {}

std::vector<Documents> DelayedPacking::next(std::span<const int> documents) {
  Documents now = std::exchange(left_over_, {});
  for (const int document : documents) {
    const auto above = std::ranges::upper_bound(outliers_, document);
    if (above == outliers_.begin()) {
      now.push_back(document);
    } else {
      queues_[static_cast<size_t>(above - outliers_.begin()) - 1].push_back(document);
    }
  }
  std::vector<Documents> packed(microbatches_);
  for (std::deque<int>& queue : queues_) {
    while (queue.size() >= microbatches_) {
      for (Documents& microbatch : packed) {
        microbatch.push_back(queue.front());
        queue.pop_front();
      }
    }
  }
  left_over_ = pack_by_work(now, packed, capacity_, room_, work_);
  return packed;
}

long DelayedPacking::waiting() const {
  long tokens = std::accumulate(left_over_.begin(), left_over_.end(), 0L);
  for (const std::deque<int>& queue : queues_) {
    tokens = std::accumulate(queue.begin(), queue.end(), tokens);
  }
  return tokens;
}

}  // namespace pipesim
