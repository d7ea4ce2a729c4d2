// Generations of frameworks from models/catalog/software.yaml.
#pragma once

#include <string>
#include <vector>

#include "models/software.h"
#include "sim/read/yaml.h"
#include "sim/scenario/sourced.h"

namespace pipesim {

// A framework of some releases, with the shares that a scenario's dispatcher of tokens chooses
// among.
struct Release : Software {
  double deepep = 1;  // share of `routing` that DeepEP has, whose host learns counts in one step
};

struct SoftwareEntry {
  Release software;
  std::string title;
  std::vector<Sourced> numbers;
};

// The shipped catalogue, newest first: read with the first call.
const std::vector<SoftwareEntry>& catalogue_software();
// The same, of a catalogue's text.
std::vector<SoftwareEntry> read_software_catalogue(const YamlValue& root);

// InputError with the nearest name when there is none of this name.
const SoftwareEntry& find_software(const YamlValue& name);

// A generation by its name, or a map of its name and of numbers that stand for the catalogue's.
Release read_software(const YamlValue& value);

LaunchMode launch_mode_of(const YamlValue& value);
AttentionKernel attention_of(const YamlValue& value);

}  // namespace pipesim
