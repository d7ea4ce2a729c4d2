// pipesim sweep: every point of a grid of scenarios, over all cores, stored so that it can go on
// after anything.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "app/commands.h"
#include "app/common_options.h"
#include "app/progress.h"
#include "app/ranges.h"
#include "sim/core/input_text.h"
#include "sim/core/thread_team.h"
#include "sim/sweep/build.h"
#include "sim/sweep/mpi_workers.h"
#include "sim/sweep/results.h"
#include "sim/sweep/run_sweep.h"

namespace pipesim {
namespace {

struct SweepCommand {
  std::string file;
  std::vector<std::string> overrides;
  std::string folder;
  std::string json;
  std::optional<int> processes;
};

volatile std::sig_atomic_t stop_asked = 0;
extern "C" void ask_to_stop(int /*signal*/) { stop_asked = 1; }

std::string human_seconds(double seconds) {
  const auto whole = std::lround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string progress_text(const SweepProgress& progress, double seconds) {
  const std::uint32_t done = progress.before + progress.evaluated;
  // Large points go first: the bar and the time left follow the work, not the count.
  constexpr int kWidth = 24;
  const double before = static_cast<double>(progress.before) / progress.points;
  const int filled = static_cast<int>(kWidth * (before + (1 - before) * progress.share));
  std::string text = fmt::format("[{:=<{}}{:>{}}] {}/{} points", "", filled, "", kWidth - filled,
                                 done, progress.points);
  if (progress.evaluated > 0 && seconds > 0) {
    text += fmt::format(", {:.0f}/s", progress.evaluated / seconds);
  }
  if (progress.share > 0.01 && progress.share < 1) {
    text +=
        fmt::format(", {} left", human_seconds(seconds * (1 - progress.share) / progress.share));
  }
  return text;
}

std::string copy_path(const SweepCommand& command) { return command.folder + "/sweep.yaml"; }

// A sweep that goes on from the copy of its file that it left says there what it says already.
bool is_own_copy(const SweepCommand& command, const Sweep& sweep) {
  std::error_code ignored;
  const std::string copy = copy_path(command);
  return std::filesystem::equivalent(command.file, copy, ignored) &&
         read_input(copy, {}) == sweep.text();
}

// Before anything is made: no output is an input, the store, or another output.
void check_outputs(const SweepCommand& command, const CommandLine& line, const Sweep& sweep) {
  const Location where = line.of_option(command.folder);
  std::vector<std::pair<std::string, Location>> paths;
  for (const bool stopped : {false, true}) {
    for (const char* table : {"results", "failed"}) {
      paths.emplace_back(table_path(command.folder, table, stopped), where);
    }
  }
  const std::string store = command.folder + "/" + kStoreName;
  for (const std::string& path : {store, store + "-journal"}) paths.emplace_back(path, where);
  if (!is_own_copy(command, sweep)) paths.emplace_back(copy_path(command), where);
  paths.emplace_back(command.json, line.of_option(command.json));
  check_apart(paths);
}

void write_tables(const SweepCommand& command, const CommandLine& line, const Sweep& sweep,
                  const ResultStore& store, const SweepRun& run) {
  const Location where = line.of_option(command.folder);
  std::vector<Output> outputs{
      {table_path(command.folder, "results", run.stopped), where,
       [&](std::ostream& out) { write_results_csv(out, sweep, store); }},
      {table_path(command.folder, "failed", run.stopped), where,
       [&](std::ostream& out) { write_failed_csv(out, sweep, store, run.lost); }},
      {command.json, line.of_option(command.json),
       [&](std::ostream& out) { write_sweep_json(out, sweep, store, run, PIPESIM_VERSION); }}};
  if (!is_own_copy(command, sweep)) {
    outputs.push_back({copy_path(command), where, [&](std::ostream& out) { out << sweep.text(); }});
  }
  write_outputs(outputs);
  if (run.stopped) return;
  for (const char* table : {"results", "failed"}) {
    std::error_code ignored;
    std::filesystem::remove(table_path(command.folder, table, true), ignored);
  }
}

int finish(const SweepCommand& command, const CommandLine& line, const Sweep& sweep,
           const ResultStore& store, const SweepRun& run, const std::vector<std::string>& changed,
           double seconds) {
  const SweepProgress& progress = run.progress;
  write_tables(command, line, sweep, store, run);
  if (!changed.empty()) {
    std::cerr << fmt::format(
        "pipesim: '{}' has changed since the sweep began; {} of {} points are stored, all of what "
        "it "
        "was then: put it back and the same command goes on, or use another folder\n",
        changed.front(), progress.before + progress.evaluated, progress.points);
    return kFailed;
  }
  if (run.stopped) {
    std::cerr << fmt::format(
        "pipesim: stopped; {} of {} points are stored in '{}', those in {}: the same command goes "
        "on from there\n",
        progress.before + progress.evaluated, progress.points, command.folder,
        table_path(command.folder, "results", true));
    return kInterrupted;
  }
  const auto [refused, unfit] = store.counts();
  const std::uint32_t failed = refused + static_cast<std::uint32_t>(run.lost.size());
  std::string text =
      fmt::format("{} points: {} results", progress.points, progress.points - failed);
  if (unfit > 0) text += fmt::format(", of which {} do not fit", unfit);
  text += fmt::format(", {} failed", failed);
  if (failed > 0) text += " (reasons in failed.csv)";
  if (progress.before > 0) text += fmt::format("; {} were stored before", progress.before);
  text += fmt::format("; {:.1f} s; {}\n", seconds, table_path(command.folder, "results", false));
  (command.json == "-" ? std::cerr : std::cout) << text;
  if (!run.lost.empty()) {
    std::cerr << fmt::format(
        "pipesim: {} points have no result because their processes ended; the same command tries "
        "them "
        "again\n",
        run.lost.size());
    return kFailed;
  }
  return failed == progress.points ? kFailed : kDone;
}

// Files that the sweep has read and that have changed since; looked for now and then.
class ChangedInputs {
 public:
  explicit ChangedInputs(const ReadOnce& inputs) : inputs_(inputs) {}
  const std::vector<std::string>& operator()() const {
    const auto time = std::chrono::steady_clock::now();
    if (time - looked_ < std::chrono::milliseconds(500)) return changed_;
    return now();
  }
  const std::vector<std::string>& now() const {
    changed_ = inputs_.changed();
    looked_ = std::chrono::steady_clock::now();
    return changed_;
  }

 private:
  const ReadOnce& inputs_;
  mutable std::vector<std::string> changed_;
  mutable std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
};

// Stores and writes; the only one of several ranks that does.
int lead(const SweepCommand& command, const CommandLine& line, const Sweep& sweep, Workers& workers,
         const ReadOnce& inputs) {
  check_outputs(command, line, sweep);
  ResultStore store(command.folder, sweep, build_of_program(PIPESIM_VERSION),
                    line.of_option(command.folder));
  check_writable({command.json}, line);
  ProgressLine bar;
  const ChangedInputs changed(inputs);
  const SweepRun run =
      run_sweep(sweep, store, workers,
                {[&changed] { return stop_asked != 0 || !changed().empty(); },
                 [&bar](const SweepProgress& progress) {
                   bar.tick([&] { return progress_text(progress, bar.elapsed()); });
                 }});
  bar.clear();
  return finish(command, line, sweep, store, run, changed.now(), bar.elapsed());
}

int run_sweep_command(const SweepCommand& command, const CommandLine& line,
                      const std::optional<Launch>& launched) {
  const ReadOnce inputs;
  const Sweep sweep =
      Sweep::read(command.file, line.where(command.file), line.overrides(command.overrides));
  // The launcher has said how many ranks the cores are for.
  const int processes =
      std::min<int>(command.processes.value_or(launched ? 1 : available_threads()),
                    static_cast<int>(std::min(sweep.points(), 1U << 16)));
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, ask_to_stop);
  Evaluator evaluate(sweep);
  LocalWorkers local(processes,
                     [&evaluate](std::uint32_t point) { return to_bytes(evaluate(point)); });
  if (!launched) return lead(command, line, sweep, local, inputs);
  const Mpi mpi(*launched);
  const std::string digest = hex(sweep.identity()) + build_of_program(PIPESIM_VERSION);
  if (launched->rank > 0) {
    serve_rank(local, mpi, digest);
    return kDone;
  }
  MpiWorkers all(local, mpi);
  all.check_same(digest, line.where(command.file));
  return lead(command, line, sweep, all, inputs);
}

// True if the launcher ends this rank, which it does when another has failed.
bool ended_by_launcher() {
  constexpr auto kPatience = std::chrono::seconds(10);
  constexpr auto kStep = std::chrono::milliseconds(10);
  for (auto waited = kStep; waited < kPatience && stop_asked == 0; waited += kStep) {
    std::this_thread::sleep_for(kStep);
  }
  return stop_asked != 0;
}

// The first of several ranks that meet the same mistake reports it. The others wait to be ended:
// were they to fail first, the launcher would end the first before it could report. A rank that is
// not ended met a mistake of its own.
int run_rank(const SweepCommand& command, const CommandLine& line) {
  const auto launched = launch();
  try {
    return run_sweep_command(command, line, launched);
  } catch (const std::exception&) {
    if (launched && launched->rank > 0 && ended_by_launcher()) return kFailed;
    throw;
  }
}

}  // namespace

Subcommand add_sweep(Parser& program) {
  auto command = std::make_shared<SweepCommand>();
  Parser& parser = program.add_command(
      "sweep", "Simulate every point of a grid of scenarios; a sweep that was stopped goes on",
      "  pipesim sweep scenarios/paper/pipeoffload_figure1.yaml -o out/figure1\n"
      "  pipesim sweep scenarios/paper/zero_bubble_figure9.yaml -o out/figure9 -j 2");
  add_scenario(parser, command->file, command->overrides);
  add_output(parser, command->folder, "Folder of the results; made when it is not there")
      .required();
  parser.add_option("-j,--threads", command->processes, "Processes (default: as many as cores)")
      .range(kSweepProcesses);
  add_json(parser, command->json, "the points");
  return {&parser, [command](const CommandLine& line) { return run_rank(*command, line); }};
}

}  // namespace pipesim
