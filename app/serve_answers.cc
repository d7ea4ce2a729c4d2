#include "app/serve_answers.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
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

constexpr size_t kKept = 8;                    // answers whose rows may be run
constexpr double kToldTokens = 1e12;           // that days are told for
constexpr double kTrained = 30 * kDaySeconds;  // of training, by which goodput is judged
constexpr double kMostSteps = 1e7;             // checkpoints and failures, a second of work
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

// Days of a training run by the first row, undisturbed and with failures.
Json failures_of(const ClusterPlan& plan, double per_1000_node_days) {
  Reliability reliability = usual_reliability();
  reliability.failure_rate = per_1000_node_days / kThousandNodeDays;
  const Planned& first = plan.result.best.front();
  const double tokens = kTrained * first.tokens_per_second_per_gpu * plan.question.gpus;
  const auto goodput = goodput_of_first(plan, tokens, reliability, kMostSteps);
  const double days = budget_of(plan.question, first, kToldTokens).days;
  return {{"per_1000_node_days", per_1000_node_days},
          {"tokens", kToldTokens},
          {"days", days},
          {"days_with_failures", goodput ? Json(days / *goodput) : Json(nullptr)},
          {"goodput", goodput ? Json(*goodput) : Json(nullptr)}};
}

std::string document_of_plan(const ClusterPlan& plan) {
  std::ostringstream document;
  write_plan_json(document, {&plan, 1}, std::nullopt, PIPESIM_VERSION);
  return document.str();
}

}  // namespace

// One question's search. A second thread writes its progress, and so notices a reader that has
// gone.
class ServeAnswers::Search {
 public:
  Search(const ServeAnswers& answers, std::uint64_t number, const HttpWriter& write)
      : answers_(answers), number_(number), write_(write) {}

  void write(const Json& json) {
    const std::lock_guard one(writing_);
    if (!write_(line_of(json))) unwanted_ = true;
  }
  // Notices a newer question and close(). Returns true once nobody waits for the answer.
  bool look() {
    if (answers_.closed_ || answers_.newest_ != number_) unwanted_ = true;
    return unwanted_;
  }

  // Throws Stopped once it is unwanted.
  ClusterPlan find(const ServeQuestion& question) {
    const std::jthread telling([this](const std::stop_token& over) { tell(over); });
    const PlanCommand command = read_command(question);
    const CommandLine line = line_of(question);
    PlanAsked asked = read_plan_command(command, line);
    ClusterPlan& plan = asked.plans.front();
    const auto end = Clock::now() + std::chrono::seconds(kMostSearchSeconds);
    const PlanWatch watch{
        [&] { return unwanted_ || Clock::now() > end; },
        [&](const PlanProgress& progress) {
          const Json best = progress.best ? Json(progress.best->value()) : Json(nullptr);
          set({{"points", progress.points}, {"decided", progress.decided}, {"best", best}});
        },
        [&](size_t rows) {
          set({{"again", rows}});
        },
        unwanted_};
    search_plan(command, asked, watch, plan);
    return std::move(plan);
  }

 private:
  void set(Json progress) {
    const std::lock_guard one(setting_);
    progress_ = std::move(progress);
  }

  void tell(const std::stop_token& over) {
    const auto begin = Clock::now();
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, over, kBetween, [&] { return over.stop_requested(); })) {
      if (look()) return;
      const std::chrono::duration<double> seconds = Clock::now() - begin;
      Json progress{{"seconds", seconds.count()}};
      {
        const std::lock_guard one(setting_);
        progress.update(progress_);
      }
      write({{"progress", progress}});
    }
  }

  const ServeAnswers& answers_;
  std::uint64_t number_;
  const HttpWriter& write_;
  std::mutex writing_, setting_;
  Json progress_ = Json::object();  // held by `setting_`
  std::atomic<bool> unwanted_ = false;
};

void ServeAnswers::plan(const ServeQuestion& question, const HttpWriter& write) {
  Search search(*this, ++newest_, write);
  const std::lock_guard one(search_);
  try {
    if (!search.look() && asked_before_ != question.arguments) {
      asked_before_.clear();
      plan_before_ = search.find(question);
      if (!plan_before_.result.best.empty()) keep(document_of_plan(plan_before_));
      if (!plan_before_.result.stopped) asked_before_ = question.arguments;
    }
    if (search.look()) return search.write({{"stopped", true}});
    if (plan_before_.result.best.empty()) return search.write({{"error", why_none(plan_before_)}});
    const Answered& last = kept_.back();  // no other search keeps one
    HtmlReport report = report_of(last.document);
    report.set_plan_command(question.arguments);
    search.write({{"answer", {{"number", last.number}, {"report", report.data()}}}});
    search.write({{"failures", failures_of(plan_before_, question.failures_per_1000_node_days)}});
  } catch (const Stopped&) {
    search.write({{"stopped", true}});
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
