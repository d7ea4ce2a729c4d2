// The planner, asked as `pipesim plan` is.
#include <mutex>

#include "library/planning.h"
#include "python/bindings.h"

namespace pipesim {
namespace {

// The search's progress, written by one thread and read by another.
class Progress {
 public:
  void set(const PlanProgress& progress) {
    const std::lock_guard lock(mutex_);
    progress_ = progress;
  }
  void tell(const py::object& listener, const std::string& cluster) {
    if (listener.is_none()) return;
    const PlanProgress now = [this] {
      const std::lock_guard lock(mutex_);
      return progress_;
    }();
    const auto best = now.best ? std::optional(now.best->value()) : std::nullopt;
    listener(cluster, now.decided, now.points, best);
  }

 private:
  std::mutex mutex_;
  PlanProgress progress_;
};

void search(Planning& planning, size_t i, const py::object& listener) {
  std::atomic<bool> stop = false;
  Progress progress;
  const auto work = [&] {
    planning.search(i, stop, [&progress](const PlanProgress& now) { progress.set(now); });
  };
  heard_by_python(stop, work, [&] { progress.tell(listener, planning.cluster(i)); });
}

// Arguments as on the command line, behind `pipesim plan`: the document of --json, and the table.
py::tuple run_plan(const std::vector<std::string>& arguments, const py::object& listener) {
  Planning planning(arguments);
  for (size_t i = 0; i < planning.size(); ++i) search(planning, i, listener);
  planning.check_found();
  return py::make_tuple(planning.json(), planning.text());
}

}  // namespace

void bind_plan(py::module_& module) {
  module.def("plan", run_plan, py::arg("arguments"), py::arg("progress"));
}

}  // namespace pipesim
