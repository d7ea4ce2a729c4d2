#include "sim/interop/passes/write.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/core/text.h"

namespace pipesim {
namespace {

struct Named {
  PassKind kind;
  const char* key;
};
constexpr std::array<Named, 4> kKinds{{{PassKind::kF, "forward"},
                                       {PassKind::kBW, "backward"},
                                       {PassKind::kB, "backward_input"},
                                       {PassKind::kW, "backward_weight"}}};

// Nothing of a run is known below a picosecond.
std::string in_milliseconds(double seconds) {
  return seconds < 1e-12 ? "0 ms" : fmt::format("{:.6g} ms", 1e3 * seconds);
}

std::string schedule_of(const RecordedRun& run) {
  return run.schedule.empty() ? "none of the registered ones" : run.schedule;
}

double percent(double value, double of) { return 100 * (value / of - 1); }

std::string rank_lines(const RecordedRun& run, const RunMeasures& measured) {
  const bool timed = run.recording.timed;
  std::string text = "rank  passes  missing  stalled";
  if (timed) text += "  clock ahead";
  if (!run.recording.memory.empty()) text += "  reserved";
  text += '\n';
  for (size_t rank = 0; rank < measured.ranks.size(); ++rank) {
    const RankSummary& summary = measured.ranks[rank];
    text += fmt::format("{:4}  {:6}  {:7}  {:7}", rank, summary.passes, summary.missing,
                        summary.stalled);
    if (timed) text += fmt::format("  {:8.3f} ms", 1e3 * summary.clock);
    if (!run.recording.memory.empty()) {
      text += fmt::format("  {:.1f} GiB", run.recording.memory[rank]);
    }
    text += '\n';
  }
  return text;
}

std::string stage_lines(const RunMeasures& measured) {
  std::string text = "stage  kind  mean         spread      launch      passes\n";
  for (size_t stage = 0; stage < measured.stages.size(); ++stage) {
    for (const Named& named : kKinds) {
      const MeasuredKind& kind = measured.stages[stage][named.kind];
      if (kind.count == 0) continue;
      text += fmt::format("{:5}  {:4}  {:<11}  {:<10}  {:<10}  {}\n", stage, to_text(named.kind),
                          in_milliseconds(kind.mean), human(Seconds(kind.spread)),
                          human(Seconds(kind.launch)), kind.count);
    }
  }
  return text;
}

std::string stall_lines(const RunMeasures& measured) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < std::min(kMost, measured.stalls.size()); ++i) {
    const Stall& stall = measured.stalls[i];
    text +=
        fmt::format("stalled: iteration {}, rank {}, {} of microbatch {}: {}, usually {}\n",
                    stall.iteration, stall.rank, to_text(stall.pass.kind), stall.pass.microbatch,
                    human(Seconds(stall.pass.seconds())), human(Seconds(stall.usual)));
  }
  if (measured.stalls.size() > kMost) {
    text += fmt::format("stalled: {} more\n", measured.stalls.size() - kMost);
  }
  return text;
}

std::string comparison_lines(const RunMeasures& measured) {
  if (!measured.simulated) return "";
  const double run = measured.median_seconds;
  const SimulatedRun& simulated = *measured.simulated;
  std::string text = fmt::format("the run        {:>10}  median; mean {}\n", human(Seconds(run)),
                                 human(Seconds(measured.mean_seconds)));
  const auto line = [&](const char* name, double seconds, const char* what) {
    text += fmt::format("{:<13}  {:>10}  {:+.2f}%  {}\n", name, human(Seconds(seconds)),
                        percent(seconds, run), what);
  };
  line("simulated", simulated.by_stage, "the same order, a mean for each stage and kind");
  line("  passes", simulated.passes, "of that, passes alone");
  line("  + messages", simulated.with_messages, "");
  line("  + launches", simulated.with_launches, "");
  line("  + edges", simulated.by_stage, "first forwards and last backwards");
  line("each pass", simulated.by_pass, "every pass by its own mean over the iterations");
  return text;
}

}  // namespace

std::string summary_of(const RecordedRun& run, const RunMeasures& measured) {
  const Shape& shape = run.program.shape();
  std::string text = fmt::format(
      "{}: {} ranks, {} {} each, {} microbatches; schedule: {}\n{} iterations: {} of warm-up left "
      "out, {} measured\n",
      run.recording.format, shape.devices, shape.chunks, shape.chunks == 1 ? "chunk" : "chunks",
      shape.microbatches, schedule_of(run), run.recording.iterations.size(), run.warm_up,
      run.iterations.size());
  for (const std::string& note : run.recording.notes) text += fmt::format("note: {}\n", note);
  if (!run.left_out.empty()) {
    text += fmt::format("left out, as their passes are not those of the others: iterations {}\n",
                        fmt::join(run.left_out, ", "));
  }
  text += '\n' + rank_lines(run, measured) + '\n' + stage_lines(measured);
  if (run.recording.timed) {
    text += fmt::format("\nmessage {}, opening {}, closing {}\n", human(Seconds(measured.message)),
                        human(Seconds(measured.opening)), human(Seconds(measured.closing)));
  }
  text += stall_lines(measured);
  const std::string compared = comparison_lines(measured);
  return compared.empty() ? text : text + '\n' + compared;
}

std::string passes_text(const RecordedRun& run, const RunMeasures& measured) {
  const Shape& shape = run.program.shape();
  const Placement& place = run.program.placement();
  std::string text = fmt::format(
      "schema: pipesim-passes/1\nrun:\n  format: '{}'\n  devices: {}\n  chunks: {}\n  "
      "microbatches: {}\n  iterations: {}\n",
      run.recording.format, shape.devices, shape.chunks, shape.microbatches, run.iterations.size());
  if (measured.median_seconds > 0) {
    text += fmt::format("  seconds: {}\n", in_milliseconds(measured.median_seconds));
  }
  text += "stages:  # in forward order\n";
  for (int stage = 0; stage < place.model_stages(); ++stage) {
    text += fmt::format("  - device: {}\n    chunk: {}\n", place.device(stage), place.chunk(stage));
    for (const Named& named : kKinds) {
      const MeasuredKind& kind = measured.stages[static_cast<size_t>(stage)][named.kind];
      if (kind.count == 0) continue;
      text += fmt::format("    {}: {{mean: {}, spread: {}, launch: {}, count: {}}}\n", named.key,
                          in_milliseconds(kind.mean), in_milliseconds(kind.spread),
                          in_milliseconds(kind.launch), kind.count);
    }
  }
  text += fmt::format("message: {}\nopening: {}\nclosing: {}\n", in_milliseconds(measured.message),
                      in_milliseconds(measured.opening), in_milliseconds(measured.closing));
  return text;
}

std::string scenario_of_run(const RecordedRun& run, const RunMeasures& measured,
                            const std::string& passes, const std::string& order) {
  const Shape& shape = run.program.shape();
  double squares = 0;
  int kinds = 0;
  bool whole = false;
  for (const auto& stage : measured.stages) {
    for (const Named& named : kKinds) {
      const MeasuredKind& kind = stage[named.kind];
      if (kind.count == 0) continue;
      squares += (kind.spread / kind.mean) * (kind.spread / kind.mean);
      ++kinds;
      whole = whole || named.kind == PassKind::kBW;
    }
  }
  std::string text = fmt::format(
      "# Passes of a run, as measured; any other schedule may stand here whose number of stages\n"
      "# divides {} or is a multiple of it.\nschedule: {}\n",
      measured.stages.size(),
      run.schedule.empty() ? fmt::format("{{csv: {}}}", order) : run.schedule);
  text += fmt::format("parallel: {{pipeline_model_parallel_size: {}{}}}\n", shape.devices,
                      shape.chunks > 1 && !run.schedule.empty()
                          ? fmt::format(", virtual_pipeline_model_parallel_size: {}", shape.chunks)
                          : "");
  text += fmt::format("batch: {{num_microbatches: {}}}\ncost:\n  kind: measured\n  passes: {}\n",
                      shape.microbatches, passes);
  if (whole) {
    text += "  weight_share: 0.5  # of a backward, which the run did as a whole: an assumption\n";
  }
  text += fmt::format("# perturb: {{jitter: {:.4f}, runs: 32}}  # the spread of its passes\n",
                      kinds > 0 ? std::sqrt(squares / kinds) : 0.0);
  return text;
}

}  // namespace pipesim
