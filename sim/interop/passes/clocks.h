// The clocks of ranks against each other, by the messages of a run.
#pragma once

#include <vector>

#include "sim/interop/passes/recording.h"
#include "sim/pipeline/program.h"

namespace pipesim {

struct Clocks {
  std::vector<double> ahead;  // of rank 0, by rank; take it off to have one clock
  double message = 0;         // seconds of a message, median of the pairs of ranks
};

// Requires the passes of the iteration to be those of the program. A rank that exchanges no
// messages both ways with others is taken to have their clock.
Clocks clocks_of(const Program& program, const RecordedIteration& iteration);

// Calls with each message: the pass that sends and the one that waits for it, and their ranks.
template <class Visit>
void each_message(const Program& program, const RecordedIteration& iteration, Visit visit);

// ---- implementation ----

// The pass of a stage and microbatch: forwards, and backwards that hand a gradient on.
class PassIndex {
 public:
  PassIndex(const Program& program, const RecordedIteration& iteration);
  // nullptr: there is none.
  [[nodiscard]] const RecordedPass* forward(int vs, int microbatch) const {
    return forward_[at(vs, microbatch)];
  }
  [[nodiscard]] const RecordedPass* backward(int vs, int microbatch) const {
    return backward_[at(vs, microbatch)];
  }

 private:
  [[nodiscard]] size_t at(int vs, int microbatch) const {
    return static_cast<size_t>(vs) * microbatches_ + static_cast<size_t>(microbatch);
  }
  size_t microbatches_;
  std::vector<const RecordedPass*> forward_, backward_;
};

template <class Visit>
void each_message(const Program& program, const RecordedIteration& iteration, Visit visit) {
  const PassIndex index(program, iteration);
  const Placement& place = program.placement();
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    const int next = place.downstream(vs);
    if (next < 0 || place.device(vs) == place.device(next)) continue;
    for (int i = 0; i < program.shape().microbatches; ++i) {
      const auto* const from = index.forward(vs, i);
      const auto* const to = index.forward(next, i);
      if (from != nullptr && to != nullptr) visit(*from, place.device(vs), *to, place.device(next));
      const auto* const back = index.backward(next, i);
      const auto* const last = index.backward(vs, i);
      if (back != nullptr && last != nullptr) {
        visit(*back, place.device(next), *last, place.device(vs));
      }
    }
  }
}

}  // namespace pipesim
