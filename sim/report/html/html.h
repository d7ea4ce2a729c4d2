// Results as one HTML page that needs nothing else: no network, no font, no other file.
//
// The page is sim/report/html/page/page.html with its style, its scripts and one JSON object put
// in; what it shows is computed here, how it looks there. Text from outside (names of schedules and
// files, a scenario's own text) is data to the page, never markup. The same bytes for the same
// input.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/prepare/advice.h"
#include "sim/report/html/inputs.h"
#include "sim/report/json/document.h"

namespace pipesim {

// Passes in all timelines of a page, about 40 bytes each. Further timelines are left out, and the
// page says so.
inline constexpr size_t kMostReportedPasses = 1'000'000;

class HtmlReport {
 public:
  explicit HtmlReport(std::string version);
  HtmlReport(HtmlReport&&) noexcept;
  HtmlReport& operator=(HtmlReport&&) noexcept;
  ~HtmlReport();

  // The simulations of a scenario's schedules, which are not needed any more afterwards, and the
  // schedules that the scenario had beside them.
  void add(const ReportInput& input, const std::vector<std::string>& overrides,
           std::span<const Answer> answers, const std::vector<RefusedSchedule>& refused);
  // A document of `pipesim run --json`, which has no timelines. InputError when it is none.
  void add_document(const ReportInput& input);
  // InputError when a table is none of a sweep.
  void add_sweep(const SweepFolder& sweep);

  // `folder` has the page's parts; InputError at `asked` when one cannot be read.
  [[nodiscard]] std::string page(const std::string& folder, const Location& asked) const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace pipesim
