// pipesim-calibrate: measures what the simulator's costs are made of, and fits it.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#ifdef PIPESIM_NCCL
#include <nccl.h>
#endif

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>

#include "validate/calibration/calibration_file.h"
#include "validate/calibration/harness/facts.h"
#include "validate/calibration/harness/session.h"
#include "validate/calibration/measurements_csv.h"

namespace {

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
                        {"mode", mode},
                        {"duration", fmt::format("{:.0f} s", session.elapsed_s())}};
  facts.insert(facts.end(), more.begin(), more.end());
  for (const auto& condition : conditions(session.measured.points)) facts.push_back(condition);
  return facts;
}

Measurements measure(Mode mode) {
  const Card card(0);
  Session session(card, make_plan(mode),
                  [](const std::string& line) { fmt::print(stderr, "{}\n", line); });
  if (!card.nvml_reason().empty()) session.not_measured("conditions", card.nvml_reason());
  run_stages(session);
  session.measured.facts = session_facts(session, mode == Mode::kFull ? "full" : "quick");
  return std::move(session.measured);
}

template <class Write>
void write_file(const std::filesystem::path& path, const Measurements& measured, Write write) {
  std::ofstream out(path);
  write(measured, out);
  if (!out.flush()) throw std::ios_base::failure("cannot write " + path.string());
}

int run(Mode mode, const std::filesystem::path& folder, const FitSettings& settings) {
  if (const std::string reason = why_no_device(); !reason.empty()) {
    fmt::print(stderr, "pipesim-calibrate: {}\n", reason);
    return kFailed;
  }
  std::filesystem::create_directories(folder);
  const Measurements measured = measure(mode);
  write_file(folder / "measurements.csv", measured, write_measurements);
  write_file(folder / "samples.csv", measured, write_samples);
  fmt::print("{}: {} points, {} not measured\n\n{}", measured.fact("device"),
             measured.points.size(), measured.not_measured.size(), fit_folder(folder, settings));
  return kDone;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Measures a GPU for the simulator", "pipesim-calibrate"};
  std::string mode = "quick";
  std::filesystem::path folder;
  FitSettings settings;
  app.add_option("--mode", mode, "quick: under 2 minutes; full: under 8")
      ->check(CLI::IsMember({"quick", "full"}))
      ->capture_default_str();
  app.add_option("-o,--out", folder,
                 "Folder for measurements.csv, samples.csv, calibration.yaml, residuals.csv")
      ->required();
  app.add_option("--gpu", settings.gpu,
                 "The GPU's name in the catalogue, where it does not follow from the device");
  app.add_option("--nvls-ranks", settings.nvls_ranks,
                 "All-reduces of so many ranks run in the switch");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kBadInput;
  }
  try {
    return run(mode == "full" ? Mode::kFull : Mode::kQuick, folder, settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "pipesim-calibrate: {}\n", error.what());
    return kFailed;
  }
}
