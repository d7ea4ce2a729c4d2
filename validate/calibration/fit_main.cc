// pipesim-fit: fits measured curves and prints the constants as the catalogue writes them, with
// the error that they leave; of a folder of pipesim-calibrate it makes the calibration file.
#include <exception>
#include <fmt/format.h>
#include <iostream>
#include <string>

#include "app/options/parser.h"
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

struct Options {
  std::string folder;
  FitSettings settings;
  MatmulOptions matmul;
  CollectiveOptions collective;
};

constexpr const char* kRanksHelp = "All-reduces of so many ranks ran in the switch";

void add_folder(Parser& program, Options& options) {
  program.add_option("folder", options.folder,
                     "With measurements.csv; calibration.yaml and residuals.csv come beside it");
  program.add_option("--gpu", options.settings.gpu,
                     "The GPU's name in the catalogue, where it does not follow from the device");
  program.add_option("--nvls-ranks", options.settings.nvls_ranks, kRanksHelp);
}

const Parser& add_matmul(Parser& program, MatmulOptions& options) {
  Parser& parser = program.add_command("matmul", "Fit a CSV with m, n, k, latency_ms");
  const auto required = [&](const char* name, auto& value, const char* help) {
    parser.add_option(name, value, help).required().positive();
  };
  parser.add_option("file", options.file, "CSV").required();
  required("--peak-tflops", options.peak_tflops, "Dense bf16 peak");
  required("--bandwidth-gbs", options.bandwidth_gbs, "Peak memory bandwidth, GB/s");
  required("--multiprocessors", options.multiprocessors, "Multiprocessors of the GPU");
  return parser;
}

const Parser& add_collectives(Parser& program, CollectiveOptions& options) {
  Parser& parser = program.add_command("collectives", "Fit a CSV with op, gpus, bytes, latency_us");
  parser.add_option("file", options.file, "CSV").required();
  parser.add_option("--nvls-ranks", options.nvls_ranks, kRanksHelp);
  return parser;
}

int run(int argc, char** argv) {
  Parser program("pipesim-fit", "Fits the curves of the cost model to measurements");
  Options options;
  add_folder(program, options);
  const Parser& matmul = add_matmul(program, options.matmul);
  const Parser& collectives = add_collectives(program, options.collective);
  if (!program.parse(argc, argv)) return kDone;
  if (matmul.chosen()) {
    print_matmul(options.matmul);
  } else if (collectives.chosen()) {
    print_collectives(options.collective);
  } else if (options.folder.empty()) {
    throw OptionError("a folder, or matmul or collectives is required");
  } else {
    std::cout << fit_folder(options.folder, options.settings);
  }
  return kDone;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const OptionError& error) {
    std::cerr << error.what() << "\nRun with --help for more information.\n";
  } catch (const std::exception& error) {
    std::cerr << "pipesim-fit: " << error.what() << '\n';
  }
  return kBadInput;
}
