#include "validate/calibration/calibration_file.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <ios>
#include <iterator>
#include <sstream>
#include <string_view>
#include <vector>

#include "sim/core/data_folder.h"
#include "sim/core/error.h"
#include "sim/read/calibration.h"
#include "sim/read/hardware.h"
#include "validate/calibration/compare_layers.h"
#include "validate/calibration/measurements_csv.h"
#include "validate/calibration/statistics.h"

namespace pipesim::calibration {
namespace {

// Keys of `measured` in the file; every other fact becomes part of its note.
constexpr std::array<std::string_view, 7> kMeasuredKeys{"device", "date",  "driver", "cuda",
                                                        "cublas", "cudnn", "nccl"};

struct Quality {
  ErrorSummary error;
  double spread = 0;  // the median
};

Quality quality_of(const FittedCurve& curve) {
  std::vector<double> errors;
  std::vector<double> spreads;
  for (const FittedRow& row : curve.rows) {
    errors.push_back(row.error);
    spreads.push_back(row.spread);
  }
  return {summarize(errors), summarize(spreads).median};
}

constexpr double kDoubtful = 0.2;

void refuse_poor(Fitted& fitted) {
  const auto is_poor = [&](const FittedCurve& curve) {
    const ErrorSummary error = quality_of(curve).error;
    if (error.median <= kRefused) return false;
    fitted.not_fitted.push_back(
        {curve.name,
         fmt::format("the best fit is off by {:.0f}% in the median of {} rows, more than {:.0f}%",
                     100 * error.median, error.rows, 100 * kRefused)});
    return true;
  };
  std::erase_if(fitted.curves, is_poor);
}

std::string described_doubt(const Fitted& fitted) {
  std::string text;
  for (const FittedCurve& curve : fitted.curves) {
    const double median = quality_of(curve).error.median;
    if (median <= kDoubtful) continue;
    text += fmt::format("{}: doubtful: off by {:.0f}% in the median, more than {:.0f}%\n",
                        curve.name, 100 * median, 100 * kDoubtful);
  }
  return text;
}

// A text as YAML takes it whatever is in it.
std::string in_quotes(const std::string& text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += letter;
  }
  return result + '"';
}

// The groups of points that were measured among a layer's passes, with spaces between.
constexpr std::string_view kUnderLoad = "under_load";

bool was_under_load(const Measurements& measured, const FittedCurve& curve) {
  const std::string& point = curve.rows.front().point;
  const std::string group = point.substr(0, point.find('/'));
  return (' ' + measured.fact(kUnderLoad) + ' ').find(' ' + group + ' ') != std::string::npos;
}

void write_curves(const char* heading, const std::vector<FittedCurve>& curves,
                  const Measurements& measured, std::ostream& out) {
  if (curves.empty()) return;
  out << heading << ":\n";
  for (const FittedCurve& curve : curves) {
    out << fmt::format("  {}:\n", curve.name);
    for (const auto& [name, value] : curve.numbers) out << fmt::format("    {}: {}\n", name, value);
    if (was_under_load(measured, curve)) out << "    under_load: true\n";
    const auto [error, spread] = quality_of(curve);
    out << fmt::format(
        "    error: {{rows: {}, median: {:.4f}, within_90: {:.4f}, spread: {:.4f}}}\n", error.rows,
        error.median, error.p90, spread);
  }
}

std::string in_milliseconds(Seconds time) { return fmt::format("{:.4g} ms", time.value() * 1e3); }

Seconds modelled(const FittedRow& row) { return (1 + row.error) * row.measured; }

void write_layers(const std::vector<FittedRow>& layers, std::ostream& out) {
  if (layers.empty()) return;
  out << "layers:\n";
  for (const FittedRow& row : layers) {
    out << fmt::format("  {}: {{measured: {}, modelled: {}, error: {:.4f}, spread: {:.4f}}}\n",
                       row.point, in_milliseconds(row.measured), in_milliseconds(modelled(row)),
                       row.error, row.spread);
  }
}

std::string described_layers(const std::vector<FittedRow>& layers) {
  if (layers.empty()) return {};
  std::string text = "layers, measured and as the curves above say\n";
  std::vector<double> errors;
  for (const FittedRow& row : layers) {
    errors.push_back(row.error);
    text += fmt::format("  {:>9} {:>9} {:+6.1f}%  {}\n", in_milliseconds(row.measured),
                        in_milliseconds(modelled(row)), 100 * row.error, row.point);
  }
  const ErrorSummary summary = summarize(errors);
  return text + fmt::format("  {} rows, error median {:.1f}%, worst {:.1f}%\n", summary.rows,
                            100 * summary.median, 100 * summary.worst);
}

// Compares the measurements with a scenario that uses the file on a node with this GPU.
LayerComparison compared(const Measurements& measured, const GpuEntry& entry,
                         const Fitted& fitted) {
  std::ostringstream text;
  write_calibration(measured, entry.gpu.name, fitted, text);
  Hardware hardware{.name = entry.gpu.name,
                    .gpu = entry.gpu,
                    .interconnect = entry.interconnect,
                    .cluster = {},
                    .host = {}};
  hardware.interconnect.gpus_per_node = 1 << 16;  // a node that any measurement fits in
  std::vector<Sourced> unused;
  try {
    (void)read_calibration(YamlSource("calibration.yaml", text.str()), hardware, unused);
  } catch (const InputError& error) {  // which the file's reader will say of it too
    return {.rows = {}, .not_compared = {{"layers", error.what()}}};
  }
  return compare_layers(measured, hardware);
}

std::string lower(std::string text) {
  for (char& letter : text) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return text;
}

// "gh200" holds no "h200".
bool has_word(const std::string& text, const std::string& word) {
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    if (at == 0 || std::isalnum(static_cast<unsigned char>(text[at - 1])) == 0) return true;
  }
  return false;
}

std::string family_of(const Gpu& gpu) { return gpu.name.substr(0, gpu.name.find('-')); }

// The entry whose family (the name up to its first dash) is a word of the device's name, the
// longest of these, with as many multiprocessors.
const GpuEntry* entry_of(const HardwareCatalog& catalogue, const Measurements& measured) {
  const std::string device = lower(measured.fact("device"));
  const GpuEntry* best = nullptr;
  std::size_t longest = 0;
  for (const GpuEntry& entry : catalogue.gpus) {
    const std::string family = family_of(entry.gpu);
    const bool fits = has_word(device, family) &&
                      std::to_string(entry.gpu.multiprocessors) == measured.fact("multiprocessors");
    if (fits && family.size() > longest) {
      best = &entry;
      longest = family.size();
    }
  }
  return best;
}

// Refuses an entry that the device cannot be, since its name says another family of the catalogue.
void hold_against(const HardwareCatalog& catalogue, const Measurements& measured,
                  const std::string& file, const GpuEntry& asked) {
  const std::string device = lower(measured.fact("device"));
  if (has_word(device, family_of(asked.gpu))) return;
  for (const GpuEntry& entry : catalogue.gpus) {
    if (!has_word(device, family_of(entry.gpu))) continue;
    throw InputError({file, 0, 0, ""},
                     fmt::format("measured on '{}', which is no {}; --gpu {} names its entry",
                                 measured.fact("device"), asked.gpu.name, entry.gpu.name));
  }
}

// The device beside the entry whose peaks its efficiencies are shares of, where these differ.
std::string described_device(const Measurements& measured, const GpuEntry& entry) {
  const std::string own = measured.fact("multiprocessors");
  const bool alike = has_word(lower(measured.fact("device")), family_of(entry.gpu));
  if (alike && (own.empty() || own == std::to_string(entry.gpu.multiprocessors))) return {};
  return fmt::format("'{}' of {} multiprocessors, with the peaks of {} of {}\n",
                     measured.fact("device"), own.empty() ? "unknown" : own, entry.gpu.name,
                     entry.gpu.multiprocessors);
}

const GpuEntry& catalogue_gpu(const HardwareCatalog& catalogue, const Measurements& measured,
                              const std::string& file, const std::string& asked) {
  if (!asked.empty()) {
    const YamlSource source("--gpu", asked);
    const GpuEntry& entry = catalogue.gpu(source.root());
    hold_against(catalogue, measured, file, entry);
    return entry;
  }
  if (const GpuEntry* entry = entry_of(catalogue, measured)) return *entry;
  throw InputError({file, 0, 0, ""},
                   fmt::format("the catalogue has no '{}' of {} multiprocessors; name its nearest "
                               "GPU with --gpu (pipesim list gpus)",
                               measured.fact("device"), measured.fact("multiprocessors")));
}

template <class Write>
void write_file(const std::filesystem::path& path, Write write) {
  std::ofstream out(path);
  write(out);
  if (!out.flush()) throw std::ios_base::failure("cannot write " + path.string());
}

}  // namespace

void write_calibration(const Measurements& measured, const std::string& gpu, const Fitted& fitted,
                       std::ostream& out) {
  out << fmt::format("schema: {}\ngpu: {}\nmeasured:\n", kCalibrationSchema, gpu);
  std::vector<std::string> notes;
  for (const auto& [name, value] : measured.facts) {
    if (std::find(kMeasuredKeys.begin(), kMeasuredKeys.end(), name) != kMeasuredKeys.end()) {
      out << fmt::format("  {}: {}\n", name, in_quotes(value));
    } else if (name != kUnderLoad) {
      notes.push_back(fmt::format("{} {}", name, value));
    }
  }
  if (!notes.empty()) {
    out << fmt::format("  note: {}\n", in_quotes(fmt::format("{}", fmt::join(notes, "; "))));
  }
  write_curves("curves", fitted.curves, measured, out);
  write_curves("by_size", fitted.by_size, {}, out);
  write_layers(fitted.layers, out);
  auto missing = measured.not_measured;
  missing.insert(missing.end(), fitted.not_fitted.begin(), fitted.not_fitted.end());
  if (missing.empty()) return;
  out << "not_measured:\n";
  for (const auto& [what, reason] : missing) {
    out << fmt::format("  - {}\n", in_quotes(fmt::format("{}: {}", what, reason)));
  }
}

void write_residuals(const Fitted& fitted, std::ostream& out) {
  out << "curve,point,measured_us,spread,error\n";
  for (const auto* curves : {&fitted.curves, &fitted.by_size}) {
    for (const FittedCurve& curve : *curves) {
      for (const FittedRow& row : curve.rows) {
        out << fmt::format("{},{},{:.6g},{:.4f},{:.4f}\n", curve.name, row.point,
                           row.measured.value() * 1e6, row.spread, row.error);
      }
    }
  }
  for (const FittedRow& row : fitted.layers) {
    out << fmt::format("layers,{},{:.6g},{:.4f},{:.4f}\n", row.point, row.measured.value() * 1e6,
                       row.spread, row.error);
  }
}

std::string described(const Fitted& fitted) {
  std::string text;
  for (const auto* curves : {&fitted.curves, &fitted.by_size}) {
    for (const FittedCurve& curve : *curves) {
      const auto [error, spread] = quality_of(curve);
      text += fmt::format(
          "{}\n  {} rows, error median {:.1f}%, 90% within {:.1f}%, worst {:.1f}%; repeated "
          "within {:.1f}%\n ",
          curve.name, error.rows, 100 * error.median, 100 * error.p90, 100 * error.worst,
          100 * spread);
      for (const auto& [name, value] : curve.numbers) text += fmt::format(" {} {}", name, value);
      text += '\n';
    }
  }
  text += described_layers(fitted.layers);
  for (const auto& [what, reason] : fitted.not_fitted) {
    text += fmt::format("{}: not fitted: {}\n", what, reason);
  }
  return text;
}

std::string fit_folder(const std::filesystem::path& folder, const FitSettings& settings) {
  const std::string file = (folder / "measurements.csv").string();
  const Measurements measured = read_measurements(file);
  const HardwareCatalog catalogue = read_hardware_folder(data_folder("catalog"), {file, 0, 0, ""});
  const GpuEntry& entry = catalogue_gpu(catalogue, measured, file, settings.gpu);
  Fitted fitted = fit_measurements(measured, entry.gpu, entry.interconnect, settings.nvls_ranks);
  refuse_poor(fitted);
  if (fitted.curves.empty()) {
    throw InputError({file, 0, 0, ""}, "no curve can be fitted to it\n" + described(fitted));
  }
  auto [layers, not_compared] = compared(measured, entry, fitted);
  fitted.layers = std::move(layers);
  std::ranges::move(not_compared, std::back_inserter(fitted.not_fitted));
  write_file(folder / "calibration.yaml",
             [&](std::ostream& out) { write_calibration(measured, entry.gpu.name, fitted, out); });
  write_file(folder / "residuals.csv", [&](std::ostream& out) { write_residuals(fitted, out); });
  return described_device(measured, entry) + described(fitted) + described_doubt(fitted);
}

}  // namespace pipesim::calibration
