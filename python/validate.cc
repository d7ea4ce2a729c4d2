// The simulator against published figures.
#include <fmt/format.h>
#include <ranges>

#include "python/bindings.h"
#include "sim/core/data_folder.h"
#include "sim/core/text.h"
#include "sim/read/band.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/runs/bands.h"
#include "validate/papers/runs/runs.h"
#include "validate/papers/validation.h"

namespace pipesim {
namespace {

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Validation& validation : validations()) all.push_back(validation.name);
  return all;
}

// The document of `pipesim validate NAME --json`.
std::string validate(const std::string& asked, const std::string& data) {
  const std::string name = validation_name(asked);
  const auto found = std::ranges::find(validations(), name, &Validation::name);
  if (found == validations().end()) {
    throw InputError({"validate", 1, 1, asked},
                     fmt::format("unknown validation '{}'{}", asked, suggestion(asked, names())));
  }
  const std::string folder = data.empty() ? data_folder("papers") : data;
  const Location where{folder, 0, 0, ""};
  std::atomic<bool> stop = false;
  const auto work = [&] {
    if (name != "runs") return validation_json({{&*found, found->compare(folder, where)}});
    TrainingRuns all = compare_measured_runs(folder, where);
    add_bands(all, catalogue_residuals(false));
    return runs_json(all);
  };
  return heard_by_python(stop, work, [] {});
}

}  // namespace

void bind_validate(py::module_& module) {
  module.def("validations", names);
  module.def("validate", validate, py::arg("asked"), py::arg("data"));
}

}  // namespace pipesim
