// The module pipesim._pipesim: exceptions, and what the other files here bind.
#include <exception>
#include <utility>

#include "python/bindings.h"
#include "sim/core/error.h"
#include "sim/core/text.h"

namespace pipesim {
namespace {

// `arguments`: of the class of that name in pipesim._errors.
template <class... Arguments>
void set_error(const char* name, const Arguments&... arguments) {
  const py::object type = py::module_::import("pipesim._errors").attr(name);
  PyErr_SetObject(type.ptr(), type(arguments...).ptr());
}

void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(std::move(thrown));
  } catch (const InputError& error) {
    const Location& where = error.where();
    set_error("InputError", printable(error.what()), where.file, where.line, where.column,
              std::string(where.text.view()));
  } catch (const InfeasibleError& error) {
    set_error("InfeasibleError", printable(error.what()));
  }
}

}  // namespace
}  // namespace pipesim

PYBIND11_MODULE(_pipesim, module) {
  pybind11::register_exception_translator(pipesim::translate);
  module.attr("__version__") = PIPESIM_VERSION;
  pipesim::bind_rows(module);
  pipesim::bind_scenario(module);
  pipesim::bind_timeline(module);
  pipesim::bind_simulate(module);
  pipesim::bind_commands(module);
  pipesim::bind_search(module);
  pipesim::bind_sweep(module);
  pipesim::bind_plan(module);
  pipesim::bind_validate(module);
}
