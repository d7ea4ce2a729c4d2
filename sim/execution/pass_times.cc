#include "sim/execution/pass_times.h"

#include <algorithm>
#include <span>
#include <utility>

#include "sim/execution/evaluate.h"
#include "sim/execution/walk.h"

namespace pipesim {
namespace {

class TimesVisitor {
 public:
  using Value = double;
  static constexpr Value kNotYet = -1;
  static constexpr Value kNothing = 0;

  TimesVisitor(const Program& program, const Problem& problem)
      : program_(program), problem_(problem), clock_(program.shape().devices, 0) {
    times.start.resize(clock_.size());
    times.end.resize(clock_.size());
    times.order.reserve(program.size());
  }

  Value run(int device, const Pass& pass, Value input, Value gradient) {
    double& clock = clock_[device];
    auto& starts = times.start[device];
    times.order.push_back({device, static_cast<std::uint32_t>(starts.size())});
    starts.push_back(std::max({clock, input, gradient}));
    clock = starts.back() + pass_seconds(problem_, program_, device, pass).value();
    times.end[device].push_back(clock);
    return clock;
  }
  Value deliver(Value result, PassKind /*kind*/, int from, int to, std::uint32_t unit) {
    return to < 0 ? result : result + problem_.transfer(from, to, unit).value();
  }
  Value join(Barrier barrier, std::uint32_t unit, std::span<const Value> results) {
    return std::ranges::max(results) + problem_.barrier(barrier, unit).value();
  }
  [[nodiscard]] Value last(int device) const { return clock_[device]; }
  void hold(int device, Value until) {
    double& clock = clock_[device];
    clock = std::max(clock, until);
  }

 private:
  const Program& program_;
  const Problem& problem_;
  std::vector<double> clock_;

 public:
  PassTimes times;
};

}  // namespace

PassTimes pass_times(const Program& program, const Problem& problem) {
  TimesVisitor visitor(program, problem);
  walk(program, visitor);
  return std::move(visitor.times);
}

}  // namespace pipesim
