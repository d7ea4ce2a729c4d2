// Schedules and configurations of other programs as scenarios.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "app/command_line.h"

namespace pipesim {

inline constexpr std::array<std::string_view, 6> kImportFormats{
    "torch", "passes", "kineto", "megatron", "torchtitan", "deepspeed"};

struct ImportOptions {
  std::string file;
  std::string format = {};  // one of kImportFormats; empty: as the file looks
  std::string schedule;
  std::vector<std::string> ranges;
  std::vector<std::string> settings;
  std::vector<std::string> accepted;
  std::string cluster;
  std::string log;
  std::string output;
};

// The format that is asked for, or what the file looks like by its name and first letters.
std::string format_of(const ImportOptions& options);

struct Imported {
  std::string text;      // of the scenario
  std::string summary;   // how each setting was treated, and the simulation beside a log
  bool complete = true;  // nothing is missing
};

// A file's path as the scenario at `output` has to name it, quoted for YAML.
std::string path_from(const std::string& output, const std::string& file);

// PyTorch's schedule CSV as a scenario that runs it, with unit costs for its reader to replace; or
// a framework's configuration. Without a file to write the text itself says what became of its
// settings. A complete one has been simulated. InputError where nothing can be made of it, and for
// runs, which become two files.
Imported imported(const ImportOptions& options, const CommandLine& line);

}  // namespace pipesim
