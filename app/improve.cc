// pipesim improve: anyone's order refined; pipesim prove: how far from the best it is.
#include "sim/search/improve.h"

#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "app/commands.h"
#include "app/common_options.h"
#include "app/memory_limit.h"
#include "app/orders.h"
#include "app/progress.h"
#include "app/ranges.h"
#include "app/temporary.h"
#include "sim/case/program.h"
#include "sim/case/simulate.h"
#include "sim/core/text.h"
#include "sim/exact/cbc.h"
#include "sim/exact/prove.h"
#include "sim/execution/evaluate.h"
#include "sim/interop/torch/csv_writer.h"
#include "sim/interop/torch/rules.h"
#include "sim/planning/room.h"
#include "sim/planning/schedule.h"
#include "sim/report/compare/orders.h"

namespace pipesim {
namespace {

struct ImproveOptions {
  std::vector<std::string> arguments;
  std::string limit;
  std::string output;
  RefineOptions refinement;
  int seconds = 60;
};

std::optional<Bytes> limit_of(const ImproveOptions& options, const Case& made,
                              const CommandLine& line) {
  if (options.limit.empty()) return std::nullopt;
  const auto limit = activation_limit(options.limit, made, line.of_option(options.limit));
  if (const double* times = std::get_if<double>(&limit)) return *times * unit_of_limit(made);
  return std::get<Bytes>(limit);
}

// Bytes, or the part of what p microbatches keep where no bytes are known.
std::string bytes_text(Bytes bytes, const Case& made) {
  if (knows_memory(*made.scenario)) return human(bytes);
  return fmt::format("{:.4g} of what p microbatches keep", bytes / unit_of_limit(made));
}

std::string gained_text(const Improved& improved) {
  if (improved.seconds_after >= improved.seconds_before) {
    return improved.held_back ? "the order was above the limit: nothing to compare with\n"
                              : "nothing shorter was found: the order is as it was\n";
  }
  const OrdersCompared compared =
      compare_orders(simulate(improved.before), simulate(improved.after));
  std::string text = fmt::format("gained: {} ({:.2f}%); mean over devices:",
                                 human(improved.seconds_before - improved.seconds_after),
                                 100 * (1 - improved.seconds_after / improved.seconds_before));
  const auto add = [&text](std::string_view name, Seconds seconds) {
    if (std::abs(seconds.value()) < 1e-13) return;
    text += fmt::format(" {} {}{},", name, seconds > Seconds(0) ? "+" : "", human(seconds));
  };
  add("busy", compared.mean.busy);
  for (const IdleCause cause : causes_in(compared)) {
    add(kIdleCauseNames[static_cast<size_t>(cause)], compared.mean.idle[cause]);
  }
  if (text.ends_with(',')) text.pop_back();
  return text + '\n';
}

// The other givens beside the placement.
std::string givens_of(const Improved& improved) {
  const bool recomputes = improved.after.choice.program->recomputes();
  const bool unequal = !improved.apart.kinds.empty();
  return fmt::format("{}{}", recomputes ? " with this recomputation" : "",
                     unequal ? " and these microbatches in their order" : "");
}

std::string bound_text(const Improved& improved) {
  const char* what = improved.apart.objective == Objective::kCost ? "longest span" : "makespan";
  const double above = improved.time / improved.bound - 1;
  return fmt::format(
      "bound: no order of this placement{} within {} has a {} below {}; this one has "
      "{}, {:.2f}% more\nheld by {}\n",
      givens_of(improved), bytes_text(improved.limit, improved.before), what, human(improved.bound),
      human(improved.time), 100 * std::max(0.0, above), to_text(improved.reason));
}

std::string improved_text(const Improved& improved) {
  return fmt::format("{}: iteration {}, peak {}{}\nimproved: iteration {}, peak {}, limit {}\n",
                     improved.before.label, human(improved.seconds_before),
                     bytes_text(improved.peak_before, improved.before),
                     improved.held_back ? ", above the limit" : "", human(improved.seconds_after),
                     bytes_text(improved.peak_after, improved.before),
                     bytes_text(improved.limit, improved.before)) +
         gained_text(improved) + bound_text(improved) + order_line(improved.after.microbatch_order);
}

// Also what PyTorch's runtime would refuse: it is said.
void write_order(const ImproveOptions& options, const Program& program, std::string said,
                 const CommandLine& line) {
  const auto objection = options.output.empty() ? std::nullopt : torch_objection(program);
  if (objection) said += fmt::format("the CSV is for pipesim alone: {}\n", *objection);
  if (options.output != "-") std::cout << said << std::flush;
  write_outputs({{options.output, line.of_option(options.output),
                  [&](std::ostream& out) { write_csv(out, program); }}});
}

// InfeasibleError where no CSV can express such an order: before the time it takes to refine one.
void check_expressible(const ImproveOptions& options, const Case& made) {
  if (options.output.empty()) return;
  std::ostringstream rows;
  write_csv(rows, *make_program(made), made.choice.name);
}

int improve_order(const ImproveOptions& options, const CommandLine& line) {
  const Case made = only_case_of(OrderArguments(options.arguments), line);
  check_writable({options.output}, line);
  check_expressible(options, made);
  ProgressLine bar;
  bar.show(fmt::format("refining, {:.0e} passes", options.refinement.effort));
  const Improved improved = improve(made, limit_of(options, made, line), options.refinement);
  bar.clear();
  const std::string said = improved_text(improved);
  if (!options.output.empty() && improved.seconds_as_csv > kRounding * improved.seconds_after) {
    if (options.output != "-") std::cout << said << std::flush;
    throw InfeasibleError(
        std::isinf(improved.seconds_as_csv.value())
            ? "no CSV is written: it has no calls of the schedule's own, and without them the "
              "devices wait for each other"
            : fmt::format("no CSV is written: it has no calls of the schedule's own, and takes {} "
                          "without them",
                          human(improved.seconds_as_csv)));
  }
  write_order(options, *improved.after.choice.program, said, line);
  return kDone;
}

std::string ended_text(const exact::Proof& proof, int seconds) {
  switch (proof.ended) {
    case exact::Ended::kBoundReached:
      return "the search ended because the order takes no longer than the lower bound\n";
    case exact::Ended::kProven:
      return fmt::format(
          "the search ended because CBC excludes every order that is {} faster ({} pairs of "
          "passes were undecided)\n",
          human(proof.unit), proof.open_pairs);
    case exact::Ended::kTimeLimit:
      return fmt::format(
          "the search ended after {} s (--seconds), with {} pairs of passes undecided at first\n",
          seconds, proof.open_pairs);
    case exact::Ended::kNoAnswer:
      return fmt::format(
          "CBC was asked for {} s (--seconds) and found nothing, with {} pairs of passes undecided "
          "at first\n",
          seconds, proof.open_pairs);
    case exact::Ended::kTooLarge:
      return fmt::format(
          "CBC was not asked: the order of up to {} pairs of passes is undecided, and it solves "
          "about {}\n",
          proof.open_pairs, exact::kMostOpenPairs);
    case exact::Ended::kNoSolver:
      return "CBC was not asked: there is no command cbc; install Debian's package coinor-cbc\n";
    case exact::Ended::kPairs:
      return "CBC was not asked: it orders single passes, and overlapped pairs may take less\n";
  }
  return "";
}

// The reason why the order itself cannot be compared with the proof.
std::string_view why_not_comparable(const exact::Proof& proof, const Improved& improved) {
  if (!is_within(improved.peak_before, improved.limit)) return ", above the limit";
  const bool fused = kRounding * improved.time_before < proof.bound;
  return fused ? ", with fused backwards: the others run B and W apart" : "";
}

std::string proof_text(const exact::Proof& proof, const Improved& improved, int seconds) {
  const char* what = improved.apart.objective == Objective::kCost ? "longest span" : "makespan";
  const std::string limit = bytes_text(improved.limit, improved.before);
  std::string text;
  if (proof.proven()) {
    text = fmt::format("optimum: {} {} within {}, on this placement{}\n", what, human(proof.time),
                       limit, givens_of(improved));
  } else {
    text = fmt::format("not proven: best {} {} within {}, no order below {} (gap {:.2f}%)\n", what,
                       human(proof.time), limit, human(proof.bound), 100 * proof.gap());
  }
  text += fmt::format("{} itself: {} {}{}\n", improved.before.label, what,
                      human(improved.time_before), why_not_comparable(proof, improved));
  return text + ended_text(proof, seconds) + order_line(improved.after.microbatch_order) +
         (proof.proven() && proof.ended != exact::Ended::kBoundReached
              ? ""
              : "the lower bound is held by " + to_text(improved.reason) + "\n");
}

int prove_order(const ImproveOptions& options, const CommandLine& line) {
  const Case made = only_case_of(OrderArguments(options.arguments), line);
  check_writable({options.output}, line);
  check_expressible(options, made);
  ProgressLine bar;
  bar.show(fmt::format("refining, {:.0e} passes", options.refinement.effort));
  const Improved improved = improve(made, limit_of(options, made, line), options.refinement, true);
  TemporaryFolder folder;
  std::string any;
  for (const char* name : exact::kCbcFiles) any = folder.file(name);
  // B and W apart, microbatches in their order, within the limit: what refinement starts from.
  const Problem& problem = improved.apart;
  RefineOptions nothing = options.refinement;
  nothing.effort = 0;
  const Program start = refine(*improved.after.choice.program, problem, improved.limit, nothing);
  bar.show(fmt::format("proving, at most {} s", options.seconds));
  const exact::Proof proof = exact::prove(
      start, problem, improved.limit, {options.seconds, std::filesystem::path(any).parent_path()});
  bar.clear();
  write_order(options, proof.program, proof_text(proof, improved, options.seconds), line);
  return proof.ended == exact::Ended::kNoSolver ? kFailed : kDone;
}

void add_arguments(Parser& parser, ImproveOptions& options) {
  parser
      .add_option("order", options.arguments,
                  "A scenario (YAML), and where it has several schedules the name of one, a "
                  "description (YAML) or a PyTorch schedule CSV; path.to.key=value changes the "
                  "scenario")
      .required();
  add_memory_limit(parser, options.limit, "what the order itself holds");
  parser
      .add_option("--effort", options.refinement.effort,
                  "Passes that refinement evaluates (default 2e7)")
      .range(kRefinedPasses);
  parser.add_option("--seed", options.refinement.seed, "Seed of refinement (default 1)");
  add_output(parser, options.output,
             "Write the order as CSV, PyTorch's where its runtime knows such orders ('-': standard "
             "output)");
}

}  // namespace

Subcommand add_improve(Parser& program) {
  auto options = std::make_shared<ImproveOptions>();
  Parser& parser = program.add_command(
      "improve", "Refine an order on its own placement, within a memory limit",
      "  pipesim improve scenarios/quickstart.yaml 1f1b --effort 1e6 -o better.csv\n"
      "  pipesim improve scenarios/quickstart.yaml zb-v --memory-limit 0.75 --effort 1e6");
  add_arguments(parser, *options);
  return {&parser, [options](const CommandLine& line) { return improve_order(*options, line); }};
}

Subcommand add_prove(Parser& program) {
  auto options = std::make_shared<ImproveOptions>();
  Parser& parser = program.add_command(
      "prove", "Prove the best order of a small placement by CBC, or bound it",
      "  pipesim prove scenarios/quickstart.yaml zb-h1 parallel.pipeline_model_parallel_size=2 "
      "batch.num_microbatches=3\n"
      "  pipesim prove scenarios/quickstart.yaml 1f1b --memory-limit 2 --effort 1e6");
  add_arguments(parser, *options);
  parser.add_option("--seconds", options->seconds, "At most, of CBC (default 60)")
      .range(kProofSeconds);
  return {&parser, [options](const CommandLine& line) { return prove_order(*options, line); }};
}

}  // namespace pipesim
