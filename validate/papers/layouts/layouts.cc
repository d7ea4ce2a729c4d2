#include "validate/papers/layouts/layouts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "sim/case/simulate.h"
#include "sim/core/data_folder.h"
#include "sim/core/thread_team.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/runs/rules.h"

namespace pipesim {
namespace {

runs::Rules project_rules(const Location& asked) {
  return runs::read_rules(YamlSource::from_file(data_folder("papers") + "/runs/rules.yaml", asked));
}

constexpr std::array kScaled{"tp", "cp", "ep", "pp", "vpp", "mbs"};
constexpr std::array kSizes{"tp", "cp", "ep", "pp", "vpp", "dp", "mbs"};

// "tp 2 pp 4 dp 16 mbs 1": sizes above 1, and those that every layout has.
std::string sizes_of(const runs::Row& row, std::span<const char* const> keys) {
  std::string words;
  for (const char* key : keys) {
    const auto size = row.size(key);
    const bool always = std::string(key) != "cp" && std::string(key) != "ep";
    if (size && (*size > 1 || always)) words += fmt::format("{} {} ", key, *size);
  }
  if (!words.empty()) words.pop_back();
  return words;
}

// A family shares the model and the batch as the scenario has them, and the number of GPUs.
std::string family_of(const MeasuredLayout& layout, const Scenario& scenario,
                      const std::string& precision, const std::string& framework) {
  const Transformer& model = scenario.modelled->model;
  const Batch& batch = scenario.batch;
  return fmt::format("{}, {} layers of {}, {}, {}, {}, {} sequences of {}", layout.model,
                     model.num_layers, model.hidden_size, layout.gpu, precision, framework,
                     batch.microbatches * *batch.micro_batch_size * scenario.parallel.data,
                     *batch.seq_length);
}

MeasuredLayout simulated_layout(const runs::Row& row, const runs::Rules& rules, bool ran) {
  const runs::Asked asked = scenario_of(row, rules);
  MeasuredLayout layout;
  layout.id = row.id();
  layout.sizes = sizes_of(row, kSizes);
  const auto stage = row.number("zero_stage");
  const std::string zero = stage ? fmt::format(" zero {:g}", *stage) : "";
  layout.words = layout.sizes + zero;
  if (ran) layout.measured = row.number("step_s");
  layout.reason = asked.missing;
  layout.scenario = asked.scenario;
  layout.model = row.text("model");
  layout.gpu = asked.gpu;
  layout.gpus = row.size("gpus").value_or(0);
  layout.family = fmt::format("{} {} {}", layout.model, layout.gpu, layout.gpus);
  if (!asked.missing.empty()) return layout;
  try {
    const Scenario scenario = read_scenario(YamlSource(row.id(), asked.scenario));
    const Transformer& model = scenario.modelled->model;
    if (layout.model.empty()) {
      layout.model = fmt::format("{} layers of {}", model.num_layers, model.hidden_size);
    }
    const std::string& framework = rules.of(row.table()).framework;
    const std::string shared = family_of(layout, scenario, asked.precision, framework);
    layout.family = fmt::format("{} {}", layout.gpus, shared);
    layout.scaled = fmt::format("{}, {}{}", shared, sizes_of(row, kScaled), zero);
    const Result result = simulate(prepare_first(scenario));
    layout.simulated = result.report.iteration.value();
    layout.fits = result.fits.value_or(MemoryFit::kYes);
  } catch (const InputError& error) {
    layout.reason = error.message();
  } catch (const InfeasibleError& error) {
    layout.reason = error.what();
  }
  return layout;
}

struct RowThat {
  runs::Row row;
  bool ran;
};

std::vector<MeasuredLayout> simulate_all(const std::vector<RowThat>& rows,
                                         const runs::Rules& rules) {
  std::vector<MeasuredLayout> layouts(rows.size());
  ThreadTeam().run(rows.size(), [&](size_t i) {
    layouts[i] = simulated_layout(rows[i].row, rules, rows[i].ran);
  });
  return layouts;
}

struct SweepFile {
  std::string rule = "nanotron";
  std::map<std::string, YamlValue> common;
  std::map<std::string, std::map<std::string, YamlValue>> shapes;

  void read_about(const YamlValue& about) {
    if (about.is_scalar()) return;
    for (const auto& [key, value] : about.entries()) {
      if (key == "rule") {
        rule = value.text();
      } else if (key != "what" && key != "source" && key != "note") {
        common.emplace(key, value);
      }
    }
  }

  // A row of a model without a shape says its sizes itself.
  [[nodiscard]] runs::Row row(const YamlValue& value) const {
    std::map<std::string, YamlValue> shared = common;
    for (const auto& [key, field] : value.entries()) {
      const auto shape = key == "model" ? shapes.find(field.text()) : shapes.end();
      if (shape != shapes.end()) shared.insert(shape->second.begin(), shape->second.end());
    }
    return {rule, value, shared};
  }
};

// Seconds of our order against the best measured.
double regret_of(const LayoutFamily& family, size_t first) {
  std::vector<const MeasuredLayout*> order;
  double best = *family.layouts.front().measured;
  for (const MeasuredLayout& layout : family.layouts) {
    order.push_back(&layout);
    best = std::min(best, *layout.measured);
  }
  std::ranges::stable_sort(order, {}, [](const MeasuredLayout* each) { return *each->simulated; });
  double chosen = *order.front()->measured;
  for (size_t i = 1; i < std::min(first, order.size()); ++i) {
    chosen = std::min(chosen, *order[i]->measured);
  }
  return chosen / best - 1;
}

// Each layout beside the one before it of the same sizes.
void compare_twins(LayoutFamily& family) {
  std::map<std::string, double> alone;
  std::vector<double> first;
  std::vector<double> second;
  for (const MeasuredLayout& layout : family.layouts) {
    const auto [twin, added] = alone.emplace(layout.sizes, *layout.measured);
    if (added) continue;
    first.push_back(twin->second);
    second.push_back(*layout.measured);
    alone.erase(twin);
  }
  family.twins = static_cast<int>(first.size());
  family.twins_tau = kendall_tau(first, second);
}

void decide(LayoutFamily& family) {
  std::vector<double> measured;
  std::vector<double> simulated;
  for (const MeasuredLayout& layout : family.layouts) {
    measured.push_back(*layout.measured);
    simulated.push_back(*layout.simulated);
  }
  family.tau = kendall_tau(measured, simulated);
  family.regret = regret_of(family, 1);
  family.regret_of_three = regret_of(family, 3);
  family.failed_said_to_fit =
      static_cast<int>(std::ranges::count(family.failed, MemoryFit::kYes, &MeasuredLayout::fits));
  compare_twins(family);
  family.compared =
      static_cast<int>(std::ranges::count(family.layouts, true, &MeasuredLayout::compared));
  family.unsound =
      static_cast<int>(std::ranges::count(family.layouts, true, &MeasuredLayout::unsound));
}

// Marks what takes longer than the same layout on half of the GPUs.
void compare_with_half(std::vector<MeasuredLayout>& layouts) {
  std::map<std::pair<std::string, int>, double> known;
  for (const MeasuredLayout& layout : layouts) {
    if (layout.measured && !layout.scaled.empty()) {
      known.emplace(std::pair(layout.scaled, layout.gpus), *layout.measured);
    }
  }
  for (MeasuredLayout& layout : layouts) {
    if (!layout.measured || layout.gpus % 2 != 0) continue;
    const auto half = known.find({layout.scaled, layout.gpus / 2});
    layout.compared = half != known.end();
    layout.unsound = layout.compared && *layout.measured > half->second;
  }
}

size_t different_layouts(const LayoutFamily& family) {
  std::set<std::string> scenarios;
  for (const MeasuredLayout& layout : family.layouts) scenarios.insert(layout.scenario);
  return scenarios.size();
}

}  // namespace

double kendall_tau(const std::vector<double>& first, const std::vector<double>& second) {
  double agree = 0;
  double of_first = 0;
  double of_second = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const int one = (first[i] > first[j]) - (first[i] < first[j]);
      const int two = (second[i] > second[j]) - (second[i] < second[j]);
      agree += one * two;
      of_first += one * one;
      of_second += two * two;
    }
  }
  return of_first > 0 && of_second > 0 ? agree / std::sqrt(of_first * of_second) : 0;
}

std::vector<LayoutFamily> families_of(std::vector<MeasuredLayout> layouts) {
  compare_with_half(layouts);
  std::vector<LayoutFamily> families;
  std::map<std::string, size_t> known;
  for (MeasuredLayout& layout : layouts) {
    const auto [at, added] = known.emplace(layout.family, families.size());
    if (added) {
      families.push_back({.model = layout.model, .gpu = layout.gpu, .gpus = layout.gpus});
    }
    LayoutFamily& family = families[at->second];
    auto& list = !layout.simulated ? family.not_modelled
                 : layout.measured ? family.layouts
                                   : family.failed;
    list.push_back(std::move(layout));
  }
  std::erase_if(families, [](const LayoutFamily& family) {
    return different_layouts(family) < static_cast<size_t>(kFewestLayouts);
  });
  for (LayoutFamily& family : families) decide(family);
  return families;
}

std::vector<LayoutFamily> sound_families(const std::vector<LayoutFamily>& families) {
  std::vector<LayoutFamily> sound;
  for (LayoutFamily family : families) {
    if (mostly_unsound(family)) continue;
    std::erase_if(family.layouts, [](const MeasuredLayout& each) { return each.unsound; });
    if (different_layouts(family) < static_cast<size_t>(kFewestLayouts)) continue;
    decide(family);
    sound.push_back(std::move(family));
  }
  return sound;
}

std::vector<MeasuredLayout> measured_layouts(const std::string& path, const Location& asked) {
  const YamlSource source = YamlSource::from_file(path, asked);
  YamlMap map(source.root());
  SweepFile file;
  if (const auto about = map.find("about")) file.read_about(*about);
  if (const auto shapes = map.find("shapes")) {
    for (const auto& [name, shape] : shapes->entries()) {
      for (const auto& [key, value] : shape.entries()) file.shapes[name].emplace(key, value);
    }
  }
  const YamlValue ran = map.require("ran", "a list of layouts with their step_s");
  std::vector<RowThat> rows;
  for (const YamlValue& row : ran.list()) {
    rows.push_back({file.row(row), true});
    const auto seconds = rows.back().row.number("step_s");
    if (!seconds || *seconds <= 0) row.fail("expected step_s, the seconds of a step");
  }
  if (const auto failed = map.find("failed")) {
    for (const YamlValue& row : failed->list()) rows.push_back({file.row(row), false});
  }
  map.finish();
  return simulate_all(rows, project_rules(asked));
}

std::vector<MeasuredLayout> layouts_of_runs(const std::string& folder, const Location& asked) {
  const YamlSource source = YamlSource::from_file(paper_file(folder, "runs"), asked);
  std::vector<RowThat> rows;
  for (runs::Row& row : runs::read_rows(source)) {
    if (row.number("step_s").value_or(0) > 0) rows.push_back({std::move(row), true});
  }
  return simulate_all(rows, project_rules(asked));
}

}  // namespace pipesim
