// A GPU from its data sheet. Numbers that the sheet leaves out follow from its generation
// (models/catalog/generations.yaml), by stated rules.
//
// A sheet gives peaks, memory and its bandwidth, and may give multiprocessors, link and power.
// Kernels keep the shares of peak and bandwidth that they have on the GPU that the generation is
// like. Collectives keep their share of the link, and training its sustained share. A derived
// number's source begins with "assumed". InputError for every mistake.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/read/hardware_entries.h"

namespace pipesim {

struct Generation {
  std::string name;
  std::string like;
  double kernels = 1;
  BytesPerSecond link{1};
  double collectives = 1;
  double message = 1;
  bool in_switch = false;
  double spread = 0;
};

std::vector<Generation> read_generations(const YamlSource& source);

// True if the map is a data sheet, not an entry with curves of its own.
bool is_data_sheet(const YamlValue& value);

GpuEntry read_data_sheet(const std::string& name, const YamlValue& value,
                         std::span<const Generation> generations, std::span<const GpuEntry> known);

// Changes `memory`, `memory_bandwidth`, `peak` and `sustained` of a GPU that otherwise stays.
// Kernels keep their shares of the changed numbers. Adds the changes to `changed`.
void change_gpu(YamlMap& of, Gpu& gpu, Interconnect& interconnect, std::vector<Sourced>& changed);

}  // namespace pipesim
