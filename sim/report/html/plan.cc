#include "sim/report/html/plan.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "sim/report/html/parsed.h"

namespace pipesim {
namespace {

using Json = nlohmann::ordered_json;
using Keys = std::span<const char* const>;

constexpr std::array kPlanTexts{"model", "cluster"};
constexpr std::array kPlanNumbers{"gpus", "global_batch_size", "seq_length", "memory_limit_bytes"};
constexpr std::array kRowTexts{"schedule", "recompute", "vocabulary", "limited_by"};
constexpr std::array kOptionalTexts{"label", "scenario", "data_parallel_sharding_strategy", "file"};
constexpr std::array kRowNumbers{"tensor_model_parallel_size",
                                 "context_parallel_size",
                                 "expert_model_parallel_size",
                                 "expert_tensor_parallel_size",
                                 "pipeline_model_parallel_size",
                                 "virtual_pipeline_model_parallel_size",
                                 "data_parallel_size",
                                 "micro_batch_size",
                                 "iteration_seconds",
                                 "tokens_per_second_per_gpu",
                                 "mfu",
                                 "peak_memory_bytes",
                                 "headroom_bytes",
                                 "bubble"};
constexpr std::array kOptionalNumbers{"mfu_causal", "days", "gpu_hours", "price"};
constexpr std::array kFactorNumbers{"factor", "memory_limit_bytes"};
constexpr std::array kChangeNumbers{"iteration_seconds", "tokens_per_second_per_gpu"};

bool is_text(const Json& value) { return value.is_string(); }
bool is_number(const Json& value) { return value.is_number(); }
bool is_text_or_null(const Json& value) { return value.is_string() || value.is_null(); }
bool is_flag(const Json& value) { return value.is_boolean(); }
bool is_texts(const Json& value) { return value.is_array() && std::ranges::all_of(value, is_text); }
bool is_numbers(const Json& value) {
  return value.is_object() && std::ranges::all_of(value, is_number);
}
bool is_contended(const Json& value) {
  return value.is_null() || (value.is_object() && value.contains("iteration_seconds") &&
                             value["iteration_seconds"].is_number());
}
bool is_band(const Json& value) {
  if (value.is_null()) return true;
  if (!value.is_object() || !value.contains("iteration_seconds")) return false;
  const Json& ends = value["iteration_seconds"];
  const bool two = ends.is_array() && ends.size() == 2 && std::ranges::all_of(ends, is_number);
  return two && is_number(value.value("level", Json())) && is_number(value.value("rows", Json())) &&
         is_text(value.value("group", Json()));
}

// Looks at values by their names, and keeps the first that is not what it should be.
class Check {
 public:
  explicit Check(const ReportInput& input) : input_(input) {}

  void object(const Json& value, const std::string& name) const {
    if (!value.is_object()) refuse(name + " is no object");
  }
  void list(const Json& value, const char* key) const {
    if (!value.contains(key) || !value[key].is_array())
      refuse(fmt::format("has no list '{}'", key));
  }
  template <class Test>
  void all(const Json& value, Keys keys, Test test) const {
    for (const char* key : keys) one(value, key, test);
  }
  template <class Test>
  void one(const Json& value, const char* key, Test test) const {
    if (!value.contains(key)) refuse(fmt::format("a part has no '{}'", key));
    if (!test(value[key])) refuse(fmt::format("'{}' is not what it should be", key));
  }
  template <class Test>
  void any(const Json& value, Keys keys, Test test) const {
    for (const char* key : keys) {
      if (value.contains(key)) one(value, key, test);
    }
  }

  void row(const Json& row) const {
    object(row, "a layout");
    all(row, kRowTexts, is_text);
    all(row, kRowNumbers, is_number);
    any(row, kOptionalTexts, is_text_or_null);
    any(row, kOptionalNumbers, is_number_or_null);
    one(row, "offload", is_flag);
    one(row, "runs_on", is_texts);
    one(row, "shares", is_numbers);
    one(row, "contended", is_contended);
    one(row, "band", is_band);
  }

  void what_if(const Json& what_if) const {
    object(what_if, "a what-if");
    one(what_if, "change", is_text);
    one(what_if, "gpus", is_number);
    const bool factored =
        what_if.contains("quantity") &&
        !what_if.value("factor", Json()).is_null();  // those of old documents are not
    if (factored) {
      one(what_if, "quantity", is_text);
      all(what_if, kFactorNumbers, is_number);
    }
    if (!what_if.contains("layout") || what_if["layout"].is_null()) return;
    if (factored) return row(what_if["layout"]);
    object(what_if["layout"], "a what-if's layout");
    all(what_if["layout"], kChangeNumbers, is_number);
  }

  void plan(const Json& plan) const {
    object(plan, "a plan");
    all(plan, kPlanTexts, is_text);
    all(plan, kPlanNumbers, is_number);
    for (const char* key : {"layouts", "what_ifs"}) list(plan, key);
    for (const Json& each : plan["layouts"]) row(each);
    for (const Json& each : plan["what_ifs"]) what_if(each);
    if (plan.contains("baseline") && !plan["baseline"].is_null()) row(plan["baseline"]);
  }

  [[noreturn]] void refuse(const std::string& what) const {
    refuse_document(input_, what, "a document of 'pipesim plan --json'");
  }

 private:
  const ReportInput& input_;
};

PlanRow row_of(const Json& row) {
  PlanRow made;
  const auto scenario = row.find("scenario");
  if (scenario != row.end() && scenario->is_string()) made.scenario = scenario->get<std::string>();
  made.runs_on = row["runs_on"].get<std::vector<std::string>>();
  return made;
}

}  // namespace

void check_plan(const ReportInput& input, const Json& document) {
  const Check check(input);
  check.object(document.value("pipesim", Json()), "'pipesim'");
  check.list(document, "plans");
  for (const Json& plan : document["plans"]) check.plan(plan);
}

std::vector<PlanRow> rows_of_plan(const Json& document) {
  std::vector<PlanRow> rows;
  std::vector<size_t> wanted, others;
  for (const Json& plan : document["plans"]) {
    std::optional<double> least;
    for (const Json& layout : plan["layouts"]) {
      const double peak = layout["peak_memory_bytes"];
      if (!least || peak < *least) {
        (least ? others : wanted).push_back(rows.size());
        least = peak;
      }
      rows.push_back(row_of(layout));
    }
    if (plan.contains("baseline") && !plan["baseline"].is_null()) {
      wanted.push_back(rows.size());
      rows.push_back(row_of(plan["baseline"]));
    }
  }
  wanted.insert(wanted.end(), others.begin(), others.end());
  if (wanted.size() > kMostDrawnRows) wanted.resize(kMostDrawnRows);
  for (const size_t row : wanted) rows[row].drawn = !rows[row].scenario.empty();
  return rows;
}

}  // namespace pipesim
