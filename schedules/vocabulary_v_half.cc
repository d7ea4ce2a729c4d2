// V-Half with a sharded vocabulary (Vocabulary Parallelism, arXiv 2411.05288, section 6).
//
// Its block is stretched by one period, six slots, between F of the last stage and its B for each
// barrier, so that a device holds one microbatch more. The blocks are played in units of time,
// barriers included, and every vocabulary pass has its moment in that play, the same on all
// devices:
//   S(i)   a unit after F(i) of the last stage has ended, on device 0;
//   T(i)   with S(i+1), just before it; of the last microbatch four units after its S; interlaced
//          right after S(i);
//   IF(i)  with the last S before F(i) of the first stage, or first of all;
//   IB(i)  some S after B(i) of the first stage, as far behind as IF is ahead; or last of all.
// The inputs of a pass have an earlier moment on every device, so that any p and m can be executed.
// The ramps stay as the block has them: tightened as without a vocabulary they would need the
// memory that the barriers have taken. Nothing depends on the problem's times. O(passes + m log m).
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "schedules/vocabulary.h"

namespace pipesim {
namespace {

constexpr int kPeriod = 6;
constexpr long kUnit = 1000;  // of every pass
constexpr long kHop = 1;      // of a message or a collective
constexpr long kLast = std::numeric_limits<long>::max();
constexpr long kUnknown = -1;

// The passes of a microbatch on a device, in their order.
enum Type : std::uint8_t { kF0, kF1, kB1, kB0, kTypes };
constexpr std::array<PassKind, kTypes> kKinds{PassKind::kF, PassKind::kF, PassKind::kB,
                                              PassKind::kB};
constexpr std::array<int, kTypes> kChunks{0, 1, 1, 0};

class Play {
 public:
  Play(const Problem& problem, VeeBlock block);
  PassLists lists();

 private:
  struct Device {
    std::vector<Pass> passes;
    std::vector<std::uint8_t> types;  // of the passes; W: kTypes
    std::vector<long> starts;
    long clock = 0;
  };
  struct Moment {
    long time;
    int rank;  // at equal times
    Pass pass;
  };

  void fill(Device& device, const std::array<int, kTypes>& first) const;
  void play();
  bool step(int d);
  [[nodiscard]] std::optional<long> ready(int d, int type, int n) const;
  [[nodiscard]] long output(int n) const;           // S
  [[nodiscard]] long output_gradient(int n) const;  // T
  [[nodiscard]] long embedding(int n) const;        // IF
  [[nodiscard]] long embedding_gradient(int n) const;
  [[nodiscard]] std::vector<Moment> moments() const;

  [[nodiscard]] long end(int d, int type, int n) const { return end_(d * kTypes + type, n); }

  int p_;
  int m_;
  VocabularyPlacement vocabulary_;
  int ahead_;  // microbatches whose IF runs first of all
  std::vector<Device> devices_;
  Grid<long> end_;  // by device and type, and number
};

Play::Play(const Problem& problem, VeeBlock block)
    : p_(problem.shape.devices),
      m_(problem.shape.microbatches),
      vocabulary_(problem.vocabulary),
      ahead_(block(p_, 0)[kF1] / kPeriod + 2),
      devices_(p_),
      end_(p_ * kTypes, m_, kUnknown) {
  const int barriers = vocabulary_ == VocabularyPlacement::kVocab1 ? 2 : 1;
  for (int d = 0; d < p_; ++d) {
    std::array<int, kTypes> first = block(p_, d);
    first[kB1] += kPeriod * barriers;
    first[kB0] += kPeriod * barriers;
    fill(devices_[d], first);
  }
}

// The block for every microbatch; W runs in what is free, of chunk 1 first.
void Play::fill(Device& device, const std::array<int, kTypes>& first) const {
  std::array<int, kTypes> ran{};
  std::array<int, 2> weights{};  // of chunk 1 and 0
  for (int slot = 0; weights[0] + weights[1] < 2 * m_; ++slot) {
    int type = kTypes;
    for (int each = 0; each < kTypes; ++each) {
      const int since = slot - first[each];
      if (since >= 0 && since % kPeriod == 0 && since / kPeriod < m_) type = each;
    }
    if (type < kTypes) {
      device.passes.push_back(make_pass(kKinds[type], ran[type]++, kChunks[type]));
    } else if (weights[0] < ran[kB1]) {
      device.passes.push_back(make_pass(PassKind::kW, weights[0]++, 1));
    } else if (weights[1] < ran[kB0]) {
      device.passes.push_back(make_pass(PassKind::kW, weights[1]++, 0));
    } else {
      continue;
    }
    device.types.push_back(static_cast<std::uint8_t>(type));
  }
  device.starts.reserve(device.passes.size());
}

void Play::play() {
  for (bool moved = true; moved;) {
    moved = false;
    for (int d = 0; d < p_; ++d) {
      while (step(d)) moved = true;
    }
  }
}

bool Play::step(int d) {
  Device& device = devices_[d];
  const size_t at = device.starts.size();
  if (at == device.passes.size()) return false;
  const int type = device.types[at];
  const int n = static_cast<int>(device.passes[at].microbatch);
  long start = device.clock;
  if (type < kTypes) {
    const auto input = ready(d, type, n);
    if (!input) return false;
    start = std::max(start, *input);
  }
  device.starts.push_back(start);
  device.clock = start + kUnit;
  if (type < kTypes) end_(d * kTypes + type, n) = device.clock;
  return true;
}

// When what the pass waits for has come, if that is known.
std::optional<long> Play::ready(int d, int type, int n) const {
  const int from = type == kF0 || type == kB1 ? d - 1 : d + 1;
  if (from >= 0 && from < p_) {
    const long sent = end(from, type, n);
    return sent == kUnknown ? std::nullopt : std::optional(sent + kHop);
  }
  if (type == kF0) return n < ahead_ ? 0 : embedding(n) + kHop;
  if (type != kB1) return end(d, type - 1, n);  // the turn, and B0 after B1, on the device itself
  return (vocabulary_ == VocabularyPlacement::kVocab1 ? output_gradient(n) : output(n)) + kHop;
}

long Play::output(int n) const { return end(0, kF1, n) + kUnit; }

long Play::output_gradient(int n) const {
  if (vocabulary_ == VocabularyPlacement::kInterlaced) return output(n);
  return n + 1 < m_ ? output(n + 1) : output(n) + 4 * kUnit;
}

long Play::embedding(int n) const { return n < ahead_ ? 0 : output(n - ahead_); }

long Play::embedding_gradient(int n) const {
  const int with = n + ahead_ + 2;
  return with < m_ ? std::max(output(with), end(0, kB0, n)) : kLast;
}

// In the order in which every device runs them.
std::vector<Play::Moment> Play::moments() const {
  const bool together = vocabulary_ == VocabularyPlacement::kInterlaced;
  std::vector<Moment> list;
  for (int n = 0; n < m_; ++n) {
    list.push_back({embedding(n), n < ahead_ ? -1 : 1, make_pass(PassKind::kIF, n)});
    list.push_back({output_gradient(n), together ? 3 : 2, make_pass(PassKind::kT, n)});
    list.push_back({output(n), together ? 2 : 3, make_pass(PassKind::kS, n)});
    list.push_back({embedding_gradient(n), 4, make_pass(PassKind::kIB, n)});
  }
  std::ranges::stable_sort(list, [](const Moment& a, const Moment& b) {
    return a.time != b.time ? a.time < b.time : a.rank < b.rank;
  });
  return list;
}

PassLists Play::lists() {
  play();
  const std::vector<Moment> vocabulary = moments();
  PassLists lists;
  for (const Device& device : devices_) {
    auto& list = lists.emplace_back();
    list.reserve(device.passes.size() + vocabulary.size());
    size_t at = 0;
    for (const Moment& moment : vocabulary) {
      while (at < device.starts.size() && (device.starts[at] < moment.time ||
                                           (device.starts[at] == moment.time && moment.rank > 0))) {
        list.push_back(device.passes[at++]);
      }
      list.push_back(moment.pass);
    }
    for (; at < device.passes.size(); ++at) list.push_back(device.passes[at]);
  }
  return lists;
}

// The condition of all claims: passes of the block take one unit each, all else takes no time.
bool plays_in_units(const Problem& problem) {
  const StageCost& cost = problem.stage(0);
  return uniform(problem) && free_transfers(problem) && cost.forward == cost.backward_input &&
         cost.forward == cost.backward_weight && free_vocabulary(problem);
}

// Enough microbatches for a device to hold as many as it ever does.
bool fills(const Problem& problem) {
  return problem.shape.microbatches >= std::max(6, 2 * problem.shape.devices);
}

constexpr auto kDomain =
    "F = B = W, equal stages, free transfers and vocabulary; m >= 2p, and 6 at least";
constexpr auto kGap =
    "the block is made for F = B = W; with m = p, or 4 on two devices, it is never full";

// In passes; on one device there is none.
template <VocabularyPlacement placement>
int bubble_passes(int p) {
  if (p == 1) return 0;
  if (placement == VocabularyPlacement::kVocab1)
    return p % 2 == 0 ? 7 * p / 2 + 4 : (7 * p + 5) / 2;
  if (placement == VocabularyPlacement::kVocab2)
    return p % 2 == 0 ? 7 * p / 2 + 1 : (7 * p - 1) / 2;
  return p == 2 ? 9 : p % 2 == 0 ? 15 * p / 4 + 4 : (17 * p - 3) / 4;
}

template <VocabularyPlacement placement>
Seconds bubble(const Problem& problem) {
  return bubble_passes<placement>(problem.shape.devices) * problem.stage(0).forward;
}

template <int barriers>
int peak(const Problem& problem, int /*device*/) {
  return problem.shape.devices / 2 * 2 + 2 + 2 * barriers;
}

template <VocabularyPlacement placement, int barriers>
VocabularySupport support(std::string_view bubble_formula, std::string_view peak_formula) {
  return {
      placement,
      {.bubble = {bubble_formula, kDomain, kGap,
                  [](const Problem& problem) { return plays_in_units(problem) && fills(problem); },
                  bubble<placement>},
       .peak = {peak_formula, "m >= 2p, and 6 at least",
                "with m = p, or 4 on two devices, it is never full", fills, peak<barriers>}}};
}

}  // namespace

Program vocabulary_v_half(const Problem& problem, VeeBlock block) {
  return {problem.shape,      problem.placement, Play(problem, block).lists(), {},
          WrapAround::kEvery, problem.vocabulary};
}

std::vector<VocabularySupport> vocabulary_v_half_claims() {
  using enum VocabularyPlacement;
  return {support<kVocab1, 2>("7p/2+4 passes if p is even, (7p+5)/2 if odd",
                              "p+6 chunks if p is even, p+5 if odd"),
          support<kVocab2, 1>("7p/2+1 passes if p is even, (7p-1)/2 if odd",
                              "p+4 chunks if p is even, p+3 if odd"),
          support<kInterlaced, 1>(
              "floor(15p/4)+4 passes if p is even (9 if p = 2), floor((17p-3)/4) if odd",
              "p+4 chunks if p is even, p+3 if odd")};
}

}  // namespace pipesim
