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

#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/report/json/json.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// Passes in all timelines of a page, about 40 bytes each. Further timelines are left out, and the
// page says so.
inline constexpr size_t kMostReportedPasses = 1'000'000;

// A file that a person named, and what it holds.
struct ReportInput {
  std::string path;
  std::string text;
};

// What `pipesim sweep` leaves in its folder.
struct SweepFolder {
  std::string path;
  ReportInput results, failed, scenario;  // results.csv, failed.csv, sweep.yaml
  bool stopped = false;                   // the tables are of a part of it
};

class HtmlReport {
 public:
  explicit HtmlReport(std::string version);
  HtmlReport(HtmlReport&&) noexcept;
  HtmlReport& operator=(HtmlReport&&) noexcept;
  ~HtmlReport();

  // The simulations of a scenario's schedules, which are not needed any more afterwards, and the
  // schedules that the scenario had beside them.
  void add(const ReportInput& input, const std::vector<std::string>& overrides,
           const Scenario& scenario, std::span<const Simulation> simulations,
           const std::vector<RefusedSchedule>& refused);
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

// InputError at `asked` when the file cannot be read.
ReportInput read_report_input(const std::string& path, const Location& asked);

}  // namespace pipesim
