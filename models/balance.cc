// The split of layers over stages with the least maximal stage time.
#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "models/layout.h"
#include "sim/core/error.h"

namespace pipesim {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Cuts of the sequence embedding, decoder layers, all MTP modules, output into stages.
class Cuts {
 public:
  Cuts(const Transformer& model, int stages, const LayerSeconds& seconds, const StageFits& fits)
      : model_(model),
        stages_(static_cast<size_t>(stages)),
        parts_(static_cast<size_t>(model.num_layers) + (model.mtp_layers > 0 ? 3 : 2)),
        fits_(fits) {
    before_.push_back(0);
    for (size_t part = 0; part < parts_; ++part) {
      const StageLayers one = between(part, part + 1);
      before_.push_back(before_.back() + stage_seconds(model, one, seconds).value());
    }
    if (!fits_) return;
    // Whether parts [begin, end) fit on a stage, asked once.
    fitting_.resize(stages_ * (parts_ + 1) * (parts_ + 1));
    for (size_t stage = 0; stage < stages_; ++stage) {
      for (size_t end = 0; end <= parts_; ++end) {
        for (size_t begin = 0; begin <= end; ++begin) {
          fitting_[index(stage, begin, end)] = fits_(static_cast<int>(stage), between(begin, end));
        }
      }
    }
  }

  Layout run() {
    // The least maximum first, then the least squares among what is within it: sums of times
    // differ by rounding, which the margin takes in.
    const double maximum =
        solve(reachable(), [](double so_far, double stage) { return std::max(so_far, stage); });
    if (maximum == kNever) {
      throw InfeasibleError(
          fmt::format("no split of {}'s layers over {} stages fits", model_.name, stages_));
    }
    solve(maximum * (1 + 1e-12),
          [](double so_far, double stage) { return so_far + stage * stage; });
    Layout layout;
    size_t end = parts_;
    for (size_t stage = stages_; stage-- > 0;) {
      const size_t begin = from_[stage * (parts_ + 1) + end];
      layout.stages.insert(layout.stages.begin(), between(begin, end));
      end = begin;
    }
    return layout;
  }

 private:
  // A maximum that some split keeps to: stages that take parts until they have their share of all.
  [[nodiscard]] double reachable() const {
    if (fits_) return kNever;
    double largest = 0;
    for (size_t part = 0; part < parts_; ++part) {
      largest = std::max(largest, before_[part + 1] - before_[part]);
    }
    return (before_.back() / static_cast<double>(stages_) + largest) * (1 + 1e-9);
  }

  [[nodiscard]] size_t index(size_t stage, size_t begin, size_t end) const {
    return (stage * (parts_ + 1) + end) * (parts_ + 1) + begin;
  }

  [[nodiscard]] StageLayers between(size_t begin, size_t end) const {
    const auto layers = static_cast<size_t>(model_.num_layers);
    const size_t first = std::clamp<size_t>(begin, 1, layers + 1) - 1;
    const size_t behind = std::clamp<size_t>(end, 1, layers + 1) - 1;
    StageLayers stage;
    stage.first = static_cast<int>(first);
    stage.layers = static_cast<int>(behind - first);
    stage.embedding = begin == 0 && end > 0;
    stage.output = begin < parts_ && end == parts_;
    const bool modules = begin <= layers + 1 && end > layers + 1;
    if (modules && model_.mtp_layers > 0) stage.mtp = model_.mtp_layers;
    return stage;
  }

  // Fills `from_` with where the last stage begins in a best split of the first `end` parts. Ties:
  // the latest begin, which leaves more layers to earlier stages.
  template <class Join>
  double solve(double most, Join join) {
    std::vector<double> best(parts_ + 1, kNever);
    best[0] = 0;
    from_.assign(stages_ * (parts_ + 1), 0);
    for (size_t stage = 0; stage < stages_; ++stage) {
      std::vector<double> next(parts_ + 1, kNever);
      for (size_t end = 0; end <= parts_; ++end) {
        for (size_t begin = end + 1; begin-- > 0;) {
          const double seconds = before_[end] - before_[begin];
          if (seconds > most) break;
          if (best[begin] == kNever) continue;
          if (fits_ && !fitting_[index(stage, begin, end)]) continue;
          const double value = join(best[begin], seconds);
          if (value >= next[end]) continue;
          next[end] = value;
          from_[stage * (parts_ + 1) + end] = begin;
        }
      }
      best = std::move(next);
    }
    return best[parts_];
  }

  const Transformer& model_;
  size_t stages_;
  size_t parts_;
  const StageFits& fits_;
  std::vector<double> before_;  // seconds of the parts before each
  std::vector<bool> fitting_;   // where anything may not fit
  std::vector<size_t> from_;
};

}  // namespace

Layout balance(const Transformer& model, int stages, const LayerSeconds& seconds,
               const StageFits& fits) {
  return Cuts(model, stages, seconds, fits).run();
}

}  // namespace pipesim
