#include "sim/interop/passes/measured_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "sim/execution/evaluate.h"
#include "sim/execution/walk.h"
#include "sim/interop/passes/clocks.h"

namespace pipesim {
namespace {

constexpr double kStalled = 1.5;        // times the median
constexpr double kLongestLaunch = 0.1;  // of the pass; a longer gap is a wait for something else
constexpr size_t kRareLaunches = 10;    // passes for each launch that is known
constexpr int kFewestForEdges = 4;      // microbatches, for first and last passes to stand apart

double mean_of(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

double spread_of(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

using Of = std::tuple<int, PassKind, int>;  // virtual stage, kind, microbatch

// The numbers of a run by what they are of.
class Measuring {
 public:
  explicit Measuring(const RecordedRun& run) : run_(run), place_(run.program.placement()) {
    measured_.stages.resize(static_cast<size_t>(place_.model_stages()));
    measured_.ranks.resize(static_cast<size_t>(run.recording.ranks));
  }

  RunMeasures result() {
    count_passes();
    find_edges();
    collect_seconds();
    if (run_.recording.timed) collect_times();
    fill_stages();
    if (run_.recording.timed) {
      fill_edges();
      simulate();
    }
    return std::move(measured_);
  }

 private:
  [[nodiscard]] int stage_of(size_t rank, const RecordedPass& pass) const {
    return place_.virtual_stage(static_cast<int>(rank), pass.chunk);
  }

  template <class Visit>
  void each_pass(Visit visit) const {
    for (const size_t i : run_.iterations) {
      const RecordedIteration& iteration = run_.recording.iterations[i];
      for (size_t rank = 0; rank < iteration.ranks.size(); ++rank) {
        for (const RecordedPass& pass : iteration.ranks[rank]) visit(iteration, rank, pass);
      }
    }
  }

  void count_passes() {
    for (size_t rank = 0; rank < measured_.ranks.size(); ++rank) {
      RankSummary& summary = measured_.ranks[rank];
      summary.passes = run_.program.passes(static_cast<int>(rank)).size();
      for (const RecordedIteration& iteration : run_.recording.iterations) {
        const size_t there = iteration.ranks[rank].size();
        if (there < summary.passes) summary.missing += summary.passes - there;
      }
    }
  }

  // The first forward and the last backward of every stage.
  void find_edges() {
    if (run_.program.shape().microbatches < kFewestForEdges) return;
    std::map<int, int> first, last;
    for (int device = 0; device < place_.devices(); ++device) {
      for (const Pass& pass : run_.program.passes(device)) {
        const int vs = place_.virtual_stage(device, pass.chunk);
        const auto microbatch = static_cast<int>(pass.microbatch);
        if (pass.kind == PassKind::kF) first.emplace(vs, microbatch);
        if (is_backward(pass.kind)) last[vs] = microbatch;
      }
    }
    for (const auto& [vs, microbatch] : first) edges_[{vs, PassKind::kF, microbatch}] = true;
    for (const auto& [vs, microbatch] : last) {
      edges_[{vs, PassKind::kB, microbatch}] = false;
      edges_[{vs, PassKind::kBW, microbatch}] = false;
    }
  }

  void collect_seconds() {
    std::map<std::pair<int, PassKind>, std::vector<double>> all;
    each_pass([&](const RecordedIteration& /*of*/, size_t rank, const RecordedPass& pass) {
      all[{stage_of(rank, pass), pass.kind}].push_back(pass.seconds());
    });
    std::map<std::pair<int, PassKind>, double> usual;
    for (auto& [of, values] : all) usual[of] = median_of(std::move(values));
    each_pass([&](const RecordedIteration& iteration, size_t rank, const RecordedPass& pass) {
      const int vs = stage_of(rank, pass);
      const double median = usual[{vs, pass.kind}];
      if (pass.seconds() > kStalled * median) {
        measured_.stalls.push_back({iteration.number, static_cast<int>(rank), pass, median});
        ++measured_.ranks[rank].stalled;
        return;
      }
      seconds_[{vs, pass.kind, pass.microbatch}].push_back(pass.seconds());
    });
  }

  void collect_times() {
    std::vector<double> totals, messages;
    std::vector<std::vector<double>> ahead(measured_.ranks.size());
    for (const size_t i : run_.iterations) {
      const RecordedIteration& iteration = run_.recording.iterations[i];
      const Clocks clocks = clocks_of(run_.program, iteration);
      messages.push_back(clocks.message);
      double first = std::numeric_limits<double>::infinity();
      double last = -first;
      for (size_t rank = 0; rank < iteration.ranks.size(); ++rank) {
        ahead[rank].push_back(clocks.ahead[rank]);
        for (const RecordedPass& pass : iteration.ranks[rank]) {
          first = std::min(first, pass.start - clocks.ahead[rank]);
          last = std::max(last, pass.end - clocks.ahead[rank]);
        }
      }
      totals.push_back(last - first);
      collect_launches(iteration, clocks);
    }
    measured_.message = median_of(std::move(messages));
    measured_.mean_seconds = mean_of(totals);
    measured_.median_seconds = median_of(std::move(totals));
    for (size_t rank = 0; rank < ahead.size(); ++rank) {
      measured_.ranks[rank].clock = median_of(std::move(ahead[rank]));
    }
  }

  // Gaps before passes whose message, if they wait for one, was there when the pass before ended.
  void collect_launches(const RecordedIteration& iteration, const Clocks& clocks) {
    std::map<const RecordedPass*, double> arrivals;
    each_message(run_.program, iteration,
                 [&](const RecordedPass& from, int sender, const RecordedPass& to, int receiver) {
                   arrivals[&to] = from.end - clocks.ahead[static_cast<size_t>(sender)] +
                                   clocks.ahead[static_cast<size_t>(receiver)] + clocks.message;
                 });
    for (size_t rank = 0; rank < iteration.ranks.size(); ++rank) {
      const auto& passes = iteration.ranks[rank];
      for (size_t i = 1; i < passes.size(); ++i) {
        const double gap = passes[i].start - passes[i - 1].end;
        const auto arrival = arrivals.find(&passes[i]);
        // A message's time as margin covers the error of the clocks.
        const bool waited =
            arrival != arrivals.end() && arrival->second + clocks.message > passes[i - 1].end;
        if (waited || gap < 0 || gap > kLongestLaunch * passes[i].seconds()) continue;
        launches_[{stage_of(rank, passes[i]), passes[i].kind}].push_back(gap);
      }
    }
  }

  void fill_stages() {
    std::map<std::pair<int, PassKind>, std::vector<double>> inner;
    std::map<std::pair<int, PassKind>, std::vector<double>> launches;
    for (const auto& [of, values] : seconds_) {
      const auto& [vs, kind, microbatch] = of;
      if (edges_.contains(of)) continue;
      auto& to = inner[{place_.model_stage(vs), kind}];
      to.insert(to.end(), values.begin(), values.end());
    }
    for (const auto& [of, values] : launches_) {
      auto& to = launches[{place_.model_stage(of.first), of.second}];
      to.insert(to.end(), values.begin(), values.end());
    }
    // A stage that nearly always waits has the launches of the others: where it did not, something
    // had stalled.
    std::map<PassKind, std::vector<double>> of_kind;
    for (const auto& [of, values] : launches) {
      auto& to = of_kind[of.second];
      to.insert(to.end(), values.begin(), values.end());
    }
    for (const auto& [of, values] : inner) {
      measured_.stages[static_cast<size_t>(of.first)][of.second] = {
          static_cast<int>(values.size()), mean_of(values), spread_of(values),
          median_of(kRareLaunches * launches[of].size() < values.size() ? of_kind[of.second]
                                                                        : launches[of])};
    }
  }

  [[nodiscard]] const MeasuredKind& of_stage(int vs, PassKind kind) const {
    return measured_.stages[static_cast<size_t>(place_.model_stage(vs))][kind];
  }

  // Seconds of first forwards and last backwards beyond the others of their stage.
  void fill_edges() {
    for (const auto& [of, opens] : edges_) {
      const auto values = seconds_.find(of);
      if (values == seconds_.end()) continue;
      const auto& [vs, kind, microbatch] = of;
      const double more = mean_of(values->second) - of_stage(vs, kind).mean;
      (opens ? measured_.opening : measured_.closing) += more / place_.directions();
    }
    measured_.opening = std::max(0.0, measured_.opening);
    measured_.closing = std::max(0.0, measured_.closing);
  }

  // A visitor of `walk` that times by the mean of each pass.
  struct ByPass {
    using Value = double;
    static constexpr double kNotYet = -1;
    static constexpr double kNothing = 0;
    const Measuring& of;
    std::vector<double> free;

    double run(int device, const Pass& pass, double input, double gradient) {
      const int vs = of.place_.virtual_stage(device, pass.chunk);
      const auto own = of.seconds_.find({vs, pass.kind, static_cast<int>(pass.microbatch)});
      const MeasuredKind& usual = of.of_stage(vs, pass.kind);
      double& now = free[static_cast<size_t>(device)];
      if (now > 0) now += usual.launch;
      now = std::max({now, input, gradient}) +
            (own == of.seconds_.end() ? usual.mean : mean_of(own->second));
      return now;
    }
    [[nodiscard]] double deliver(double end, PassKind /*kind*/, int from, int to,
                                 std::uint32_t /*unit*/) const {
      if (to < 0 || of.place_.device(from) == of.place_.device(to)) return end;
      return end + of.measured_.message;
    }
  };

  [[nodiscard]] double seconds_of(const MeasuredPasses& passes) const {
    Problem problem;
    problem.shape = run_.program.shape();
    problem.placement = place_;
    const auto stages = on_stages(passes, place_.model_stages());
    for (int vs = 0; vs < place_.virtual_stages(); ++vs) {
      StageCost stage;
      const auto& own = stages[static_cast<size_t>(place_.model_stage(vs))];
      fill(own, stage);
      if (const int next = place_.downstream(vs); next >= 0) {
        stage.transfer =
            message_between(passes, own, stages[static_cast<size_t>(place_.model_stage(next))]);
      }
      problem.stages.push_back(stage);
    }
    const Evaluation evaluation = evaluate(run_.program, problem);
    return (evaluation.makespan + passes.opening + passes.closing).value();
  }

  void simulate() {
    SimulatedRun simulated;
    MeasuredPasses passes = passes_of(run_, measured_);
    simulated.by_stage = seconds_of(passes);
    passes.opening = passes.closing = Seconds(0);
    simulated.with_launches = seconds_of(passes);
    for (StageOfRun& stage : passes.stages) {
      stage.launch_forward = stage.launch_backward = stage.launch_weight = Seconds(0);
    }
    simulated.with_messages = seconds_of(passes);
    passes.message = Seconds(0);
    simulated.passes = seconds_of(passes);
    ByPass visitor{*this, std::vector<double>(static_cast<size_t>(place_.devices()), 0)};
    walk(run_.program, visitor);
    simulated.by_pass = *std::ranges::max_element(visitor.free);
    measured_.simulated = simulated;
  }

  const RecordedRun& run_;
  const Placement& place_;
  RunMeasures measured_;
  std::map<Of, std::vector<double>> seconds_;  // without stalls
  std::map<Of, bool> edges_;                   // whether it opens the iteration, or closes it
  std::map<std::pair<int, PassKind>, std::vector<double>> launches_;
};

}  // namespace

RunMeasures measure(const RecordedRun& run) { return Measuring(run).result(); }

MeasuredPasses passes_of(const RecordedRun& run, const RunMeasures& measured) {
  MeasuredPasses passes{.file = run.recording.where.file,
                        .message = Seconds(measured.message),
                        .opening = Seconds(measured.opening),
                        .closing = Seconds(measured.closing)};
  for (const auto& kinds : measured.stages) {
    const MeasuredKind& whole = kinds[PassKind::kBW];
    const bool split = kinds[PassKind::kW].count > 0;
    const MeasuredKind& input = split ? kinds[PassKind::kB] : whole;
    StageOfRun stage;
    stage.forward = Seconds(kinds[PassKind::kF].mean);
    stage.launch_forward = Seconds(kinds[PassKind::kF].launch);
    stage.backward_input = Seconds(split ? input.mean : whole.mean / 2);
    stage.backward_weight = Seconds(split ? kinds[PassKind::kW].mean : whole.mean / 2);
    stage.launch_backward = Seconds(input.launch);
    stage.launch_weight = Seconds(kinds[PassKind::kW].launch);
    passes.stages.push_back(stage);
  }
  return passes;
}

}  // namespace pipesim
