// A page for changing schedules by hand, with every change timed at once.
//
// The page evaluates orders itself (sim/report/html/page/workbench/evaluate.js), by the arithmetic
// of sim/execution/evaluate.h; a test holds the two equal to the last bit. It cannot plan, so this
// code gives it each schedule's order for several numbers of microbatches. The same bytes for the
// same input.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/case/case.h"
#include "sim/core/error.h"

namespace pipesim {

// Passes and copies of all orders of a schedule on the page, 5 to 20 bytes each. The order of the
// scenario's own number of microbatches is always there and may have as many.
inline constexpr size_t kMostWorkbenchPasses = 40'000;

class Workbench {
 public:
  // `file` and `overrides` name the scenario in the command that runs what the page saves.
  Workbench(const std::string& version, const std::string& file,
            const std::vector<std::string>& overrides);
  Workbench(const Workbench&) = delete;
  Workbench& operator=(const Workbench&) = delete;
  ~Workbench();

  // InfeasibleError, which says why, for a schedule that the page does not play as `pipesim run`
  // does, or that is too large for it. Otherwise it throws what make_program throws. Plans the
  // schedule for up to twice its microbatches.
  void add(const Case& made);

  // `folder` has the page's parts; InputError at `asked` when one cannot be read.
  [[nodiscard]] std::string page(const std::string& folder, const Location& asked) const;

 private:
  std::unique_ptr<nlohmann::ordered_json> data_;
};

}  // namespace pipesim
