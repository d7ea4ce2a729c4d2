// From a folder of measurements to the calibration file that the simulator reads.
//
// The folder holds measurements.csv (measurements_csv.h). Beside it come two files:
// calibration.yaml (docs/reference/calibration.md), with every curve's error and spread and whole
// layers against their curves, and residuals.csv with the error of every single point. Same
// measurements, same bytes.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>

#include "models/gpu.h"
#include "validate/calibration/fitted.h"

namespace pipesim::calibration {

void write_calibration(const Measurements& measured, const std::string& gpu, const Fitted& fitted,
                       std::ostream& out);
void write_residuals(const Fitted& fitted, std::ostream& out);
// For people: every curve with its numbers and error, and what is missing.
[[nodiscard]] std::string described(const Fitted& fitted);

struct FitSettings {
  std::string gpu;     // its name in the catalogue; empty: by the name and size of the device
  int nvls_ranks = 0;  // as of fit_measurements
};

// Fits, writes both files and returns the description. Reads the hardware catalogue of data_folder.
// InputError for measurements that cannot be read and a GPU that the catalogue does not have,
// std::ios_base::failure when a file cannot be written.
std::string fit_folder(const std::filesystem::path& folder, const FitSettings& settings);

}  // namespace pipesim::calibration
