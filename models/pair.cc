#include "models/pair.h"

#include <algorithm>
#include <array>
#include <vector>

namespace pipesim {
namespace {

enum Stream { kCompute, kExchange };
enum Pass { kForward, kBackward, kWeight };

struct Part {
  Pass pass;
  double seconds;
  size_t after;  // parts of its pass that have to have run
};

// The parts issued to either stream, in order.
class Streams {
 public:
  explicit Streams(double exchange_share) : beside_(1 - exchange_share) {}

  void issue(Stream stream, Pass pass, Seconds seconds) {
    parts_[stream].push_back({pass, seconds.value(), issued_[pass]++});
  }

  // Runs all parts. The one issued first among those left can always run.
  PairTimes run() {
    double now = 0;
    PairTimes times;
    for (std::array<bool, 2> runs = ready(); runs[kCompute] || runs[kExchange]; runs = ready()) {
      const std::array<double, 2> rate{runs[kExchange] ? beside_ : 1, 1};
      const auto left = [&](Stream stream) { return front(stream).seconds / rate[stream]; };
      const bool compute =
          runs[kCompute] && (!runs[kExchange] || left(kCompute) <= left(kExchange));
      const Stream first = compute ? kCompute : kExchange;
      const Stream second = compute ? kExchange : kCompute;
      const double passed = left(first);
      now += passed;
      if (runs[second]) front(second).seconds -= passed * rate[second];
      finish(first, Seconds(now), times);
    }
    times.total = Seconds(now);
    return times;
  }

 private:
  Part& front(Stream stream) { return parts_[stream][next_[stream]]; }

  [[nodiscard]] bool ready(Stream stream) {
    if (next_[stream] == parts_[stream].size()) return false;
    const Part& part = front(stream);
    return part.pass == kWeight || done_[part.pass] >= part.after;
  }
  std::array<bool, 2> ready() { return {ready(kCompute), ready(kExchange)}; }

  void finish(Stream stream, Seconds now, PairTimes& times) {
    const Pass pass = front(stream).pass;
    ++done_[pass];
    ++next_[stream];
    if (pass == kForward) times.forward_ready = now;
    if (pass == kBackward) times.backward_ready = now;
  }

  double beside_;
  std::array<std::vector<Part>, 2> parts_;
  std::array<size_t, 2> next_{};
  std::array<size_t, 3> issued_{};
  std::array<size_t, 3> done_{};
};

// One layer of either pass, or of both.
void issue_layer(Streams& streams, const ForwardParts* f, const BackwardParts* b,
                 const PairOptions& options) {
  const bool apart = options.delay_weight;
  const auto forward = [&](Stream stream, Seconds ForwardParts::*part) {
    if (f != nullptr) streams.issue(stream, kForward, f->*part);
  };
  const auto exchange = [&](Seconds BackwardParts::*part) {
    if (b != nullptr) streams.issue(kExchange, kBackward, b->*part);
  };
  const auto gradient = [&](Seconds BackwardParts::*part, Seconds BackwardParts::*weight) {
    if (b == nullptr) return;
    streams.issue(kCompute, kBackward, apart ? b->*part : b->*part + b->*weight);
  };
  const auto weight = [&](Seconds BackwardParts::*part) {
    if (b != nullptr && apart) streams.issue(kCompute, kWeight, b->*part);
  };
  const auto attention = [&] {
    gradient(&BackwardParts::attention, &BackwardParts::attention_weight);
  };
  exchange(&BackwardParts::combine);
  forward(kCompute, &ForwardParts::attention);
  gradient(&BackwardParts::experts, &BackwardParts::experts_weight);
  forward(kExchange, &ForwardParts::dispatch);
  weight(&BackwardParts::experts_weight);
  exchange(&BackwardParts::dispatch);
  if (options.early_attention) attention();
  forward(kCompute, &ForwardParts::experts);
  forward(kExchange, &ForwardParts::combine);
  if (!options.early_attention) attention();
  weight(&BackwardParts::attention_weight);
}

}  // namespace

Seconds total(const ForwardParts& parts) {
  return parts.attention + parts.dispatch + parts.experts + parts.combine;
}

Seconds total(const BackwardParts& parts) {
  return parts.combine + parts.experts + parts.dispatch + parts.attention;
}

PairTimes pair_times(std::span<const ForwardParts> forward, std::span<const BackwardParts> backward,
                     const PairOptions& options) {
  Streams streams(options.exchange_share);
  const size_t both = std::min(forward.size(), backward.size());
  const auto from_last = [&](size_t i) { return &backward[backward.size() - 1 - i]; };
  for (size_t i = 0; i < both; ++i) issue_layer(streams, &forward[i], from_last(i), options);
  for (size_t i = both; i < backward.size(); ++i) {
    issue_layer(streams, nullptr, from_last(i), options);
  }
  for (size_t i = both; i < forward.size(); ++i) {
    issue_layer(streams, &forward[i], nullptr, options);
  }
  return streams.run();
}

PairBounds pair_bounds(std::span<const ForwardParts> forward,
                       std::span<const BackwardParts> backward, const PairOptions& options) {
  Seconds compute;
  Seconds exchange;
  Seconds alone_forward;
  Seconds alone_backward;
  for (const ForwardParts& f : forward) {
    compute += f.attention + f.experts;
    exchange += f.dispatch + f.combine;
    alone_forward += total(f);
  }
  for (const BackwardParts& b : backward) {
    const Seconds weight = b.experts_weight + b.attention_weight;
    const Seconds gradient = total(b);
    compute += b.experts + b.attention + weight;
    exchange += b.combine + b.dispatch;
    alone_backward += options.delay_weight ? gradient : gradient + weight;
  }
  return {std::max({compute + options.exchange_share * exchange, exchange, alone_forward,
                    alone_backward}),
          compute + exchange};
}

}  // namespace pipesim
