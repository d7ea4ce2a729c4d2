// Packing of a stream of batches in which long documents wait. A batch has long documents for some
// of its microbatches only; the others wait for these. Source: WLB-LLM, Wang et al. 2025, arXiv
// 2503.17924, section 4.
#pragma once

#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "sim/scenario/unequal_batch.h"

namespace pipesim {

class DelayedPacking {
 public:
  // `outliers`: tokens from which on a document waits, rising, each with a queue of its own.
  // `capacity` and `room` as of packed_by_work.
  DelayedPacking(size_t microbatches, long capacity, double room, std::vector<int> outliers,
                 std::function<double(int)> work);

  // The microbatches of the next batch. A document as long as an outlier joins the queue of the
  // largest threshold that it reaches. A queue with one for every microbatch gives each its oldest,
  // and so on while it has as many. All others are packed beside them as by packed_by_work,
  // leftovers of the batch before first; documents without room are left over for the next. A
  // microbatch may be empty. O(documents x microbatches).
  std::vector<Documents> next(std::span<const int> documents);

  // Tokens that wait, of documents that have come.
  [[nodiscard]] long waiting() const;

 private:
  size_t microbatches_;
  long capacity_;
  double room_;
  std::vector<int> outliers_;
  std::function<double(int)> work_;
  std::vector<std::deque<int>> queues_;  // by threshold
  Documents left_over_;
};

}  // namespace pipesim
