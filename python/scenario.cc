// Scenarios from files and texts, and schedules that stand in neither.
#include <fmt/format.h>
#include <memory>
#include <optional>

#include "library/scenario_text.h"
#include "python/bindings.h"
#include "sim/core/input_text.h"
#include "sim/interop/torch/csv_reader.h"
#include "sim/read/description.h"
#include "sim/scenario/gpus.h"

namespace pipesim {
namespace {

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

// A quantity in seconds, bytes, bytes or FLOP per second, or watts; nothing for what is none.
std::optional<double> quantity(const std::string& text) {
  const Location nowhere;
  const YamlSource source("", "value: 0", {{"value", text, nowhere, nowhere}});
  YamlMap map(source.root());
  const YamlValue value = map.require("value", "");
  const auto try_as = [&value](auto read) -> std::optional<double> {
    try {
      return (value.*read)().value();
    } catch (const InputError&) {
      return std::nullopt;
    }
  };
  std::optional<double> found = try_as(&YamlValue::seconds);
  if (!found) found = try_as(&YamlValue::bytes);
  if (!found) found = try_as(&YamlValue::bandwidth);
  if (!found) found = try_as(&YamlValue::flop_rate);
  if (!found) found = try_as(&YamlValue::power);
  return found;
}

}  // namespace

void bind_scenario(py::module_& module) {
  py::class_<Scenario, SharedScenario>(module, "Scenario")
      .def_readonly("file", &Scenario::file)
      .def_property_readonly("devices", [](const Scenario& s) { return s.parallel.pipeline; })
      .def_property_readonly("gpus", [](const Scenario& s) { return gpus_of(s.parallel); })
      .def_property_readonly("tensor", [](const Scenario& s) { return s.parallel.tensor; })
      .def_property_readonly("context", [](const Scenario& s) { return s.parallel.context; })
      .def_property_readonly("data", [](const Scenario& s) { return s.parallel.data; })
      .def_property_readonly("microbatches", [](const Scenario& s) { return s.batch.microbatches; })
      .def_property_readonly("micro_batch_size",
                             [](const Scenario& s) { return s.batch.micro_batch_size; })
      .def_property_readonly("seq_length", [](const Scenario& s) { return s.batch.seq_length; })
      .def_property_readonly("model",
                             [](const Scenario& s) {
                               return s.modelled ? std::optional(s.modelled->model.name)
                                                 : std::nullopt;
                             })
      .def_property_readonly("cluster",
                             [](const Scenario& s) {
                               return s.hardware ? std::optional(s.hardware->name) : std::nullopt;
                             })
      .def_property_readonly("schedules", [](const Scenario& scenario) {
        std::vector<std::string> names;
        for (const ScheduleChoice& choice : scenario.schedules) names.push_back(choice.name);
        return names;
      });
  py::class_<Made>(module, "MadeSchedule")
      .def(py::init([](std::string name, std::string file, int line, std::string text) {
             return Made{std::move(name), std::move(file), line, std::move(text)};
           }),
           py::arg("name"), py::arg("file"), py::arg("line"), py::arg("text"));
  module.def(
      "input_text",
      [](const std::string& path) {
        return read_input(path, {path, 0, 0, ""});
      },
      py::arg("path"));
  py::class_<ScenarioText, std::shared_ptr<ScenarioText>>(module, "ScenarioText")
      .def(py::init<std::string, std::string>(), py::arg("name"), py::arg("text"))
      .def("read", &ScenarioText::read, py::arg("changes"));
  module.def("quantity", quantity, py::arg("text"));
  module.def("with_passes", with_passes, py::arg("scenario"), py::arg("index"), py::arg("made"),
             py::arg("chunks"), py::arg("rows"));
  module.def("with_description", with_description, py::arg("scenario"), py::arg("index"),
             py::arg("made"), py::arg("text"));
}

}  // namespace pipesim
