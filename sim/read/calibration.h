// A calibration file: the curves of one GPU as they were measured, in place of the catalogue's
// (docs/reference/calibration.md has the format). Read strictly; InputError for every mistake.
#pragma once

#include <string>
#include <vector>

#include "models/hardware.h"
#include "sim/read/yaml.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/sourced.h"

namespace pipesim {

inline constexpr const char* kCalibrationSchema = "pipesim-calibration/1";

// Replaces the curves of `hardware` that the file has, and their entries in `numbers`; the rest
// stays the catalogue's. A curve measured under load already shows its share of speed in training,
// so that share is dropped, and no other. InputError also where the file is of another GPU.
Calibration read_calibration(const YamlSource& source, Hardware& hardware,
                             std::vector<Sourced>& numbers);

// The same of the file that a scenario names: looked for beside it, then in the current folder.
Calibration read_calibration_file(const YamlValue& file, const std::string& scenario_file,
                                  Hardware& hardware, std::vector<Sourced>& numbers);

}  // namespace pipesim
