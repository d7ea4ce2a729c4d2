#include "app/serve_answers.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "app/plan_days.h"
#include "app/plan_page.h"
#include "app/plan_search.h"
#include "sim/core/stop.h"
#include "sim/read/reliability.h"

namespace pipesim {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr size_t kKept = 8;                // answers whose rows may be run
constexpr double kOneDay = 86400;          // seconds
constexpr double kTrained = 30 * kOneDay;  // of training, by which goodput is judged
constexpr double kMostSteps = 1e7;         // checkpoints and failures, a second of work
constexpr auto kBetween = std::chrono::milliseconds(100);  // two lines of progress

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

PlanCommand read_command(const ServeQuestion& question) {
  PlanCommand command;
  Parser parser("pipesim", "");
  add_plan_options(parser, command);
  std::vector<const char*> words;
  for (const std::string& each : question.arguments) words.push_back(each.c_str());
  (void)parser.parse(static_cast<int>(words.size()), words.data());
  return command;
}

CommandLine line_of(const ServeQuestion& question) {
  std::vector<const char*> words{"pipesim"};
  for (const std::string& each : question.arguments) words.push_back(each.c_str());
  return {static_cast<int>(words.size()), words.data()};
}

HtmlReport report_of(const std::string& document) {
  HtmlReport report(PIPESIM_VERSION);
  report.add_document({"plan", document});
  return report;
}

std::string why_none(const ClusterPlan& plan) {
  if (!plan.result.stopped) return no_fit_text(plan, read_all_hardware({}).clusters);
  return fmt::format("no layout that fits was found in {} s: `pipesim plan` searches on",
                     kMostSearchSeconds);
}

Json failures_of(const ClusterPlan& plan, double per_1000_node_days) {
  Reliability reliability = usual_reliability();
  reliability.failure_rate = per_1000_node_days / 1000 / kOneDay;
  const Planned& first = plan.result.best.front();
  const double tokens = kTrained * first.tokens_per_second_per_gpu * plan.question.gpus;
  const auto goodput = goodput_of_first(plan, tokens, reliability, kMostSteps);
  return {{"per_1000_node_days", per_1000_node_days},
          {"goodput", goodput ? Json(*goodput) : Json(nullptr)}};
}

}  // namespace

// One question's search: when it ends early, and what it tells meanwhile.
class ServeAnswers::Search {
 public:
  Search(const ServeAnswers& answers, std::uint64_t number, const HttpWriter& write)
      : answers_(answers), number_(number), write_(write) {}

  void write(const Json& json) { gone_ = !write_(line_of(json)) || gone_; }
  [[nodiscard]] bool is_unwanted() const {
    return gone_ || answers_.closed_ || answers_.newest_ != number_;
  }

  ClusterPlan find(const ServeQuestion& question) {
    const PlanCommand command = read_command(question);
    const CommandLine line = line_of(question);
    PlanAsked asked = read_plan_command(command, line);
    ClusterPlan& plan = asked.plans.front();
    const auto end = Clock::now() + std::chrono::seconds(kMostSearchSeconds);
    const PlanWatch watch{[&] { return is_unwanted() || Clock::now() > end; },
                          [&](const PlanProgress& progress) { tell(progress); },
                          [&](size_t rows) {
                            write({{"progress", {{"again", rows}}}});
                          }};
    search_plan(command, asked, watch, plan);
    return std::move(plan);
  }

 private:
  void tell(const PlanProgress& progress) {
    if (Clock::now() < next_) return;
    next_ = Clock::now() + kBetween;
    const Json best = progress.best ? Json(progress.best->value()) : Json(nullptr);
    write({{"progress",
            {{"points", progress.points}, {"decided", progress.decided}, {"best", best}}}});
  }

  const ServeAnswers& answers_;
  std::uint64_t number_;
  const HttpWriter& write_;
  Clock::time_point next_ = Clock::now();
  std::atomic<bool> gone_ = false;
};

void ServeAnswers::plan(const ServeQuestion& question, const HttpWriter& write) {
  Search search(*this, ++newest_, write);
  const std::lock_guard one(search_);
  try {
    if (!search.is_unwanted() && asked_before_ != question.arguments) {
      asked_before_.clear();
      plan_before_ = search.find(question);
      if (!plan_before_.result.stopped) asked_before_ = question.arguments;
    }
    if (search.is_unwanted()) return search.write({{"stopped", true}});
    if (plan_before_.result.best.empty()) return search.write({{"error", why_none(plan_before_)}});
    std::ostringstream document;
    write_plan_json(document, {&plan_before_, 1}, std::nullopt, PIPESIM_VERSION);
    HtmlReport report = report_of(document.str());
    report.set_plan_command(question.arguments);
    keep(document.str());
    search.write({{"answer", {{"number", last_}, {"report", report.data()}}}});
    search.write({{"failures", failures_of(plan_before_, question.failures_per_1000_node_days)}});
  } catch (const InputError& error) {
    search.write({{"error", error.message()}});
  } catch (const std::exception& error) {
    search.write({{"error", error.what()}});
  }
}

std::string ServeAnswers::run(long number, long row) {
  HtmlReport report = report_of(document_of(number));
  if (row < 0 || row >= static_cast<long>(report.plan_rows().size())) {
    throw InputError({}, fmt::format("the answer has {} rows", report.plan_rows().size()));
  }
  const std::lock_guard one(run_);
  const StopOn stopping(closed_);
  add_planned_row(report, static_cast<size_t>(row));
  return line_of(report.data()["plan"]["rows"][static_cast<size_t>(row)]);
}

std::string ServeAnswers::document_of(long number) {
  const std::lock_guard lock(answers_);
  const auto found = std::ranges::find(kept_, number, &Answered::number);
  if (found == kept_.end()) throw InputError({}, "this answer is not kept any more: ask again");
  return found->document;
}

void ServeAnswers::keep(std::string document) {
  const std::lock_guard lock(answers_);
  kept_.push_back({++last_, std::move(document)});
  if (kept_.size() > kKept) kept_.pop_front();
}

}  // namespace pipesim
