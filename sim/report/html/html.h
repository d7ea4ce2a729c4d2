// Results as one HTML page that needs nothing else: no network, no font, no other file.
//
// The page is sim/report/html/page/page.html with its style, its scripts and one JSON object put
// in; what it shows is computed here, how it looks there. Text from outside (names of schedules and
// files, a scenario's own text) is data to the page, never markup. The same bytes for the same
// input.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/prepare/advice.h"
#include "sim/report/html/inputs.h"
#include "sim/report/html/plan.h"
#include "sim/report/json/document.h"

namespace pipesim {

// Passes in all timelines of a page, about 40 bytes each, and as many for what runs beside them.
// Further timelines are left out, and the page says so.
inline constexpr size_t kMostReportedPasses = 1'000'000;
inline constexpr size_t kMostPlannedPasses = 100'000;  // of a plan's page

class HtmlReport {
 public:
  explicit HtmlReport(std::string version);
  HtmlReport(HtmlReport&&) noexcept;
  HtmlReport& operator=(HtmlReport&&) noexcept;
  ~HtmlReport();

  // The simulations of a scenario's schedules, and the schedules that could not be run. The report
  // keeps no reference to them.
  void add(const ReportInput& input, const std::vector<std::string>& overrides,
           std::span<const Answer> answers, const std::vector<RefusedSchedule>& refused);
  // Two simulations to compare, as A and B, with the overrides of both and the comparison as
  // {sentences, marked, tables} (sim/report/compare/orders.h).
  void add_orders(const std::vector<std::string>& overrides, const Answer& a, const Answer& b,
                  nlohmann::ordered_json orders);
  // A document of `pipesim run --json`, which has no timelines, or of `pipesim plan --json`.
  // InputError when it is neither.
  void add_document(const ReportInput& input);
  // InputError when a table is none of a sweep.
  void add_sweep(const SweepFolder& sweep);

  // A plan that was added is alone on its page. Its rows, none without a plan, gain the run of
  // their scenario and a framework's configuration, or the reason why there is neither. The command
  // is the one that made the plan.
  [[nodiscard]] bool has_plan() const;
  [[nodiscard]] const std::vector<PlanRow>& plan_rows() const;
  void add_run(size_t row, const Answer& answer);
  void add_configuration(size_t row, const std::string& framework, const std::string& text);
  void add_reason(size_t row, const std::string& reason);
  void set_plan_command(const std::vector<std::string>& words);

  // The object that the page's scripts read.
  [[nodiscard]] const nlohmann::ordered_json& data() const;
  // `folder` has the page's parts; InputError at `asked` when one cannot be read.
  [[nodiscard]] std::string page(const std::string& folder, const Location& asked) const;

 private:
  void add_plan(const ReportInput& input, nlohmann::ordered_json document);

  struct Data;
  std::unique_ptr<Data> data_;
};

// The page of `pipesim serve`, which asks for plans and shows each as a report. `choices` are what
// its form offers; `folder` and errors as of HtmlReport::page.
std::string live_page(const std::string& folder, const nlohmann::ordered_json& choices,
                      const Location& asked);

}  // namespace pipesim
