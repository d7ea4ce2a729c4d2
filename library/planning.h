// The planner, asked as `pipesim plan` is.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/command_line.h"
#include "app/plan_options.h"

namespace pipesim {

class Planning {
 public:
  // Arguments behind `pipesim plan`. InputError, located among them.
  explicit Planning(const std::vector<std::string>& arguments);

  // One for each cluster and precision.
  [[nodiscard]] size_t size() const { return asked_.plans.size(); }
  [[nodiscard]] const std::string& cluster(size_t i) const;
  // Throws Stopped once `stop` is set. `progress` is called by one thread at a time.
  void search(size_t i, const std::atomic<bool>& stop,
              const std::function<void(const PlanProgress&)>& progress);
  // After all searches. InfeasibleError where none has found a layout.
  void check_found() const;

  [[nodiscard]] const std::vector<ClusterPlan>& plans() const { return asked_.plans; }
  [[nodiscard]] std::optional<double> tokens() const { return asked_.tokens; }
  // The document and the answer of `pipesim plan`.
  [[nodiscard]] std::string json() const;
  [[nodiscard]] std::string text() const;

 private:
  CommandLine line_;
  PlanCommand command_;
  PlanAsked asked_;
};

}  // namespace pipesim
