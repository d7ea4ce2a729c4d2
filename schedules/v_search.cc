// Controllable memory's search for a V-shaped schedule (Qi et al., Pipeline Parallelism with
// Controllable Memory, arXiv 2405.15362, sections 3 and 4, appendix A): of the schedules that
// repeat a building block (sim/planning/building_block.h), the one that costs least within a limit
// on activation memory. `v-zb` sets the limit to what p microbatches keep, which is 1F1B's memory
// and leaves no bubble where all passes take equally long.
//
// The search of the paper builds every block's schedule. Ours first ranks all blocks by the period
// of their steady state under the true times and by their memory, and builds the most promising
// with few microbatches. It counts bytes as they are, and goes on where the paper's ends: the best
// are put into time once more, each W where its device waits (run_within), and where no block fits,
// those that keep least run with microbatches held back. So for the limit and for every rung of
// whole and half times 1F1B's memory below it; V-Half, V-Min, 1F1B-V and the hand-made ZB-V count
// as they are where they fit. The cost is at most 2% above theirs, and above its own at a rung
// below. O(blocks x p + rungs x (built x p^2 + finished x p m)); there are about 60 p blocks.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "schedules/order_within.h"
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
constexpr int kBuilt = 96;            // blocks built, or more
constexpr int kBuiltPasses = 60'000;  // while they have few passes
constexpr size_t kFinished = 4;       // of these, put into time once more
constexpr size_t kHeldBack = 12;      // blocks tried where none fits
constexpr int kRungs = 2;             // of the ladder, per 1F1B's memory
constexpr int kRounds = 16;           // microbatches that show the period of a block
constexpr int kFew = 3;               // times p: microbatches that show its ramps

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

class Search {
 public:
  // Blocks above the limit in their steady state are not looked at.
  Search(const Problem& problem, Bytes limit);
  Program best(Bytes limit);

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

Search::Search(const Problem& problem, Bytes limit)
    : problem_(in_ticks(problem)),
      p_(problem.shape.devices),
      m_(problem.shape.microbatches),
      limit_(limit.value() * kRounding),
      builder_(p_, m_),
      few_(p_, few_of(p_, m_)) {
  set_times();
}

void Search::set_times() {
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
void Search::set_limit(Bytes limit) {
  limit_ = limit.value() * kRounding;
  bound_ = kNear * bound_of_devices(problem_, limit).value();
  const Bytes one = problem_.stages.front().activation;
  const bool same = std::ranges::all_of(problem_.stages, [one](const StageCost& stage) {
    return stage.activation == one && stage.weight_stash == one;
  });
  chunk_limit_ = 2 * p_;
  if (same) chunk_limit_ = static_cast<int>(std::min(limit_ / one.value(), 2.0 * p_));
}

Program Search::best(Bytes limit) {
  const std::vector<Candidate> ranked = rank_all();
  set_limit(limit);
  try_all(ranked);
  for (const char* made : {"zb-v-handmade", "v-half", "v-min", "1f1b-v"}) {
    if (is_near()) break;
    auto order = order_within(made, problem_, limit);
    if (order) consider(order->cost.value(), std::move(order->lists));
  }
  for (const Bytes rung : rungs_below(problem_, limit, kRungs)) {
    set_limit(rung);
    if (is_near()) break;
    try_all(ranked);
  }
  return {problem_.shape, problem_.placement, std::move(best_)};
}

// Within the limit.
void Search::try_all(const std::vector<Candidate>& ranked) {
  if (is_optimal()) return;
  bool any = false;
  for (const Candidate& candidate : build(ranked)) {
    if (is_optimal()) return;
    any = finish(candidate) || any;
  }
  if (!any) hold_back(ranked);
}

std::vector<Search::Candidate> Search::rank_all() {
  std::vector<Candidate> ranked;
  for (const Block& block : building_blocks(p_)) {
    if (!builder_.place(block)) continue;
    ranked.push_back({.block = block});
    outline(ranked.back());
  }
  std::ranges::stable_sort(ranked, {}, &Candidate::cost);
  return ranked;
}

// Memory of the steady state, and a first guess of the cost: at equal times, a chunk in flight more
// saves its F, B and W.
void Search::outline(Candidate& candidate) {
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
std::vector<Search::Candidate> Search::build(const std::vector<Candidate>& ranked) {
  const int few = few_of(p_, m_);
  const int passes = kVeeKinds * p_ * std::max(few, 2 * p_);
  const auto wanted = static_cast<size_t>(std::max(kBuilt, kBuiltPasses / passes));
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

bool Search::build(BlockBuilder& builder, Candidate& candidate) const {
  builder.place(candidate.block);
  if (!builder.build(chunk_limit_)) return false;
  candidate.bytes = peak_bytes(builder);
  if (candidate.bytes > limit_) return false;
  const auto cost = builder.cost(times_);
  candidate.cost = cost.value_or(0);
  return cost.has_value();
}

bool Search::finish(Candidate candidate) {
  if (!build(builder_, candidate)) return false;
  const PassLists order = lists_of(builder_);
  consider(candidate.cost, order);
  retime(order, false);
  return true;
}

// No block fits: those that keep least run with microbatches held back.
void Search::hold_back(std::vector<Candidate> ranked) {
  std::ranges::stable_sort(ranked, {}, &Candidate::bytes);
  size_t tried = 0;
  for (const Candidate& candidate : ranked) {
    builder_.place(candidate.block);
    if (!builder_.build(2 * p_) || !builder_.cost(times_)) continue;
    retime(lists_of(builder_), true);
    if (++tried == kHeldBack) break;
  }
}

void Search::retime(const PassLists& order, bool hold_back) {
  for (const double share : {1.0, 0.0}) {
    if (share < 1 && !hold_back) continue;
    for (const bool overtake : {false, true}) {
      const WithinRules rules{hold_back, share, overtake};
      WithinResult result = run_within(problem_, Bytes(limit_ / kRounding), order, rules);
      if (result.cost.value() <= least_) consider(result.cost.value(), std::move(result.lists));
    }
  }
}

void Search::consider(double cost, PassLists lists) {
  const double peak = peak_bytes(lists);
  if (cost > least_ || (cost == least_ && peak >= peak_)) return;
  least_ = cost;
  peak_ = peak;
  best_ = std::move(lists);
}

double Search::peak_bytes(const BlockBuilder& builder) const {
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

double Search::peak_bytes(const PassLists& lists) const {
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

PassLists Search::lists_of(const BlockBuilder& builder) const {
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

Bytes limit_1p(const Problem& problem) {
  return problem.shape.devices * problem.device_activation();
}
Bytes limit_given(const Problem& problem) {
  return problem.activation_limit.value_or(limit_1p(problem));
}

bool is_exact(const Problem& problem, Bytes limit) {
  const StageCost& cost = problem.stage(0);
  return uniform(problem) && free_transfers(problem) && b_frees_nothing(problem) &&
         cost.forward == cost.backward_input && cost.forward == cost.backward_weight &&
         problem.shape.microbatches >= 2 * problem.shape.devices && limit >= limit_1p(problem);
}

Placement vee(int devices, int /*chunks*/) { return Placement::vee(devices); }

// The two records differ in nothing but their limit.
template <Bytes (*limit_of)(const Problem&)>
struct Within {
  static Program plan(const Problem& problem) {
    const Bytes limit = limit_of(problem);
    return Search(problem, limit).best(limit);
  }
  static bool holds(const Problem& problem) { return is_exact(problem, limit_of(problem)); }
  static Seconds no_bubble(const Problem& /*problem*/) { return Seconds(0); }
  static int in_flight(const Problem& problem, int /*device*/) { return 2 * problem.shape.devices; }

  static Schedule record(std::string name, std::string summary, std::string source) {
    const std::string_view domain =
        "F = B = W, equal stages, free transfers, B frees nothing, m >= 2p, limit >= p "
        "microbatches";
    const std::string_view gap =
        "no closed form is known where passes differ, memory is short or m < 2p";
    return {.name = std::move(name),
            .summary = std::move(summary),
            .source = std::move(source),
            .order = "V-shape, two chunks; the best schedule that repeats a building block",
            .default_chunks = 2,
            .min_chunks = 2,
            .max_chunks = 2,
            .place = vee,
            .plan = plan,
            .claims = {.bubble = {"0", domain, gap, holds, no_bubble},
                       .peak = {"2p chunks", domain, gap, holds, in_flight}},
            .nearest_with_flags = "zb-v",
            .left_out_of_plan = "its plan takes about a second"};
  }
};

const RegisteredSchedule kVZb{Within<limit_1p>::record(
    "v-zb", "V-shape without a bubble at equal times, within 1F1B's memory",
    "Controllable Memory, arXiv 2405.15362, sections 3 and 4")};

Schedule v_search() {
  Schedule record = Within<limit_given>::record(
      "v-search", "the best V-shaped building block within memory_limit; without one as v-zb",
      "Controllable Memory, arXiv 2405.15362, section 4 and appendix A");
  record.memory_limit = true;
  return record;
}

const RegisteredSchedule kVSearch{v_search()};

}  // namespace
}  // namespace pipesim
