// pipesim-calibrate: measures what the simulator's costs are made of, and fits it.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#ifdef PIPESIM_NCCL
#include <nccl.h>
#endif

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <ios>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sim/core/error.h"
#include "sim/mpi/mpi.h"
#ifndef PIPESIM_WITHOUT_FIT
#include "validate/calibration/calibration_file.h"
#endif
#include "validate/calibration/harness/facts.h"
#include "validate/calibration/harness/network.h"
#include "validate/calibration/harness/session.h"
#include "validate/calibration/measurements_csv.h"

namespace {

using namespace pipesim;
using namespace pipesim::calibration;

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kBadInput = 2;

Parameters session_facts(const Session& session, const char* mode) {
  const CardFacts& card = session.card.facts();
  Parameters facts = facts_of(session.card, session.attention);
#ifdef PIPESIM_NCCL
  int nccl = 0;
  if (ncclGetVersion(&nccl) == ncclSuccess) {
    facts.emplace_back("nccl", library_version(static_cast<std::size_t>(nccl)));
  }
#endif
  const Parameters more{{"multiprocessors", std::to_string(card.multiprocessors)},
                        {"compute_capability", card.compute_capability},
                        {"memory_bytes", std::to_string(card.memory_bytes)},
                        {"l2_bytes", std::to_string(card.l2_bytes)},
                        {"gpus", std::to_string(card.devices)},
                        {"attention", attention_fact(session.attention)},
                        {"under_load", "matmul attention kernel"},
                        {"mode", mode},
                        {"duration", fmt::format("{:.0f} s", session.elapsed_s())}};
  facts.insert(facts.end(), more.begin(), more.end());
  for (const auto& condition : conditions(session.measured.points)) facts.push_back(condition);
  return facts;
}

#ifdef PIPESIM_WITHOUT_FIT
// A build of the harness alone leaves the fit to pipesim-fit, on whatever machine.
struct FitSettings {
  std::string gpu;
  int nvls_ranks = 0;
};
std::string fit_folder(const std::filesystem::path& folder, const FitSettings& /*settings*/) {
  return "fit it with: pipesim-fit " + folder.string() + "\n";
}
#endif

struct Request {
  Mode mode = Mode::kQuick;
  std::filesystem::path folder;
  FitSettings settings;
};

// Measurements ahead of the rest.
using First = std::function<void(Session&)>;

void say(std::string_view line) { std::cerr << "pipesim-calibrate: " << line << '\n'; }

// Ends the process unless it is gone in time: a collective that lacks a rank never returns.
class Deadline {
 public:
  // With `line` as last words, if any.
  Deadline(std::chrono::duration<double> time, std::string line)
      : thread_([time, line = std::move(line)](const std::stop_token& stop) {
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any changed;
          changed.wait_for(lock, stop, time, [] { return false; });
          if (stop.stop_requested()) return;
          if (!line.empty()) say(line);
          std::_Exit(kFailed);
        }) {}

 private:
  std::jthread thread_;
};

template <class Write>
void write_file(const std::filesystem::path& path, const Measurements& measured, Write write) {
  std::ofstream out(path);
  write(measured, out);
  if (!out.flush()) throw std::ios_base::failure("cannot write " + path.string());
}

void write_files(const std::filesystem::path& folder, const Session& session, Mode mode) {
  Measurements measured = session.measured;
  measured.facts = session_facts(session, mode == Mode::kFull ? "full" : "quick");
  write_file(folder / "measurements.csv", measured, write_measurements);
  write_file(folder / "samples.csv", measured, write_samples);
}

// A stage's longest, beside the mode's time: a collective or kernel that never returns.
constexpr double kStageS = 120;

std::shared_ptr<void> watched(const Session& session, const Request& request, const char* stage) {
  const double seconds = kStageS + std::max(0.0, session.plan.time_limit_s - session.elapsed_s());
  return std::make_shared<Deadline>(
      std::chrono::duration<double>(seconds),
      fmt::format("{} had not ended after {:.0f} s; what was measured before is in {}: "
                  "pipesim-fit {}",
                  stage, seconds, request.folder.string(), request.folder.string()));
}

int calibrate(const Request& request, const First& first) {
  std::filesystem::create_directories(request.folder);
  const Card card(0);
  Session session(card, make_plan(request.mode),
                  [](const std::string& line) { fmt::print(stderr, "{}\n", line); });
  session.watch = [&](const char* stage) { return watched(session, request, stage); };
  session.stage_ended = [&](const Session& each) {
    write_files(request.folder, each, request.mode);
  };
  if (!card.nvml_reason().empty()) session.not_measured("conditions", card.nvml_reason());
  first(session);
  run_stages(session);
  write_files(request.folder, session, request.mode);
  fmt::print("{}: {} points, {} not measured\n\n{}", card.facts().name,
             session.measured.points.size(), session.measured.not_measured.size(),
             fit_folder(request.folder, request.settings));
  return kDone;
}

int run_alone(const Request& request) {
  if (const std::string reason = why_no_device(); !reason.empty()) return say(reason), kFailed;
  return calibrate(request, [](Session&) {});
}

#ifdef PIPESIM_NCCL

constexpr double kLastPointS = 60;  // the last communicator and its last point
constexpr double kLaterS = 10;      // rank 0 speaks first

double seconds_for_network(Mode mode) { return network_time_s(make_plan(mode)) + kLastPointS; }

int lead(const Request& request, const Launch& launched) {
  const double limit = seconds_for_network(request.mode);
  std::optional<Deadline> deadline(
      std::in_place, std::chrono::duration<double>(limit),
      fmt::format("no end of the measuring between nodes after {:.0f} s; NCCL_DEBUG=INFO says what "
                  "it waits for",
                  limit));
  std::optional<Mpi> mpi(std::in_place, launched);
  const std::vector<Node> nodes = gather_nodes(*mpi, this_node());
  if (const std::string reason = why_not_together(nodes); !reason.empty()) {
    say(reason);
    dismiss(*mpi);
    return kFailed;
  }
  try {
    return calibrate(request, [&](Session& session) {
      measure_network(session, *mpi, nodes);
      mpi.reset();
      deadline.reset();
    });
  } catch (const std::exception& error) {
    if (!mpi) throw;
    say(error.what());
    mpi->abort(kFailed);
  }
}

int serve(const Request& request, const Launch& launched) {
  const Deadline deadline(
      std::chrono::duration<double>(seconds_for_network(request.mode) + kLaterS), "");
  const Mpi mpi(launched);
  try {
    follow(mpi, launched.rank, this_node());
  } catch (const std::exception& error) {
    say(error.what());
    mpi.abort(kFailed);
  }
  return kDone;
}

#else

int lead(const Request&, const Launch&) {
  throw InfeasibleError(
      "started on several nodes, but built without NCCL, which measures between them: start it on "
      "one");
}
int serve(const Request&, const Launch&) { return kFailed; }

#endif

// Among several processes, the one that `speaks` prints errors.
int run(int argc, char** argv, const std::optional<Launch>& launched, bool speaks) {
  CLI::App app{"Measures a GPU for the simulator", "pipesim-calibrate"};
  std::string mode = "quick";
  Request request;
  app.add_option("--mode", mode, "quick: under 2 minutes; full: under 8")
      ->check(CLI::IsMember({"quick", "full"}))
      ->capture_default_str();
  app.add_option("-o,--output,--out", request.folder,
                 "Folder for measurements.csv, samples.csv, calibration.yaml, residuals.csv")
      ->required();
  app.add_option("--gpu", request.settings.gpu,
                 "The GPU's name in the catalogue, where it does not follow from the device");
  app.add_option("--nvls-ranks", request.settings.nvls_ranks,
                 "All-reduces of so many ranks run in the switch");
  app.footer(
      "One process on each of several nodes also measures between them "
      "(docs/how-to/calibration.md)\n\nExamples:\n"
      "  pipesim calibrate --mode quick -o out/calibration\n"
      "  mpirun -n 2 --map-by ppr:1:node --bind-to none --host a,b pipesim calibrate -o "
      "out/calibration");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = speaks ? app.exit(error) : error.get_exit_code();
    return code == 0 ? kDone : kBadInput;
  }
  request.mode = mode == "full" ? Mode::kFull : Mode::kQuick;
  if (!launched) return run_alone(request);
  return launched->rank == 0 ? lead(request, *launched) : serve(request, *launched);
}

}  // namespace

int main(int argc, char** argv) {
  bool speaks = true;
  try {
    const auto launched = pipesim::launch();
    speaks = !launched || launched->rank == 0;
    return run(argc, argv, launched, speaks);
  } catch (const std::exception& error) {
    if (speaks) say(error.what());
    return kFailed;
  }
}
