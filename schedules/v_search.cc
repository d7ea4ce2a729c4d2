// Controllable memory's search for a V-shaped schedule (Qi et al., Pipeline Parallelism with
// Controllable Memory, arXiv 2405.15362, sections 3 and 4, appendix A), as the authors' public code
// makes it: of all building blocks (sim/planning/building_block.h) that keep the limit, the first
// whose schedule has the shortest span. `v-zb` sets the limit to what p microbatches keep, which is
// 1F1B's memory and leaves no bubble where all passes take equally long.
//
// The limit counts chunks, of which B frees nothing: 2p at most, and as many as fit where each
// keeps what the largest does. Where a block needs more than the limit, those are left out that
// change their step at later devices only, as the public code leaves them out. Limits below the
// least that a block needs are refused. O(blocks x p m); there are up to 60 p blocks.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <memory>
#include <vector>

#include "schedules/order_within.h"
#include "sim/core/error.h"
#include "sim/planning/building_block.h"
#include "sim/planning/memory_ladder.h"
#include "sim/planning/planners.h"
#include "sim/planning/room.h"
#include "sim/planning/schedule.h"

namespace pipesim::v_search {
namespace {

// The least number of chunks that a block's schedule needs: V-Min's peak, or what all microbatches
// keep. By experiment: up to 10 devices and any number of microbatches.
int least_chunks(const Shape& shape) {
  const int p = shape.devices;
  const int all = 2 * shape.microbatches;
  const int v_min = 2 * ((p + 4) / 3);
  return all == v_min && p % 3 == 2 ? v_min - 1 : std::min(all, v_min);
}

int chunks_of_1f1b(const Problem& problem) { return 2 * problem.shape.devices; }

int chunks_within(const Problem& problem, Bytes limit) {
  const double fit = kRounding * (limit / largest_chunk(problem));
  return static_cast<int>(std::min<double>(fit, chunks_of_1f1b(problem)));
}

int chunks_given(const Problem& problem) {
  if (!problem.activation_limit) return chunks_of_1f1b(problem);
  return chunks_within(problem, *problem.activation_limit);
}

class VSearch : public LimitPlanner {
 public:
  explicit VSearch(const Problem& problem)
      : shape_(problem.shape),
        problem_(problem),
        times_(vee_times(problem)),
        blocks_(building_blocks(shape_.devices, shape_.devices)),
        builder_(shape_.devices, shape_.microbatches) {
    times_.objective = problem_.objective = Objective::kCost;
  }

  Program plan(Bytes limit) override { return plan(chunks_within(problem_, limit)); }

  Program plan(int chunks) {
    // With no more microbatches than devices, whether all of them fit decides what a block comes
    // to.
    auto& known = built_[shape_.microbatches <= shape_.devices && 2 * shape_.microbatches > chunks];
    known.resize(blocks_.size());
    const Bytes limit = chunks * largest_chunk(problem_);
    const PlanTime least = optimal_time(problem_, limit);
    size_t best = blocks_.size();
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (best < blocks_.size() && known[best].time.reaches(least)) break;
      if (!known[i].is_done) build(known[i], blocks_[i], chunks);
      if (known[i].needed > chunks) {
        const size_t same = i;
        while (i + 1 < blocks_.size() && changes_later(blocks_[same], blocks_[i + 1])) ++i;
      } else if (best == blocks_.size() || known[i].time < known[best].time) {
        best = i;
      }
    }
    if (best == blocks_.size()) {
      throw InfeasibleError(fmt::format(
          "v-search: no building block keeps within {} chunks; {{name: best, placement: vee}} "
          "plans within any limit",
          chunks));
    }
    builder_.place(blocks_[best]);
    builder_.build(chunks);
    return {shape_, problem_.placement, builder_.lists()};
  }

 private:
  struct Built {
    bool is_done = false;  // or else needs more chunks than were asked for so far
    int needed = 0;
    PlanTime time = {};  // infinite where passes collide or the order does not fit together
  };

  void build(Built& built, const Block& block, int chunks) {
    if (built.needed > chunks) return;
    built.is_done = true;
    if (!builder_.place(block)) return;
    const bool fits_together = builder_.build(chunks);
    built.needed = builder_.needed();
    built.is_done = built.needed <= chunks;
    if (fits_together) built.time = builder_.time(times_).value_or(PlanTime{});
  }

  static bool changes_later(const Block& block, const Block& other) {
    return other.first == block.first && other.step == block.step &&
           other.last_step == block.last_step;
  }

  Shape shape_;
  Problem problem_;
  VeeTimes times_;
  std::vector<Block> blocks_;
  BlockBuilder builder_;
  std::array<std::vector<Built>, 2> built_;  // by whether microbatches are more than fit
};

std::optional<Refusal> refuse(const Problem& problem) {
  if (!problem.activation_limit) return std::nullopt;
  const int least = least_chunks(problem.shape);
  const int fit = chunks_given(problem);
  if (fit >= least) return std::nullopt;
  return Refusal{fmt::format("v-search needs a memory_limit of at least {:.4g} times what p "
                             "microbatches keep, not {:.4g}: {} chunks fit, and no building block "
                             "takes less than {}; {{name: best, placement: vee}} plans within any "
                             "limit",
                             1.0 * least / chunks_of_1f1b(problem),
                             *problem.activation_limit / memory_of_1f1b(problem), fit, least),
                 problem.shape};
}

bool is_exact(const Problem& problem, int chunks) {
  const StageCost& cost = problem.stage(0);
  return uniform(problem) && free_transfers(problem) && b_frees_nothing(problem) &&
         cost.forward == cost.backward_input && cost.forward == cost.backward_weight &&
         problem.shape.microbatches >= 2 * problem.shape.devices &&
         chunks == chunks_of_1f1b(problem);
}

Placement vee(int devices, int /*chunks*/) { return Placement::vee(devices); }

// The two records differ in nothing but their limit.
template <int (*chunks)(const Problem&)>
struct Within {
  static Program plan(const Problem& problem) { return VSearch(problem).plan(chunks(problem)); }
  static bool holds(const Problem& problem) { return is_exact(problem, chunks(problem)); }
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
            .order =
                "V-shape, two chunks; of all building blocks, repeated and tightened, the one "
                "of the shortest span",
            .default_chunks = 2,
            .min_chunks = 2,
            .max_chunks = 2,
            .place = vee,
            .plan = plan,
            .claims = {.bubble = {"0", domain, gap, holds, no_bubble},
                       .peak = {"2p chunks", domain, gap, holds, in_flight}},
            .nearest_with_flags = "zb-v",
            .left_out_of_plan = "its plan takes about a second",
            .left_out_of_search = "best plans within the same limit"};
  }
};

const RegisteredSchedule kVZb{Within<chunks_of_1f1b>::record(
    "v-zb", "V-shape without a bubble at equal times, within 1F1B's memory",
    "Controllable Memory, arXiv 2405.15362, sections 3 and 4")};

Schedule v_search() {
  Schedule record = Within<chunks_given>::record(
      "v-search", "the best V-shaped building block within memory_limit; without one as v-zb",
      "Controllable Memory, arXiv 2405.15362, section 4 and appendix A");
  record.memory_limit = true;
  record.refuse = refuse;
  record.planner = [](const Problem& problem, OrderSource* /*source*/) {
    return std::make_unique<VSearch>(problem);
  };
  return record;
}

const RegisteredSchedule kVSearch{v_search()};

}  // namespace
}  // namespace pipesim::v_search
