#include "schedules/vee_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/planning/building_block.h"
#include "sim/planning/device_bound.h"
#include "sim/planning/memory_ladder.h"
#include "sim/planning/room.h"
#include "sim/planning/run_within.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

constexpr size_t kFinished = 4;          // of these, put into time once more
constexpr int kTurns = 32;               // devices at which the step of a block may change, at most
constexpr int kBuilt = 96;               // blocks built, or more
constexpr int kBuiltPasses = 60'000;     // while they have few passes
constexpr int kMostPasses = 30'000'000;  // of all that are built: the blocks that promise most
constexpr int kRungs = 2;                // of the ladder, per 1F1B's memory
constexpr int kRounds = 16;              // microbatches that show the period of a block
constexpr int kFew = 3;                  // times p: microbatches that show its ramps

int few_of(int devices, int microbatches) {
  return microbatches < 2 * kFew * devices ? microbatches : kFew * devices;
}

int kind_of(std::uint8_t kind) { return kind; }
int kind_of(const Pass& pass) {
  const bool first = pass.chunk == 0;
  if (pass.kind == PassKind::kF) return first ? kF0 : kF1;
  if (pass.kind == PassKind::kB) return first ? kB0 : kB1;
  return first ? kW0 : kW1;
}

// The blocks whose passes find slots. A plan asks for those of a few numbers of devices, often.
const std::vector<Block>& placed_blocks(int devices) {
  static std::mutex mutex;
  static std::map<int, std::vector<Block>> known;
  const std::scoped_lock lock(mutex);
  const auto [found, is_new] = known.try_emplace(devices);
  if (!is_new) return found->second;
  BlockBuilder builder(devices, 1);
  std::vector<Block> all = building_blocks(devices, kTurns);
  std::erase_if(all, [&builder](const Block& each) { return !builder.place(each); });
  return found->second = std::move(all);
}

}  // namespace

class BlockPlanner::Search {
 public:
  explicit Search(const Problem& problem);
  OrderWithin best(Bytes limit, const PlanTime& most);

 private:
  // A block, and what of it depends on no limit.
  struct Outline {
    Block block;
    double bytes = 0;    // most that a device keeps in the steady state
    int chunks = 0;      // likewise
    double period = -1;  // less than nothing: not known yet
  };
  // Which block, and how many chunks it may have in flight; with more microbatches than devices, as
  // many as it wants: its schedule does not follow from the limit then.
  struct BlockOrder {
    size_t outline = 0;
    int chunk_limit = 0;
    friend auto operator<=>(const BlockOrder&, const BlockOrder&) = default;
  };
  struct Candidate {
    size_t outline = 0;
    double bytes = 0;  // most that a device keeps: in the steady state, once built in truth
    double period = 0;
    PlanTime time;  // a guess, once built that of few microbatches and so many periods more
  };
  struct Built {
    bool fits_together = false;
    int chunks = 0;  // it comes about with no fewer
    double bytes = 0;
    PlanTime time;
  };
  // The best within one limit, whatever was found before.
  struct Level : KnownOrder {
    double peak = 0;

    // Takes lists of less time, or of as much where they hold less.
    void keep_better(const PlanTime& other, double its_peak, PassLists its_lists) {
      if (std::pair(other, its_peak) >= std::pair(time, peak)) return;
      time = other;
      peak = its_peak;
      lists = std::move(its_lists);
    }
  };

  void set_bytes();
  void add_outline(const Block& block);
  void set_limit(Bytes limit);
  [[nodiscard]] const Level& level(const std::vector<Candidate>& ranked);
  [[nodiscard]] std::vector<Candidate> rank_all();
  [[nodiscard]] std::vector<Candidate> build(const std::vector<Candidate>& ranked);
  [[nodiscard]] bool count(const Built& built, Candidate& candidate) const;
  [[nodiscard]] const Built& with_few(const BlockOrder& of) {
    return few_ ? built(built_few_, *few_, of) : with_all(of);
  }
  [[nodiscard]] const Built& with_all(const BlockOrder& of) {
    return built(built_whole_, builder_, of);
  }
  using AllBuilt = std::map<BlockOrder, Built>;
  [[nodiscard]] const Built& built(AllBuilt& all, BlockBuilder& builder, const BlockOrder& of);
  void finish(Candidate candidate);
  [[nodiscard]] PassLists lists_of(const BlockOrder& of);
  [[nodiscard]] BlockOrder order_of(const Candidate& candidate) const {
    return {candidate.outline, m_ <= p_ ? chunk_limit_ : 2 * p_};
  }
  [[nodiscard]] bool is_optimal(const PlanTime& least) const { return least.reaches(bound_); }
  [[nodiscard]] bool is_near(const PlanTime& least) const {
    return least.reaches(kNearEnough * bound_);
  }
  template <class Order>
  [[nodiscard]] double peak_bytes(Order order) const;  // by device
  [[nodiscard]] double bytes(int kind, int device) const {
    return bytes_[builder_.id(kind, device)];
  }

  Problem problem_;
  int p_, m_;
  BlockBuilder builder_;
  std::optional<BlockBuilder> few_;  // where fewer microbatches tell blocks apart
  VeeTimes times_;
  std::vector<double> bytes_;  // acquired by F, released by B and W; by kind and device
  double work_ = 0;            // of the device that has most
  PlanTime least_of_few_;      // no schedule of few microbatches takes less

  std::vector<Outline> outlines_;
  AllBuilt built_few_, built_whole_;
  std::map<double, Level> levels_;  // by limit

  // State within the current limit.
  double limit_ = 0;
  PlanTime bound_{0};  // no program within the limit takes less
  int chunk_limit_ = 0;
  PlanTime most_;  // what takes more is given up
  Level now_;
};

BlockPlanner::Search::Search(const Problem& problem)
    : problem_(in_ticks(problem)),
      p_(problem.shape.devices),
      m_(problem.shape.microbatches),
      builder_(p_, m_),
      times_(vee_times(problem)) {
  if (few_of(p_, m_) < m_) few_.emplace(p_, few_of(p_, m_));
  set_bytes();
  for (const Block& block : placed_blocks(p_)) add_outline(block);
}

void BlockPlanner::Search::set_bytes() {
  bytes_.assign(times_.pass.size(), 0);
  const Placement& place = problem_.placement;
  double way = 0;  // of the first F to a device
  PlanTimer timer(problem_.objective);
  for (int d = 0; d < p_; ++d) {
    double each = 0;
    for (const int chunk : {0, 1}) {
      const StageCost& cost = problem_.stage(place.virtual_stage(d, chunk));
      bytes_[builder_.id(chunk == 0 ? kF0 : kF1, d)] = cost.activation.value();
      bytes_[builder_.id(chunk == 0 ? kB0 : kB1, d)] =
          (cost.activation - cost.weight_stash).value();
      bytes_[builder_.id(chunk == 0 ? kW0 : kW1, d)] = cost.weight_stash.value();
      each += (cost.forward + cost.backward_input + cost.backward_weight).value();
    }
    work_ = std::max(work_, m_ * each);
    timer.add(way, way + few_of(p_, m_) * each);
    way += (problem_.stage(d).forward + problem_.stage(d).transfer).value();
  }
  least_of_few_ = timer.time();
}

// Where all chunks keep the same until their W, the limit is a number of chunks.
void BlockPlanner::Search::set_limit(Bytes limit) {
  limit_ = limit.value() * kRounding;
  bound_ = kAtBound * least_plan_time(problem_, limit);
  const Bytes one = problem_.stages.front().activation;
  const bool same = std::ranges::all_of(problem_.stages, [one](const StageCost& stage) {
    return stage.activation == one && stage.weight_stash == one;
  });
  chunk_limit_ = 2 * p_;
  if (same) chunk_limit_ = static_cast<int>(std::min(limit_ / one.value(), 2.0 * p_));
}

OrderWithin BlockPlanner::Search::best(Bytes limit, const PlanTime& most) {
  most_ = most;
  set_limit(limit);
  const std::vector<Candidate> ranked = rank_all();
  // Orders above `most` do not count, since an earlier call may have given them up or not. Nothing
  // is tried where the lower bound exceeds `most`.
  const auto known = [&] {
    if (bound_ > kAtBound * kAtBound * most) return Level{};
    const Level& found = level(ranked);
    return found.time > most ? Level{} : found;
  };
  Level best = known();
  for (const Bytes rung : rungs_below(problem_, limit, kRungs)) {
    set_limit(rung);
    if (is_near(best.time)) break;
    Level other = known();
    best.keep_better(other.time, other.peak, std::move(other.lists));
  }
  return {std::move(best.lists), best.time};
}

// Within the limit at hand.
const BlockPlanner::Search::Level& BlockPlanner::Search::level(
    const std::vector<Candidate>& ranked) {
  Level& known = levels_[limit_];
  if (known.answers(most_)) return known;
  now_ = {};
  for (const Candidate& candidate : build(ranked)) {
    if (is_optimal(now_.time)) break;
    finish(candidate);
  }
  if (now_.time <= most_) known = std::move(now_);
  known.given_up = most_;
  return known;
}

// Memory of the steady state.
void BlockPlanner::Search::add_outline(const Block& block) {
  builder_.place(block);
  Outline outline{.block = block, .chunks = builder_.steady_chunks()};
  const auto run_by = [this](int slot, int kind, int d) {
    return (slot - builder_.slot(kind, d) + 6 * kVeeKinds * p_) / kVeeKinds;
  };
  for (int d = 0; d < p_; ++d) {
    for (const int at : {builder_.slot(kF0, d), builder_.slot(kF1, d)}) {
      double held = 0;
      for (int kind = 0; kind < kVeeKinds; ++kind) {
        held += (kind <= kF1 ? 1 : -1) * run_by(at, kind, d) * bytes(kind, d);
      }
      outline.bytes = std::max(outline.bytes, held);
    }
  }
  outlines_.push_back(outline);
}

// By a first guess of the time: at equal times, a chunk in flight more saves its F, B and W.
std::vector<BlockPlanner::Search::Candidate> BlockPlanner::Search::rank_all() {
  std::vector<Candidate> ranked;
  for (size_t i = 0; i < outlines_.size(); ++i) {
    Outline& outline = outlines_[i];
    Candidate candidate{.outline = i, .bytes = outline.bytes, .time = {}};
    // From 2p microbatches on, a block reaches its steady state: what is above the limit goes last.
    if (m_ < 2 * p_ || outline.bytes <= limit_) {
      if (outline.period < 0) {
        builder_.place(outline.block);
        outline.period = builder_.period(times_, kRounds);
      }
      candidate.period = outline.period;
      candidate.time.time =
          m_ * candidate.period + work_ / m_ / 2 * std::max(0, 2 * p_ - outline.chunks);
    }
    ranked.push_back(candidate);
  }
  std::ranges::stable_sort(ranked, {}, &Candidate::time);
  return ranked;
}

// The best of the first that fit, at what they take.
std::vector<BlockPlanner::Search::Candidate> BlockPlanner::Search::build(
    const std::vector<Candidate>& ranked) {
  const int few = few_of(p_, m_);
  const int passes = kVeeKinds * p_ * std::max(few, 2 * p_);
  const int most = std::max(static_cast<int>(kFinished), kMostPasses / passes);
  const auto wanted = static_cast<size_t>(std::min(most, std::max(kBuilt, kBuiltPasses / passes)));
  std::vector<Candidate> built;
  size_t above = 0;  // tried that are above the limit in their steady state
  bool optimal = false;
  for (const bool within : {true, false}) {
    for (Candidate candidate : ranked) {
      if (std::isinf(candidate.time.time) || built.size() == wanted || optimal) break;
      if ((candidate.bytes <= limit_) != within) continue;
      // From 2p microbatches on, a block reaches its steady state.
      if (!within && (m_ >= 2 * p_ || above++ == wanted)) break;
      if (!count(with_few(order_of(candidate)), candidate)) continue;
      optimal = candidate.time.reaches(kRounding * least_of_few_);
      candidate.time.time += (m_ - few) * candidate.period;
      built.push_back(candidate);
    }
  }
  std::ranges::stable_sort(built, {}, [](const Candidate& candidate) {
    return std::pair(candidate.time, candidate.bytes);
  });
  if (built.size() > kFinished) built.resize(kFinished);
  return built;
}

// False where it does not keep the limit.
bool BlockPlanner::Search::count(const Built& built, Candidate& candidate) const {
  if (!built.fits_together || built.chunks > chunk_limit_ || built.bytes > limit_) return false;
  candidate.bytes = built.bytes;
  candidate.time = built.time;
  return true;
}

const BlockPlanner::Search::Built& BlockPlanner::Search::built(AllBuilt& all, BlockBuilder& builder,
                                                               const BlockOrder& of) {
  const auto [known, is_new] = all.try_emplace(of);
  Built& built = known->second;
  if (!is_new) return built;
  builder.place(outlines_[of.outline].block);
  if (!builder.build(of.chunk_limit)) return built;
  const auto time = builder.time(times_);
  built.fits_together = time.has_value();
  built.chunks = builder.needed();
  built.bytes = peak_bytes([&builder](int d) { return builder.order(d); });
  built.time = time.value_or(PlanTime{});
  return built;
}

// The block as it is built, and put into time once more: microbatches in order, and where that
// could do otherwise overtaking each other.
void BlockPlanner::Search::finish(Candidate candidate) {
  const BlockOrder of = order_of(candidate);
  if (!count(with_all(of), candidate)) return;
  const PassLists order = lists_of(of);
  now_.keep_better(candidate.time, candidate.bytes, order);
  for (const bool overtake : {false, true}) {
    WithinResult result = run_within(problem_, Bytes(limit_ / kRounding), order,
                                     {.overtake = overtake}, std::min(most_, now_.time));
    if (!result.lists.empty()) {
      const double peak = peak_bytes([&result](int d) { return std::span(result.lists[d]); });
      now_.keep_better(result.time, peak, std::move(result.lists));
    }
    if (!result.met_overtake) return;
  }
}

PassLists BlockPlanner::Search::lists_of(const BlockOrder& of) {
  builder_.place(outlines_[of.outline].block);
  builder_.build(of.chunk_limit);
  return builder_.lists();
}

template <class Order>
double BlockPlanner::Search::peak_bytes(Order order) const {
  double peak = 0;
  for (int d = 0; d < p_; ++d) {
    double held = 0;
    for (const auto& pass : order(d)) {
      const int kind = kind_of(pass);
      held += kind <= kF1 ? bytes(kind, d) : -bytes(kind, d);
      peak = std::max(peak, held);
    }
  }
  return peak;
}

BlockPlanner::BlockPlanner(const Problem& problem) : search_(std::make_unique<Search>(problem)) {}

BlockPlanner::~BlockPlanner() = default;

OrderWithin BlockPlanner::best(Bytes limit, const PlanTime& most) {
  return search_->best(limit, most);
}

}  // namespace pipesim
