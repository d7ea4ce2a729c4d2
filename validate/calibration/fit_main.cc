// pipesim-fit: fits measured curves and prints the constants as the catalogue writes them, with
// the error that they leave; of a folder of pipesim-calibrate it makes the calibration file.
#include <CLI/CLI.hpp>
#include <exception>
#include <fmt/format.h>
#include <iostream>
#include <string>

#include "validate/calibration/calibration_file.h"
#include "validate/calibration/curves.h"
#include "validate/calibration/fit.h"
#include "validate/calibration/fitted.h"
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

std::string percent(const ErrorSummary& error) {
  return fmt::format("{} rows, median {:.1f}%, 90% of rows within {:.1f}%, worst {:.0f}%",
                     error.rows, 100 * error.median, 100 * error.p90, 100 * error.worst);
}

void print_numbers(const Numbers& numbers) {
  for (const auto& [name, value] : numbers) std::cout << fmt::format("    {}: {}\n", name, value);
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
  std::cout << fmt::format("    # all shapes: {}\n    # m, n, k multiples of 64, >= 1024: {}\n",
                           percent(summarize(errors(gpu, rows))),
                           percent(summarize(errors(gpu, used))));
  print_numbers(matmul_numbers(gpu));
}

void print_curve(const char* name, const CollectiveCurve& curve,
                 const std::vector<CollectiveRow>& rows) {
  std::vector<CollectiveRow> large;
  for (const CollectiveRow& row : rows) {
    if (row.bytes >= Bytes(1 << 20)) large.push_back(row);
  }
  std::cout << fmt::format("  {}:\n    # {}\n    # of 1 MiB and more: {}\n", name,
                           percent(summarize(errors(curve, rows))),
                           percent(summarize(errors(curve, large))));
  print_numbers(collective_numbers(curve));
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

struct Parser {
  CLI::App app{"Fits the curves of the cost model to measurements", "pipesim-fit"};
  std::string folder;
  FitSettings settings;
  MatmulOptions matmul;
  CollectiveOptions collective;
  CLI::App* matmuls = nullptr;
  CLI::App* collectives = nullptr;
};

void add_folder(Parser& parser) {
  parser.app.add_option("folder", parser.folder,
                        "With measurements.csv; calibration.yaml and residuals.csv come beside it");
  parser.app.add_option(
      "--gpu", parser.settings.gpu,
      "The GPU's name in the catalogue, where it does not follow from the device");
  parser.app.add_option("--nvls-ranks", parser.settings.nvls_ranks,
                        "All-reduces of so many ranks ran in the switch");
}

void add_matmul(Parser& parser) {
  MatmulOptions& options = parser.matmul;
  parser.matmuls = parser.app.add_subcommand("matmul", "Fit a CSV with m, n, k, latency_ms");
  const auto required = [&](const char* name, auto& value, const char* help) {
    parser.matmuls->add_option(name, value, help)->required()->check(CLI::PositiveNumber);
  };
  parser.matmuls->add_option("file", options.file, "CSV")->required();
  required("--peak-tflops", options.peak_tflops, "Dense bf16 peak");
  required("--bandwidth-gbs", options.bandwidth_gbs, "Peak memory bandwidth, GB/s");
  required("--multiprocessors", options.multiprocessors, "Of the GPU");
}

void add_collectives(Parser& parser) {
  parser.collectives =
      parser.app.add_subcommand("collectives", "Fit a CSV with op, gpus, bytes, latency_us");
  parser.collectives->add_option("file", parser.collective.file, "CSV")->required();
  parser.collectives->add_option("--nvls-ranks", parser.collective.nvls_ranks,
                                 "All-reduces of so many ranks ran in the switch");
}

int run(int argc, char** argv) {
  Parser parser;
  parser.app.require_subcommand(0, 1);
  add_folder(parser);
  add_matmul(parser);
  add_collectives(parser);
  try {
    parser.app.parse(argc, argv);
    if (parser.folder.empty() && parser.app.get_subcommands().empty()) {
      throw CLI::RequiredError("a folder, or matmul or collectives");
    }
  } catch (const CLI::ParseError& error) {
    return parser.app.exit(error) == 0 ? kDone : kBadInput;
  }
  if (parser.matmuls->parsed()) {
    print_matmul(parser.matmul);
  } else if (parser.collectives->parsed()) {
    print_collectives(parser.collective);
  } else {
    std::cout << fit_folder(parser.folder, parser.settings);
  }
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
