// 1F1B with a sharded vocabulary (Vocabulary Parallelism, arXiv 2411.05288, section 5).
//
// vocab-1 and vocab-2: T of a microbatch and S of the next stand together, a step, once per round
// of one forward and one backward. Where in its round a device has it follows from the last device
// upwards: the steps of a microbatch lie as close together in time as the rounds of the devices,
// which are shifted by one F each, allow. A device runs one more microbatch ahead for each barrier.
// interlaced: S and T of a microbatch run at once on all devices, which then are half as many
// microbatches again ahead.
#include <algorithm>
#include <vector>

#include "schedules/vocabulary.h"

namespace pipesim {
namespace {

// The list of one device under construction: microbatches of a kind come in order, those from
// `kept` on are counted but left out.
class List {
 public:
  List(int microbatches, int kept) : microbatches_(microbatches), kept_(kept) {}

  // The next microbatch of the kind, if one is left.
  void add(PassKind kind) {
    int& next = next_[kind];
    if (next == microbatches_) return;
    if (next < kept_) passes_.push_back(make_pass(kind, next));
    ++next;
  }
  void add(PassKind kind, int times) {
    for (int i = 0; i < times; ++i) add(kind);
  }
  [[nodiscard]] int ran(PassKind kind) const { return next_[kind]; }
  [[nodiscard]] bool left(PassKind kind) const { return ran(kind) < microbatches_; }

  // The backwards still to run, an IB after each, and every IB then left.
  void drain() {
    while (left(PassKind::kBW)) {
      add(PassKind::kBW);
      add(PassKind::kIB);
    }
    add(PassKind::kIB, microbatches_);
  }
  std::vector<Pass> take() && { return std::move(passes_); }

 private:
  int microbatches_;
  int kept_;
  EnumArray<PassKind, int> next_{};
  std::vector<Pass> passes_;
};

// Where the step of a round stands, and how many steps a device has before its first backward.
struct StepPlace {
  bool before_forward = true;  // B, step, F; else B, F, step
  int ahead = 0;
};

std::vector<StepPlace> step_places(const Problem& problem) {
  Seconds forward, backward;
  for (const StageCost& cost : problem.stages) {
    forward += cost.forward;
    backward += cost.backward_input + cost.backward_weight;
  }
  const int p = problem.shape.devices;
  std::vector<StepPlace> places(p);
  Seconds offset;  // of a device's round against the steps of the last device
  for (size_t d = places.size() - 1; d-- > 0;) {
    const StepPlace& below = places[d + 1];
    places[d].ahead = below.ahead + 1;
    if (!below.before_forward) {
      offset += backward - forward;
      --places[d].ahead;
    } else if (forward - offset > backward) {
      places[d].before_forward = false;
    } else {
      offset -= forward;
    }
  }
  return places;
}

class Rounds {
 public:
  explicit Rounds(const Problem& problem)
      : p_(problem.shape.devices),
        m_(problem.shape.microbatches),
        two_barriers_(problem.vocabulary == VocabularyPlacement::kVocab1),
        places_(step_places(problem)),
        planned_(std::max(m_, p_ + 1 + (two_barriers_ ? 1 : 0))) {}

  std::vector<Pass> device(int d) {
    const StepPlace& place = places_[d];
    List list(planned_, m_);
    list.add(PassKind::kIF, d + 1);
    for (int i = d; i < p_; ++i) {
      list.add(PassKind::kIF);
      list.add(PassKind::kF);
    }
    list.add(PassKind::kS);
    if (two_barriers_) list.add(PassKind::kIF);
    list.add(PassKind::kF);
    if (two_barriers_) {
      list.add(PassKind::kT);
      list.add(PassKind::kS);
      list.add(PassKind::kF);
    }
    for (int i = 0; i < place.ahead; ++i) step(list);
    while (list.left(PassKind::kF)) {
      list.add(PassKind::kBW);
      if (place.before_forward) step(list);
      list.add(PassKind::kF);
      if (!place.before_forward) step(list);
    }
    // With two barriers the last T has a step of its own.
    while (list.left(PassKind::kBW) &&
           (list.left(PassKind::kS) || (two_barriers_ && list.left(PassKind::kT)))) {
      list.add(PassKind::kBW);
      step(list);
    }
    list.drain();
    list.add(PassKind::kT, planned_);
    return std::move(list).take();
  }

 private:
  // T and the S of the next microbatch; IF and IB once device 0 has come to its first backward.
  void step(List& list) const {
    const int behind = list.ran(PassKind::kT) + 1 - places_.front().ahead - (two_barriers_ ? 1 : 0);
    list.add(PassKind::kT);
    list.add(PassKind::kS);
    if (behind >= 0) list.add(PassKind::kIF);
    if (behind >= 2) list.add(PassKind::kIB);
  }

  int p_;
  int m_;
  bool two_barriers_;
  std::vector<StepPlace> places_;
  int planned_;
};

std::vector<Pass> interlaced(const Shape& shape, int device) {
  const int p = shape.devices;
  const int planned = std::max(shape.microbatches, 3 * p / 2 + 1);
  const int below = p - 1 - device;
  List list(planned, shape.microbatches);
  list.add(PassKind::kIF, device + 1);
  for (int i = device; i < 3 * p / 2; ++i) {
    list.add(PassKind::kIF);
    list.add(PassKind::kF);
  }
  for (int step = 0; step < planned; ++step) {
    list.add(PassKind::kS);
    list.add(PassKind::kT);
    if (step >= p - 1) list.add(PassKind::kIF);
    if (step >= p + 1) list.add(PassKind::kIB);
    // The last device has the next forward just in time, every second one above a round earlier.
    const bool forward = step + 1 + below / 2 >= list.ran(PassKind::kF);
    if (forward && below % 2 == 1) list.add(PassKind::kF);
    if (step >= below) list.add(PassKind::kBW);
    if (forward && below % 2 == 0) list.add(PassKind::kF);
  }
  list.add(PassKind::kIB);
  list.drain();
  return std::move(list).take();
}

template <int ahead>
constexpr PeakClaim kPeak{.formula = ahead == 1 ? "min(p-d+1, m)" : "min(p-d+2, m)",
                          .domain = "everywhere",
                          .holds = [](const Problem&) { return true; },
                          .in_flight =
                              [](const Problem& problem, int device) {
                                return std::min(problem.shape.devices - device + ahead,
                                                problem.shape.microbatches);
                              }};

// Two barriers hide behind the forwards of a device's first rounds only while those last.
template <int most>
bool bubble_holds(const Problem& problem) {
  const StageCost& cost = problem.stage(0);
  const Seconds backward = cost.backward_input + cost.backward_weight;
  return uniform(problem) && free_transfers(problem) && free_vocabulary(problem) &&
         cost.forward <= backward && (most == 0 || backward <= most * cost.forward);
}

Seconds bubble(const Problem& problem) {
  const StageCost& cost = problem.stage(0);
  return (problem.shape.devices - 1) * (cost.forward + cost.backward_input + cost.backward_weight);
}

constexpr auto kDomain =
    "every m; equal stages with F <= B+W, free transfers and collectives, vocabulary "
    "passes that take no time (else they lengthen the ramps: evaluate)";
constexpr BubbleClaim kBubble{
    .formula = "(p-1) (F+B+W)", .domain = kDomain, .holds = bubble_holds<0>, .bubble = bubble};
constexpr BubbleClaim kBubbleOfTwoBarriers{
    .formula = "(p-1) (F+B+W)",
    .domain =
        "every m; equal stages with F <= B+W <= 4F, free transfers and collectives, "
        "vocabulary passes that take no time (else they lengthen the ramps: evaluate)",
    .holds = bubble_holds<4>,
    .bubble = bubble};

}  // namespace

bool free_vocabulary(const Problem& problem) {
  return std::ranges::all_of(problem.barriers, [](Seconds each) { return each == Seconds(0); }) &&
         std::ranges::all_of(problem.vocabulary_costs, [](const VocabularyCost& cost) {
           return cost.output_forward + cost.output_backward + cost.input_forward +
                      cost.input_backward ==
                  Seconds(0);
         });
}

Program vocabulary_1f1b(const Problem& problem) {
  PassLists lists;
  if (problem.vocabulary == VocabularyPlacement::kInterlaced) {
    for (int d = 0; d < problem.shape.devices; ++d) lists.push_back(interlaced(problem.shape, d));
  } else {
    Rounds rounds(problem);
    for (int d = 0; d < problem.shape.devices; ++d) lists.push_back(rounds.device(d));
  }
  return {problem.shape,      problem.placement, std::move(lists), {},
          WrapAround::kEvery, problem.vocabulary};
}

std::vector<VocabularySupport> vocabulary_1f1b_claims() {
  constexpr PeakClaim kInterlacedPeak{.formula = "min(floor(3p/2)-d, m)",
                                      .domain = "everywhere",
                                      .holds = [](const Problem&) { return true; },
                                      .in_flight =
                                          [](const Problem& problem, int device) {
                                            return std::min(3 * problem.shape.devices / 2 - device,
                                                            problem.shape.microbatches);
                                          }};
  return {{VocabularyPlacement::kVocab1, {kBubbleOfTwoBarriers, kPeak<2>}},
          {VocabularyPlacement::kVocab2, {kBubble, kPeak<1>}},
          {VocabularyPlacement::kInterlaced, {kBubble, kInterlacedPeak}}};
}

}  // namespace pipesim
