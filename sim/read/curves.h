// Groups of numbers that share a source, and their curves of a GPU's kernels and collectives. The
// catalogue and calibration files have such groups.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/collective.h"
#include "models/gpu.h"
#include "models/hardware.h"
#include "sim/read/yaml.h"
#include "sim/scenario/sourced.h"

namespace pipesim {

BytesPerSecond positive_bandwidth(const YamlValue& value);
Seconds positive_seconds(const YamlValue& value);

// Numbers that share a source. Every number that is read is noted in `numbers`.
class NumberGroup {
 public:
  // The source stands beside the numbers.
  NumberGroup(YamlMap& entry, const std::string& key, std::vector<Sourced>& numbers);
  NumberGroup(const YamlValue& value, std::string key, std::vector<Sourced>& numbers);
  // `source_of` reads the source from the group.
  using SourceOf = std::function<std::string(YamlMap&)>;
  NumberGroup(const YamlValue& value, std::string key, std::vector<Sourced>& numbers,
              const SourceOf& source_of);

  YamlValue number(const std::string& key);
  std::optional<YamlValue> find(const std::string& key);
  double share(const std::string& key) { return number(key).number(1e-3, 1); }
  double factor(const std::string& key) { return number(key).number(0, 1e6); }
  // `fitted`: how many of the numbers are fitted to measured runs.
  void note_fitted() {
    if (const auto fitted = map_.find("fitted")) (void)fitted->integer(0, 64);
  }
  BytesPerSecond bandwidth(const std::string& key) { return positive_bandwidth(number(key)); }
  int count(const std::string& key, int most) {
    return static_cast<int>(number(key).integer(1, most));
  }
  void finish() const { map_.finish(); }

 private:
  YamlValue noted(const std::string& key, const YamlValue& value);

  std::string key_;
  YamlMap map_;
  std::vector<Sourced>& numbers_;
  std::string source_;
};

enum class Needed { kYes, kNo };
// Opens the group of this name; nothing where it may be left out and is.
using OpenGroup = std::function<std::optional<NumberGroup>(const std::string& key, Needed needed)>;

// Matmuls, attention and memory-bound kernels. Requires the peaks to be known; what is not opened
// stays as it is.
void read_kernel_curves(const OpenGroup& open, Gpu& gpu);
// Generations of attention beside those curves.
void read_attention_kernels(const OpenGroup& open, Gpu& gpu);
// Shares that a GPU and a node sustain; unopened ones stay as they are.
void read_sustained(const OpenGroup& open, Gpu& gpu, Interconnect& interconnect);
// Each of these shares may be left out.
void change_sustained(YamlMap& map, const std::string& source, Gpu& gpu, Interconnect& interconnect,
                      std::vector<Sourced>& numbers);
void read_collective_curves(const OpenGroup& open, Interconnect& interconnect);
// Copies to and from the host, alone and with all that share the way.
void read_host_bandwidths(NumberGroup& group, HostLink& host);

}  // namespace pipesim
