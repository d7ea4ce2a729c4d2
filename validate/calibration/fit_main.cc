// pipesim-fit: fits measured curves and prints the constants as the catalogue writes them, with
// the error that they leave.
#include <CLI/CLI.hpp>
#include <exception>
#include <fmt/format.h>
#include <iostream>
#include <string>

#include "validate/calibration/curves.h"
#include "validate/calibration/fit.h"
#include "validate/calibration/statistics.h"

namespace {

using namespace pipesim;
using namespace pipesim::calibration;

constexpr int kDone = 0;
constexpr int kBadInput = 2;

struct MatmulOptions {
  std::string file;
  double peak_tflops = 0;
  double bandwidth_gbs = 0;
  int multiprocessors = 0;
};

struct CollectiveOptions {
  std::string file;
  int nvls_ranks = 0;  // 0: no in-switch reduction
};

// A constant that does not matter is 0.
double tidy(double value) { return value < 1e-3 ? 0 : value; }

std::string percent(const ErrorSummary& error) {
  return fmt::format("{} rows, median {:.1f}%, 90% of rows within {:.1f}%, worst {:.0f}%",
                     error.rows, 100 * error.median, 100 * error.p90, 100 * error.worst);
}

void print_matmul(const MatmulOptions& options) {
  Gpu gpu;
  gpu.peak = {FlopsPerSecond(options.peak_tflops * 1e12)};
  gpu.memory_bandwidth = BytesPerSecond(options.bandwidth_gbs * 1e9);
  gpu.multiprocessors = options.multiprocessors;
  const auto rows = read_matmuls(options.file);
  gpu = fit_matmul(gpu, rows);
  std::vector<MatmulRow> used;
  for (const MatmulRow& row : rows) {
    if (used_in_training(row.matmul)) used.push_back(row);
  }
  const MatmulCurve& curve = gpu.matmul;
  std::cout << fmt::format(
      "    # all shapes: {}\n    # m, n, k multiples of 64, >= 1024: {}\n"
      "    launch: {:.3g} us\n    efficiency: {:.4g}\n    memory_efficiency: {:.4g}\n"
      "    fill: {:.4g}\n    edge: {:.4g}\n    split: {:.4g}\n    tail: {:.4g}\n"
      "    slowdown: {:.4g}\n    slowdown_gflop: {:.4g}\n",
      percent(summarize(errors(gpu, rows))), percent(summarize(errors(gpu, used))),
      gpu.launch.value() * 1e6, curve.efficiency[0], curve.memory_efficiency, curve.fill,
      tidy(curve.edge), curve.split, tidy(curve.tail), tidy(curve.slowdown),
      curve.slowdown_flops.value() * 1e-9);
}

void print_curve(const char* name, const CollectiveCurve& curve,
                 const std::vector<CollectiveRow>& rows) {
  std::vector<CollectiveRow> large;
  for (const CollectiveRow& row : rows) {
    if (row.bytes >= Bytes(1 << 20)) large.push_back(row);
  }
  std::cout << fmt::format(
      "  {}:\n    # {}\n    # of 1 MiB and more: {}\n    base: {:.3g} us\n    per_rank: {:.3g} us\n"
      "    bandwidth: {:.4g} GB/s\n    ramp: {:.3g} KB\n    own_share: {:.3g}\n",
      name, percent(summarize(errors(curve, rows))), percent(summarize(errors(curve, large))),
      curve.base.value() * 1e6, curve.per_rank.value() * 1e6, curve.bandwidth.value() * 1e-9,
      curve.ramp.value() * 1e-3, curve.own_share);
}

void print_collectives(const CollectiveOptions& options) {
  const auto all = read_collectives(options.file);
  const auto fit_and_print = [&all](const char* name, auto wanted) {
    std::vector<CollectiveRow> rows;
    for (const CollectiveRow& row : all) {
      if (wanted(row)) rows.push_back(row);
    }
    if (!rows.empty()) print_curve(name, fit_collective(rows), rows);
  };
  const auto in_switch = [&options](const CollectiveRow& row) {
    return options.nvls_ranks > 0 && row.ranks >= options.nvls_ranks &&
           row.kind == CollectiveKind::kAllReduce;
  };
  const auto of = [&in_switch](CollectiveKind kind) {
    return [kind, &in_switch](const CollectiveRow& row) {
      return row.kind == kind && !in_switch(row);
    };
  };
  fit_and_print("all_reduce", of(CollectiveKind::kAllReduce));
  fit_and_print("all_gather", of(CollectiveKind::kAllGather));
  fit_and_print("reduce_scatter", of(CollectiveKind::kReduceScatter));
  fit_and_print("all_to_all", of(CollectiveKind::kAllToAll));
  fit_and_print("all_reduce_in_switch", in_switch);
}

int run(int argc, char** argv) {
  CLI::App app{"Fits the constants of the hardware catalogue to measured curves", "pipesim-fit"};
  app.require_subcommand(1);
  MatmulOptions matmul;
  CLI::App* matmuls = app.add_subcommand("matmul", "Fit a CSV with m, n, k, latency_ms");
  matmuls->add_option("file", matmul.file, "CSV")->required();
  matmuls->add_option("--peak-tflops", matmul.peak_tflops, "Dense bf16 peak")
      ->required()
      ->check(CLI::PositiveNumber);
  matmuls->add_option("--bandwidth-gbs", matmul.bandwidth_gbs, "Peak memory bandwidth, GB/s")
      ->required()
      ->check(CLI::PositiveNumber);
  matmuls->add_option("--multiprocessors", matmul.multiprocessors, "Of the GPU")
      ->required()
      ->check(CLI::PositiveNumber);
  CollectiveOptions collective;
  CLI::App* collectives =
      app.add_subcommand("collectives", "Fit a CSV with op, gpus, bytes, latency_us");
  collectives->add_option("file", collective.file, "CSV")->required();
  collectives->add_option("--nvls-ranks", collective.nvls_ranks,
                          "All-reduces of so many ranks ran in the switch");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kBadInput;
  }
  if (matmuls->parsed()) print_matmul(matmul);
  if (collectives->parsed()) print_collectives(collective);
  return kDone;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "pipesim-fit: " << error.what() << '\n';
    return kBadInput;
  }
}
