// The commands that take a scenario: each returns what its command prints or writes.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <sstream>

#include "app/exported.h"
#include "app/memory_limit.h"
#include "app/temporary.h"
#include "app/tokens.h"
#include "library/exchange.h"
#include "library/feasible.h"
#include "library/simulations.h"
#include "python/bindings.h"
#include "sim/anchor/measured_runs.h"
#include "sim/anchor/report.h"
#include "sim/case/simulate.h"
#include "sim/core/data_folder.h"
#include "sim/exact/cbc.h"
#include "sim/exact/prove.h"
#include "sim/execution/evaluate.h"
#include "sim/goodput/report.h"
#include "sim/prepare/prepare.h"
#include "sim/read/reliability.h"
#include "sim/read/schedules.h"
#include "sim/report/compare/orders.h"
#include "sim/report/html/html.h"
#include "sim/report/workbench/workbench.h"
#include "sim/search/improve.h"
#include "sim/sensitivity/report.h"

namespace pipesim {
namespace {

using Refused = std::vector<std::pair<std::string, std::string>>;

// Runs `work(case)` for every schedule that can be met; ends early on Ctrl-C.
template <class Work>
Refused for_each_case(const SharedScenario& scenario, Work work) {
  std::atomic<bool> stop = false;
  const auto refused = heard_by_python(
      stop, [&] { return each_feasible(scenario, stop, work); }, [] {});
  Refused labels;
  for (const RefusedSchedule& each : refused) labels.emplace_back(each.label, each.reason);
  return labels;
}

template <class Write>
std::string text_of(Write write) {
  std::ostringstream out;
  write(out);
  return std::move(out).str();
}

py::tuple run_sensitivity(const SharedScenario& scenario, const std::vector<double>& factors) {
  std::vector<Sensitivity> all;
  const Refused refused = for_each_case(
      scenario, [&](const Case& made) { all.push_back(sensitivity_of(made, factors)); });
  std::string table;
  for (const Sensitivity& each : all)
    table += (table.empty() ? "" : "\n") + sensitivity_table(each);
  return py::make_tuple(
      text_of([&](std::ostream& out) { write_sensitivity_json(out, all, PIPESIM_VERSION); }), table,
      refused);
}

py::tuple run_goodput(const SharedScenario& scenario, const std::string& tokens, int runs,
                      std::uint64_t seed, std::optional<double> price, double max_steps) {
  const GoodputQuestion question{.tokens = read_tokens(tokens, {"tokens", 1, 1, tokens}),
                                 .runs = runs,
                                 .seed = seed,
                                 .price_per_gpu_hour = price,
                                 .max_steps = max_steps};
  if (!scenario->batch.micro_batch_size || !scenario->batch.seq_length) {
    throw InputError({scenario->file, 0, 0, ""},
                     "goodput counts tokens: the scenario needs batch.micro_batch_size and "
                     "batch.seq_length");
  }
  const Reliability reliability = scenario->reliability.value_or(usual_reliability());
  std::vector<Goodput> all;
  const Refused refused = for_each_case(scenario, [&](const Case& made) {
    all.push_back(goodput_of(made, simulate(made), reliability, question));
  });
  std::string text;
  for (const Goodput& each : all) text += (text.empty() ? "" : "\n") + goodput_text(each, question);
  return py::make_tuple(
      text_of([&](std::ostream& out) { write_goodput_json(out, all, question, PIPESIM_VERSION); }),
      text, refused);
}

// Two orders side by side, each with all that outputs show of it.
class Orders {
 public:
  // `b`: none where `a` has both.
  Orders(const SharedScenario& a, const std::optional<SharedScenario>& second) {
    const SharedScenario b = second.value_or(nullptr);
    std::atomic<bool> stop = false;
    heard_by_python(
        stop,
        [&] {
          const std::vector<Case> cases = cases_of(a, b);
          for (const Case& made : cases) {
            if (!stop) answers_.push_back({made, simulate(made)});
          }
          if (!stop) compared_ = compare_orders(answers_[0].result, answers_[1].result);
        },
        [] {});
  }
  [[nodiscard]] std::string json() const {
    return orders_json(answers_[0], answers_[1], compared_, PIPESIM_VERSION);
  }
  [[nodiscard]] std::string text() const {
    return orders_text(answers_[0], answers_[1], compared_);
  }
  [[nodiscard]] std::string svg() const { return orders_svg(answers_[0], answers_[1], compared_); }
  [[nodiscard]] std::string html() const {
    const HtmlReport report =
        orders_report(answers_[0], answers_[1], compared_, PIPESIM_VERSION, {});
    return report.page(data_folder("report"), {});
  }

 private:
  // Both schedules of one scenario, or the one of each.
  static std::vector<Case> cases_of(const SharedScenario& a, const SharedScenario& b) {
    std::vector<Case> cases;
    for (const Prepared& each : prepare_all(a)) cases.push_back(each.get());
    if (b) {
      for (const Prepared& each : prepare_all(b)) cases.push_back(each.get());
    }
    if (cases.size() != 2) {
      throw InputError({a->file, 0, 0, ""},
                       fmt::format("two orders are compared, not {}: name one schedule of each "
                                   "scenario, or two of one",
                                   cases.size()));
    }
    const auto size = [&cases](size_t i) {
      const ParallelSizes& sizes = cases[i].scenario->parallel;
      return std::pair(sizes.pipeline, sizes.pipelines);
    };
    if (size(0) != size(1)) {
      throw InputError({b ? b->file : a->file, 0, 0, ""},
                       fmt::format("orders are compared device by device: A has {} pipelines of {} "
                                   "devices, B {} of {}",
                                   size(0).second, size(0).first, size(1).second, size(1).first));
    }
    return cases;
  }

  std::vector<Answer> answers_;
  OrdersCompared compared_;
};

Case only_case(const SharedScenario& scenario, const char* what) {
  if (scenario->schedules.size() != 1) {
    throw InputError({scenario->file, 0, 0, ""},
                     fmt::format("{} takes one schedule, and this scenario has {}: choose with "
                                 "schedule=NAME",
                                 what, scenario->schedules.size()));
  }
  return prepare_first(*scenario);
}

std::optional<Bytes> limit_of(const std::optional<std::string>& text, const Case& made) {
  if (!text) return std::nullopt;
  const auto limit = activation_limit(*text, made, {"memory_limit", 1, 1, *text});
  if (const double* times = std::get_if<double>(&limit)) return *times * unit_of_limit(made);
  return std::get<Bytes>(limit);
}

struct RefinementAsked {
  std::optional<std::string> limit;
  double effort;
  std::uint64_t seed;
};

RefineOptions options_of(const RefinementAsked& asked, const std::atomic<bool>& stop) {
  RefineOptions options;
  options.effort = asked.effort;
  options.seed = asked.seed;
  options.stop = [&stop] { return stop.load(); };
  return options;
}

// The keys that improve and prove share.
py::dict row_of(const Improved& improved, const Program& order) {
  py::dict row;
  row["label"] = improved.before.label;
  row["limit_bytes"] = improved.limit.value();
  row["chunks"] = order.shape().chunks;
  row["microbatch_order"] = improved.after.microbatch_order;
  row["passes"] = passes_of(order);
  return row;
}

py::dict run_improve(const SharedScenario& scenario, const std::optional<std::string>& limit,
                     double effort, std::uint64_t seed) {
  std::atomic<bool> stop = false;
  const RefinementAsked asked{limit, effort, seed};
  const Improved improved = heard_by_python(
      stop,
      [&] {
        const Case made = only_case(scenario, "improve");
        return improve(made, limit_of(limit, made), options_of(asked, stop));
      },
      [] {});
  py::dict row = row_of(improved, *improved.after.choice.program);
  row["iteration_seconds_before"] = improved.seconds_before.value();
  row["iteration_seconds"] = improved.seconds_after.value();
  row["peak_activation_bytes_before"] = improved.peak_before.value();
  row["peak_activation_bytes"] = improved.peak_after.value();
  row["held_back"] = improved.held_back;
  row["time_seconds"] = improved.time.value();
  row["bound_seconds"] = improved.bound.value();
  row["bound_reason"] = to_text(improved.reason);
  return row;
}

const char* to_text(exact::Ended ended) {
  switch (ended) {
    case exact::Ended::kBoundReached:
      return "bound reached";
    case exact::Ended::kProven:
      return "proven";
    case exact::Ended::kTimeLimit:
      return "time limit";
    case exact::Ended::kNoAnswer:
      return "no answer";
    case exact::Ended::kTooLarge:
      return "too large";
    case exact::Ended::kNoSolver:
      return "no solver";
    case exact::Ended::kPairs:
      return "overlapped pairs";
  }
  return "";
}

py::dict run_prove(const SharedScenario& scenario, const std::optional<std::string>& limit,
                   double effort, std::uint64_t seed, int seconds) {
  std::atomic<bool> stop = false;
  const RefinementAsked asked{limit, effort, seed};
  struct Proven {
    Improved improved;
    exact::Proof proof;
  };
  const Proven proven = heard_by_python(
      stop,
      [&] {
        const Case made = only_case(scenario, "prove");
        Improved improved = improve(made, limit_of(limit, made), options_of(asked, stop), true);
        RefineOptions nothing = options_of(asked, stop);
        nothing.effort = 0;
        const Program start =
            refine(*improved.after.choice.program, improved.apart, improved.limit, nothing);
        TemporaryFolder folder;
        std::string any;
        for (const char* name : exact::kCbcFiles) any = folder.file(name);
        exact::Proof proof =
            exact::prove(start, improved.apart, improved.limit,
                         {stop ? 0 : seconds, std::filesystem::path(any).parent_path()});
        return Proven{std::move(improved), std::move(proof)};
      },
      [] {});
  py::dict row = row_of(proven.improved, proven.proof.program);
  row["proven"] = proven.proof.proven();
  row["ended"] = to_text(proven.proof.ended);
  row["time_seconds"] = proven.proof.time.value();
  row["time_seconds_before"] = proven.improved.time_before.value();
  row["bound_seconds"] = proven.proof.bound.value();
  row["gap"] = proven.proof.gap();
  return row;
}

std::string run_export(const SharedScenario& scenario, const std::string& format) {
  check_exportable(format, *scenario);
  const py::gil_scoped_release others_run;
  return exported(format, *scenario);
}

py::tuple run_import(const std::string& path, const std::string& format, const Changes& settings,
                     const std::vector<std::string>& accept, const std::string& cluster,
                     const std::string& log) {
  std::atomic<bool> stop = false;
  const api::ImportOptions options{format, settings, accept, cluster, log};
  const api::Imported made = heard_by_python(
      stop, [&] { return imported_file(path, options); }, [] {});
  return py::make_tuple(made.text, made.summary, made.complete);
}

std::string run_workbench(const SharedScenario& scenario,
                          const std::vector<std::string>& overrides) {
  Workbench bench(PIPESIM_VERSION, scenario->file, overrides);
  (void)for_each_case(scenario, [&bench](const Case& made) { bench.add(made); });
  return bench.page(data_folder("report"), {});
}

// `texts`: of each scenario what it was read from, and the values over it.
std::string run_report(const std::vector<SharedScenario>& scenarios,
                       const std::vector<std::pair<std::string, std::vector<std::string>>>& texts) {
  HtmlReport report(PIPESIM_VERSION);
  for (size_t i = 0; i < scenarios.size(); ++i) {
    std::atomic<bool> stop = false;
    std::vector<Answer> answers;
    const auto refused = heard_by_python(
        stop,
        [&] {
          return each_feasible(scenarios[i], stop, [&answers](Case made) {
            answers.push_back(answer(std::move(made)));
          });
        },
        [] {});
    report.add({scenarios[i]->file, texts.at(i).first}, texts.at(i).second, answers, refused);
  }
  return report.page(data_folder("report"), {});
}

// A scenario and the seconds that its step takes.
using Measured = std::pair<SharedScenario, double>;

py::tuple run_anchor(const std::vector<Measured>& measured) {
  std::vector<MeasuredStep> runs;
  for (const auto& [scenario, seconds] : measured) {
    check_measurable(*scenario, {scenario->file, 0, 0, ""});
    runs.push_back({*scenario, Seconds(seconds), scenario->file});
  }
  std::atomic<bool> stop = false;
  const AnchorFit fit = heard_by_python(
      stop, [&] { return fit_anchor(runs); }, [] {});
  py::dict factors;
  factors["compute"] = fit.factors.compute;
  factors["reduction"] = fit.factors.reduction;
  factors["fixed_seconds"] = fit.factors.fixed.value();
  py::list rows;
  for (size_t i = 0; i < runs.size(); ++i) {
    py::dict row;
    row["scenario"] = runs[i].name;
    row["measured_seconds"] = runs[i].measured.value();
    row["simulated_seconds"] = fit.runs[i].simulated.value();
    row["anchored_seconds"] = fit.runs[i].anchored.value();
    rows.append(row);
  }
  return py::make_tuple(factors, rows, fit.unidentified, anchor_yaml(runs, fit),
                        anchor_table(runs, fit));
}

}  // namespace

void bind_commands(py::module_& module) {
  py::class_<Orders>(module, "Orders")
      .def(py::init<const SharedScenario&, const std::optional<SharedScenario>&>(), py::arg("a"),
           py::arg("b"))
      .def("json", &Orders::json)
      .def("text", &Orders::text)
      .def("svg", &Orders::svg)
      .def("html", &Orders::html);
  module.def("sensitivity", run_sensitivity, py::arg("scenario"), py::arg("factors"));
  module.def("goodput", run_goodput, py::arg("scenario"), py::arg("tokens"), py::arg("runs"),
             py::arg("seed"), py::arg("price"), py::arg("max_steps"));
  module.def("improve", run_improve, py::arg("scenario"), py::arg("limit"), py::arg("effort"),
             py::arg("seed"));
  module.def("prove", run_prove, py::arg("scenario"), py::arg("limit"), py::arg("effort"),
             py::arg("seed"), py::arg("seconds"));
  module.def("export", run_export, py::arg("scenario"), py::arg("format"));
  module.def("import_file", run_import, py::arg("path"), py::arg("format"), py::arg("settings"),
             py::arg("accept"), py::arg("cluster"), py::arg("log"));
  module.def("workbench", run_workbench, py::arg("scenario"), py::arg("overrides"));
  module.def("report", run_report, py::arg("scenarios"), py::arg("texts"));
  module.def("anchor", run_anchor, py::arg("measured"));
}

}  // namespace pipesim
