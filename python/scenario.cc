// Scenarios from files and texts, and schedules that stand in neither.
#include "sim/read/scenario.h"

#include <fmt/format.h>
#include <memory>

#include "python/bindings.h"
#include "sim/interop/torch/csv_reader.h"
#include "sim/read/description.h"

namespace pipesim {
namespace {

using SharedScenario = std::shared_ptr<Scenario>;

SharedScenario read_file(const std::string& path, const Changes& changes) {
  return std::make_shared<Scenario>(
      read_scenario_file(path, {path, 0, 0, ""}, overrides_of(changes)));
}

SharedScenario read_text(const std::string& name, const std::string& text, const Changes& changes) {
  return std::make_shared<Scenario>(read_scenario(YamlSource(name, text, overrides_of(changes))));
}

// A schedule that Python made: its name, and where it stands.
struct Made {
  std::string name;
  std::string file;
  int line = 0;
  std::string text;  // the source line
};

ScheduleChoice choice_of(const Scenario& scenario, size_t index, const Made& made) {
  const ScheduleChoice& placeholder = scenario.schedules.at(index);
  return {.name = made.name,
          .where = {made.file, made.line, 1, made.text},
          .recompute = placeholder.recompute,
          .offload = placeholder.offload};
}

SharedScenario with(const Scenario& scenario, size_t index, ScheduleChoice choice) {
  auto changed = std::make_shared<Scenario>(scenario);
  changed->schedules.at(index) = std::move(choice);
  return changed;
}

// `rows`: a line per device, passes with commas between.
SharedScenario with_passes(const Scenario& scenario, size_t index, const Made& made, int chunks,
                           const std::string& rows) {
  ScheduleChoice choice = choice_of(scenario, index, made);
  choice.program =
      std::make_shared<const Program>(read_pass_rows(fmt::format("<{}>", made.name), rows));
  const Shape& shape = choice.program->shape();
  const auto check = [&choice](const char* what, int is, int expected) {
    if (is == expected) return;
    throw InputError(choice.where,
                     fmt::format("{} has {} {}: expected {}", choice.name, is, what, expected));
  };
  check("devices", shape.devices, scenario.parallel.pipeline);
  check("microbatches", shape.microbatches, scenario.batch.microbatches);
  check("chunks per device", shape.chunks, chunks);
  return with(scenario, index, std::move(choice));
}

// `text`: a description (docs/reference/descriptions.md).
SharedScenario with_description(const Scenario& scenario, size_t index, const Made& made,
                                const std::string& text) {
  ScheduleChoice choice = choice_of(scenario, index, made);
  choice.described = read_description(YamlSource(fmt::format("<{}>", made.name), text));
  return with(scenario, index, std::move(choice));
}

}  // namespace

std::vector<Override> overrides_of(const Changes& changes) {
  std::vector<Override> overrides;
  for (const auto& [path, value] : changes) {
    const std::string text = fmt::format("{}={}", path, value);
    overrides.push_back(parse_override(text, {"<change>", 1, 1, text}));
  }
  return overrides;
}

void bind_scenario(py::module_& module) {
  py::class_<Scenario, SharedScenario>(
      module, "Scenario",
      "A scenario that has been read: pipesim.scenario makes one, simulate and search take it.")
      .def_readonly("file", &Scenario::file)
      .def_property_readonly("devices", [](const Scenario& s) { return s.parallel.pipeline; })
      .def_property_readonly("microbatches", [](const Scenario& s) { return s.batch.microbatches; })
      .def_property_readonly("schedules", [](const Scenario& scenario) {
        std::vector<std::string> names;
        for (const ScheduleChoice& choice : scenario.schedules) names.push_back(choice.name);
        return names;
      });
  py::class_<Made>(module, "MadeSchedule")
      .def(py::init([](std::string name, std::string file, int line, std::string text) {
        return Made{std::move(name), std::move(file), line, std::move(text)};
      }));
  module.def("read_file", read_file);
  module.def("read_text", read_text);
  module.def("with_passes", with_passes);
  module.def("with_description", with_description);
}

}  // namespace pipesim
