// Schedules and configurations of other programs as scenarios, and back.
#pragma once

#include <pipesim/scenario.h>
#include <string>
#include <vector>

namespace pipesim::api {

struct ImportOptions {
  // torch (a schedule CSV), megatron (arguments, a script or YAML), torchtitan or deepspeed; empty:
  // as the file looks.
  std::string format = {};
  Changes settings = {};                 // over the file's own; or variables of a script
  std::vector<std::string> accept = {};  // settings to go on without, by name
  std::string cluster = {};              // of the catalogue, that it ran on
  std::string log = {};                  // a path: a training log to compare with
};

struct Imported {
  std::string text;      // of the scenario, with what became of each setting
  std::string summary;   // the simulation, beside the log
  bool complete = true;  // nothing is missing: scenario_from_text(text) takes it
};

// Reads as `pipesim import` does. Error of kInput for what cannot be read.
Imported import_file(const std::string& path, const ImportOptions& options = {});

// The scenario's one schedule as `pipesim export` writes it: torch, csv, megatron, megatron-bridge
// or torchtitan. Error of kInfeasible for what the format cannot say.
std::string export_schedule(const Scenario& scenario, const std::string& format = "torch");

}  // namespace pipesim::api
