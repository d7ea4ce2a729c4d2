// Measured layouts of one model on one cluster against the simulator: how well it decides.
//
// A family is every layout measured of one model, GPU, number of GPUs, batch, sequence, precision
// and framework. Layouts become scenarios by the rules of measured runs (runs/rules.yaml), are
// simulated as `pipesim run` would, and are compared by their order, not by their seconds. No rule
// and no constant reads a measurement; layouts run in parallel and stand in the file's order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/memory_fit.h"
#include "sim/core/error.h"
#include "validate/papers/runs/row.h"

namespace pipesim {

struct MeasuredLayout {
  std::string id;
  std::string words;               // "tp 2 pp 4 dp 16 mbs 1 zero 1"
  std::string sizes;               // of that, without the ZeRO stage
  std::optional<double> measured;  // seconds of a step; none: it failed
  std::optional<double> simulated;
  MemoryFit fits = MemoryFit::kNo;  // its simulated peak into the GPU's memory
  std::string reason;               // why nothing is simulated
  std::string family;               // what its family shares, as text
  // Shared with the same layout on other numbers of data ranks; empty where nothing is
  // simulated.
  std::string scaled;
  std::string scenario;
  std::string model;
  std::string gpu;
  int gpus = 0;
  bool compared = false;  // measured on half of the GPUs too
  bool unsound = false;   // and takes longer than there
};

struct LayoutFamily {
  std::string model;
  std::string gpu;
  int gpus = 0;
  std::vector<MeasuredLayout> layouts = {};  // that ran and are simulated
  std::vector<MeasuredLayout> failed = {};
  std::vector<MeasuredLayout> not_modelled = {};
  double tau = 0;              // Kendall's tau-b of measured and simulated seconds
  double regret = 0;           // measured seconds of our favourite over the best's, less 1
  double regret_of_three = 0;  // of the best of our first three
  int failed_said_to_fit = 0;
  // Pairs of measured layouts that differ in their ZeRO stage alone, and tau-b of their seconds:
  // how well a measured order repeats, which no simulated one can be expected to exceed.
  int twins = 0;
  double twins_tau = 0;
  // Layouts that were also measured on half of the GPUs, and those of them that took longer on all.
  int compared = 0;
  int unsound = 0;
};

// Kendall's tau-b in [-1, 1]; 0 where either order has no two that differ. Requires equal lengths.
double kendall_tau(const std::vector<double>& first, const std::vector<double>& second);

// Families with at least `kFewestLayouts` different layouts that ran, in the files' order.
inline constexpr int kFewestLayouts = 3;
std::vector<LayoutFamily> families_of(std::vector<MeasuredLayout> layouts);

inline bool mostly_unsound(const LayoutFamily& family) {
  return 2 * family.unsound > family.compared;
}

// The same without layouts that are unsound, and without families that mostly are. Reads
// measurements alone.
std::vector<LayoutFamily> sound_families(const std::vector<LayoutFamily>& families);

// A file of `shapes` (sizes by a model's name), `ran` and `failed`, whose rows take the rule
// `nanotron` unless `about` names another under `rule`; other keys of `about` that are no text hold
// for all rows. InputError where the file is not so.
std::vector<MeasuredLayout> measured_layouts(const std::string& path, const Location& asked);

// Rows of the project's measured runs that have seconds.
std::vector<MeasuredLayout> layouts_of_runs(const std::string& folder, const Location& asked);

// For people, at most 100 columns: a line for each family, then regret and tau of all.
std::string layouts_text(const std::vector<LayoutFamily>& families);
// Every layout on its own line, by simulated seconds.
std::string layouts_rows(const std::vector<LayoutFamily>& families);
// A list of {model, gpus, layouts, tau, regret, regret_of_three, failed_said_to_fit, gpu, failed,
// not_modelled, twins, twins_tau, compared, unsound, sound}. `sound` has {layouts, tau, regret,
// regret_of_three}, or is null where the family mostly is not.
std::string layouts_json(const std::vector<LayoutFamily>& families);
// SVG: tau and regret of every family on a line of its own.
std::string layouts_drawing(const std::vector<LayoutFamily>& families);

}  // namespace pipesim
