#include "schedules/vee_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/planning/building_block.h"
#include "sim/planning/device_bound.h"
#include "sim/planning/memory_ladder.h"
#include "sim/planning/run_within.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

// What p microbatches keep fits into a limit of p times that, however the sum is rounded.
constexpr double kRounding = 1 + 1e-12;
// What is this near to what no program can be below counts as equal to it.
constexpr double kNear = 1 + 1e-9;
constexpr size_t kFinished = 4;   // of these, put into time once more
constexpr size_t kHeldBack = 12;  // blocks tried where none fits
constexpr int kRungs = 2;         // of the ladder, per 1F1B's memory
constexpr int kRounds = 16;       // microbatches that show the period of a block
constexpr int kFew = 3;           // times p: microbatches that show its ramps

// Seconds in whole picoseconds: the sums of unlike passes then tie exactly where the times as
// written do.
Problem in_ticks(Problem problem) {
  for (StageCost& stage : problem.stages) {
    for (Seconds* seconds :
         {&stage.forward, &stage.backward_input, &stage.backward_weight, &stage.transfer}) {
      *seconds = Seconds(std::round(seconds->value() * 1e12));
    }
  }
  return problem;
}

int few_of(int devices, int microbatches) {
  return microbatches < 2 * kFew * devices ? microbatches : kFew * devices;
}

class BlockSearch {
 public:
  // Blocks above the limit in their steady state are not looked at.
  BlockSearch(const Problem& problem, Bytes limit, const BlockEffort& effort);
  // Nothing where no block comes about.
  OrderWithin best(Bytes limit);

 private:
  struct Candidate {
    Block block;
    double bytes = 0;  // most that a device keeps: in the steady state, once built in truth
    double period = 0;
    double cost = 0;  // a guess, once built that of few microbatches and so many periods more
  };

  void set_times();
  void set_limit(Bytes limit);
  void try_all(const std::vector<Candidate>& ranked);
  [[nodiscard]] std::vector<Candidate> rank_all();
  void outline(Candidate& candidate);
  [[nodiscard]] std::vector<Candidate> build(const std::vector<Candidate>& ranked);
  bool build(BlockBuilder& builder, Candidate& candidate) const;
  bool finish(Candidate candidate);
  void hold_back(std::vector<Candidate> ranked);
  void retime(const PassLists& order, bool hold_back);
  void consider(double cost, PassLists lists);
  [[nodiscard]] bool is_optimal() const { return least_ <= bound_; }
  [[nodiscard]] bool is_near() const { return least_ <= kNearEnough * bound_; }
  [[nodiscard]] double peak_bytes(const BlockBuilder& builder) const;
  [[nodiscard]] double peak_bytes(const PassLists& lists) const;
  [[nodiscard]] PassLists lists_of(const BlockBuilder& builder) const;
  [[nodiscard]] double bytes(int kind, int device) const {
    return bytes_[builder_.id(kind, device)];
  }

  Problem problem_;
  BlockEffort effort_;
  int p_, m_;
  double limit_;
  double bound_ = 0;  // no program within the limit costs less
  int chunk_limit_ = 0;
  BlockBuilder builder_;
  BlockBuilder few_;  // with as many microbatches as tell blocks apart
  VeeTimes times_;
  std::vector<double> bytes_;  // acquired by F, released by B and W; by kind and device
  double work_ = 0;            // of the device that has most: no schedule costs less
  double least_ = std::numeric_limits<double>::infinity();
  double peak_ = 0;
  PassLists best_;
};

BlockSearch::BlockSearch(const Problem& problem, Bytes limit, const BlockEffort& effort)
    : problem_(in_ticks(problem)),
      effort_(effort),
      p_(problem.shape.devices),
      m_(problem.shape.microbatches),
      limit_(limit.value() * kRounding),
      builder_(p_, m_),
      few_(p_, few_of(p_, m_)) {
  set_times();
}

void BlockSearch::set_times() {
  const auto size = static_cast<size_t>(kVeeKinds * p_);
  times_ = {std::vector<double>(size, 0), std::vector<double>(size, 0)};
  bytes_.assign(size, 0);
  const Placement& place = problem_.placement;
  for (int d = 0; d < p_; ++d) {
    double work = 0;
    for (const int chunk : {0, 1}) {
      const int vs = place.virtual_stage(d, chunk);
      const StageCost& cost = problem_.stage(vs);
      const size_t f = builder_.id(chunk == 0 ? kF0 : kF1, d);
      const size_t b = builder_.id(chunk == 0 ? kB0 : kB1, d);
      const size_t w = builder_.id(chunk == 0 ? kW0 : kW1, d);
      times_.pass[f] = cost.forward.value();
      times_.pass[b] = cost.backward_input.value();
      times_.pass[w] = cost.backward_weight.value();
      if (place.upstream(vs) >= 0) {
        times_.message[f] = problem_.stage(place.upstream(vs)).transfer.value();
      }
      if (place.downstream(vs) >= 0) times_.message[b] = cost.transfer.value();
      bytes_[f] = cost.activation.value();
      bytes_[b] = (cost.activation - cost.weight_stash).value();
      bytes_[w] = cost.weight_stash.value();
      work += m_ * (times_.pass[f] + times_.pass[b] + times_.pass[w]);
    }
    work_ = std::max(work_, work);
  }
}

// Where all chunks keep the same until their W, the limit is a number of chunks.
void BlockSearch::set_limit(Bytes limit) {
  limit_ = limit.value() * kRounding;
  bound_ = kNear * bound_of_devices(problem_, limit).value();
  const Bytes one = problem_.stages.front().activation;
  const bool same = std::ranges::all_of(problem_.stages, [one](const StageCost& stage) {
    return stage.activation == one && stage.weight_stash == one;
  });
  chunk_limit_ = 2 * p_;
  if (same) chunk_limit_ = static_cast<int>(std::min(limit_ / one.value(), 2.0 * p_));
}

OrderWithin BlockSearch::best(Bytes limit) {
  const std::vector<Candidate> ranked = rank_all();
  set_limit(limit);
  try_all(ranked);
  for (const Bytes rung : rungs_below(problem_, limit, kRungs)) {
    set_limit(rung);
    if (is_near()) break;
    try_all(ranked);
  }
  return {std::move(best_), Seconds(1e-12 * least_)};
}

// Within the limit.
void BlockSearch::try_all(const std::vector<Candidate>& ranked) {
  if (is_optimal()) return;
  bool any = false;
  for (const Candidate& candidate : build(ranked)) {
    if (is_optimal()) return;
    any = finish(candidate) || any;
  }
  if (!any) hold_back(ranked);
}

std::vector<BlockSearch::Candidate> BlockSearch::rank_all() {
  std::vector<Candidate> ranked;
  for (const Block& block : building_blocks(p_, effort_.turns)) {
    if (!builder_.place(block)) continue;
    ranked.push_back({.block = block});
    outline(ranked.back());
  }
  std::ranges::stable_sort(ranked, {}, &Candidate::cost);
  return ranked;
}

// Memory of the steady state, and a first guess of the cost: at equal times, a chunk in flight more
// saves its F, B and W.
void BlockSearch::outline(Candidate& candidate) {
  const auto run_by = [this](int slot, int kind, int d) {
    return (slot - builder_.slot(kind, d) + 6 * kVeeKinds * p_) / kVeeKinds;
  };
  int chunks = 0;
  for (int d = 0; d < p_; ++d) {
    for (const int at : {builder_.slot(kF0, d), builder_.slot(kF1, d)}) {
      double held = 0;
      int in_flight = 0;
      for (int kind = 0; kind < kVeeKinds; ++kind) {
        const int count = run_by(at, kind, d);
        held += (kind <= kF1 ? count : -count) * bytes(kind, d);
        if (kind <= kF1) in_flight += count;
        if (kind >= kW1) in_flight -= count;
      }
      candidate.bytes = std::max(candidate.bytes, held);
      chunks = std::max(chunks, in_flight);
    }
  }
  // From 2p microbatches on, a block reaches its steady state: what is above the limit goes last.
  candidate.cost = std::numeric_limits<double>::infinity();
  if (m_ >= 2 * p_ && candidate.bytes > limit_) return;
  candidate.period = builder_.period(times_, kRounds);
  candidate.cost = m_ * candidate.period + work_ / m_ / 2 * std::max(0, 2 * p_ - chunks);
}

// The best of the first that fit, at what they cost.
std::vector<BlockSearch::Candidate> BlockSearch::build(const std::vector<Candidate>& ranked) {
  const int few = few_of(p_, m_);
  const int passes = kVeeKinds * p_ * std::max(few, 2 * p_);
  const int most = std::max(static_cast<int>(kFinished), effort_.most_passes / passes);
  const auto wanted =
      static_cast<size_t>(std::min(most, std::max(effort_.built, effort_.built_passes / passes)));
  std::vector<Candidate> built;
  size_t above = 0;  // tried that are above the limit in their steady state
  bool optimal = false;
  for (const bool within : {true, false}) {
    for (Candidate candidate : ranked) {
      if (std::isinf(candidate.cost) || built.size() == wanted || optimal) break;
      if ((candidate.bytes <= limit_) != within) continue;
      // From 2p microbatches on, a block reaches its steady state.
      if (!within && (m_ >= 2 * p_ || above++ == wanted)) break;
      if (!build(few_, candidate)) continue;
      optimal = candidate.cost <= work_ / m_ * few * kRounding;
      candidate.cost += (m_ - few) * candidate.period;
      built.push_back(candidate);
    }
  }
  std::ranges::stable_sort(built, {}, [](const Candidate& candidate) {
    return std::pair(candidate.cost, candidate.bytes);
  });
  if (built.size() > kFinished) built.resize(kFinished);
  return built;
}

bool BlockSearch::build(BlockBuilder& builder, Candidate& candidate) const {
  builder.place(candidate.block);
  if (!builder.build(chunk_limit_)) return false;
  candidate.bytes = peak_bytes(builder);
  if (candidate.bytes > limit_) return false;
  const auto cost = builder.cost(times_);
  candidate.cost = cost.value_or(0);
  return cost.has_value();
}

bool BlockSearch::finish(Candidate candidate) {
  if (!build(builder_, candidate)) return false;
  const PassLists order = lists_of(builder_);
  consider(candidate.cost, order);
  retime(order, false);
  return true;
}

// No block fits: those that keep least run with microbatches held back.
void BlockSearch::hold_back(std::vector<Candidate> ranked) {
  std::ranges::stable_sort(ranked, {}, &Candidate::bytes);
  size_t tried = 0;
  for (const Candidate& candidate : ranked) {
    builder_.place(candidate.block);
    if (!builder_.build(2 * p_) || !builder_.cost(times_)) continue;
    retime(lists_of(builder_), true);
    if (++tried == kHeldBack) break;
  }
}

void BlockSearch::retime(const PassLists& order, bool hold_back) {
  for (const double share : {1.0, 0.0}) {
    if (share < 1 && !hold_back) continue;
    for (const bool overtake : {false, true}) {
      const WithinRules rules{hold_back, share, overtake};
      WithinResult result = run_within(problem_, Bytes(limit_ / kRounding), order, rules);
      if (result.cost.value() <= least_) consider(result.cost.value(), std::move(result.lists));
    }
  }
}

void BlockSearch::consider(double cost, PassLists lists) {
  const double peak = peak_bytes(lists);
  if (cost > least_ || (cost == least_ && peak >= peak_)) return;
  least_ = cost;
  peak_ = peak;
  best_ = std::move(lists);
}

double BlockSearch::peak_bytes(const BlockBuilder& builder) const {
  double peak = 0;
  for (int d = 0; d < p_; ++d) {
    double held = 0;
    for (const int kind : builder.order(d)) {
      held += kind <= kF1 ? bytes(kind, d) : -bytes(kind, d);
      peak = std::max(peak, held);
    }
  }
  return peak;
}

int kind_of(const Pass& pass) {
  const bool first = pass.chunk == 0;
  if (pass.kind == PassKind::kF) return first ? kF0 : kF1;
  if (pass.kind == PassKind::kB) return first ? kB0 : kB1;
  return first ? kW0 : kW1;
}

double BlockSearch::peak_bytes(const PassLists& lists) const {
  double peak = 0;
  for (int d = 0; d < p_; ++d) {
    double held = 0;
    for (const Pass& pass : lists[d]) {
      const int kind = kind_of(pass);
      held += kind <= kF1 ? bytes(kind, d) : -bytes(kind, d);
      peak = std::max(peak, held);
    }
  }
  return peak;
}

PassLists BlockSearch::lists_of(const BlockBuilder& builder) const {
  constexpr std::array kKinds{PassKind::kF, PassKind::kF, PassKind::kB,
                              PassKind::kB, PassKind::kW, PassKind::kW};
  PassLists lists(p_);
  for (int d = 0; d < p_; ++d) {
    std::array<int, kVeeKinds> count{};
    auto& list = lists[d];
    list.reserve(builder.order(d).size());
    for (const size_t kind : builder.order(d)) {
      list.push_back(make_pass(kKinds[kind], count[kind]++, kVeeChunk[kind]));
    }
  }
  return lists;
}

}  // namespace

OrderWithin best_of_blocks(const Problem& problem, Bytes limit, const BlockEffort& effort) {
  return BlockSearch(problem, limit, effort).best(limit);
}

}  // namespace pipesim
