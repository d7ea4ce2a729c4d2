// Rows of tables, by the names that CSV and JSON have.
#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <string>

#include "app/ranges.h"
#include "models/layer_parameters.h"
#include "python/bindings.h"
#include "sim/core/text.h"
#include "sim/planning/schedule.h"
#include "sim/read/hardware.h"
#include "sim/read/model.h"
#include "sim/report/metrics/json.h"

namespace pipesim {
namespace {

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

py::object choice_value(const std::string& text) {
  if (text.empty()) return py::none();
  if (const auto number = number_of(text)) return py::float_(*number);
  return py::str(text);
}

template <class Entries, class RowOf>
py::list rows_of(const Entries& entries, RowOf row_of) {
  py::list rows;
  for (const auto& entry : entries) rows.append(row_of(entry));
  return rows;
}

py::dict schedule_row(const Schedule* schedule) {
  py::dict row;
  row["name"] = schedule->name;
  row["placement"] =
      schedule->placement ? py::object(py::str(schedule->placement->name)) : py::none();
  row["origin"] = origin_text(*schedule);
  row["min_chunks"] = schedule->min_chunks;
  row["max_chunks"] = schedule->max_chunks;
  row["memory_limit"] = schedule->memory_limit;
  row["summary"] = schedule->summary;
  return row;
}

py::dict model_row(const Transformer& model) {
  py::dict row;
  row["name"] = model.name;
  row["parameters"] = total_parameters(model);
  row["activated_parameters"] = total_activated_parameters(model);
  row["num_layers"] = model.num_layers;
  row["hidden_size"] = model.hidden_size;
  row["source"] = model.source;
  return row;
}

py::dict gpu_row(const GpuEntry& entry) {
  const Gpu& gpu = entry.gpu;
  py::dict row;
  row["name"] = gpu.name;
  row["bf16_flop_per_second"] = gpu.peak[Precision::kBf16].value();
  row["fp8_flop_per_second"] = gpu.peak[Precision::kFp8].value();
  row["memory_bytes"] = gpu.memory.value();
  row["memory_bytes_per_second"] = gpu.memory_bandwidth.value();
  row["like"] = gpu.like.empty() ? py::object(py::none()) : py::object(py::str(gpu.like));
  row["title"] = entry.title;
  return row;
}

py::dict cluster_row(const ClusterEntry& entry) {
  const Cluster& cluster = entry.hardware.cluster;
  py::dict row;
  row["name"] = entry.hardware.name;
  row["gpu"] = entry.hardware.gpu.name;
  row["gpus_per_node"] = cluster.gpus_per_node;
  row["nics_per_node"] = cluster.nics_per_node;
  row["nic_bytes_per_second"] = entry.card.bandwidth.value();
  row["link_bytes_per_second"] = cluster.link_bandwidth.value();
  row["title"] = entry.title;
  return row;
}

py::dict metric_row(const Metric& metric) {
  py::dict row;
  row["name"] = std::string(metric.name);
  row["unit"] = std::string(kMetricUnitNames[static_cast<size_t>(metric.unit)]);
  row["label"] = std::string(metric.label);
  row["definition"] = std::string(metric.definition);
  return row;
}

// The names that `pipesim list WHAT` prints, in base units.
py::list catalogue(const std::string& what) {
  const Location where{"list", 1, 1, what};
  if (what == "schedules") return rows_of(schedules(), schedule_row);
  if (what == "models") return rows_of(catalogue_models(), model_row);
  if (what == "metrics") return rows_of(kMetrics, metric_row);
  if (what == "gpus") return rows_of(read_all_hardware(where).gpus, gpu_row);
  if (what == "clusters") return rows_of(read_all_hardware(where).clusters, cluster_row);
  const std::vector<std::string> lists{"schedules", "models",   "metrics",
                                       "gpus",      "clusters", "figures"};
  throw InputError(where, fmt::format("unknown list '{}'{}", what, suggestion(what, lists)));
}

// By the name of a function's argument, the least and the most that it may be.
py::dict ranges() {
  py::dict all;
  const auto add = [&all](const char* name, auto range) {
    all[name] = py::make_tuple(range.least, range.most);
  };
  add("runs", kTrainingRuns);
  add("max_steps", kTrainingSteps);
  add("price_per_gpu_hour", kPricePerGpuHour);
  add("points", kFrontierPoints);
  add("max_chunks", kSearchedChunks);
  add("max_splits", kSearchedSplits);
  add("max_passes", kSearchedPasses);
  add("effort", kRefinedPasses);
  add("seconds", kProofSeconds);
  add("processes", kSweepProcesses);
  add("seed", kSeeds);
  add("tokens", kTokens);
  add("factors", kSensitivityFactors);
  add("measured", kMeasuredSeconds);
  return all;
}

}  // namespace

py::object value_of(const Metric& metric, std::optional<double> value) {
  if (!value) return py::none();
  switch (metric.unit) {
    case MetricUnit::kFit:
      return py::str(std::string(fit_name(*value)));
    case MetricUnit::kFlag:
      return py::bool_(*value != 0);
    case MetricUnit::kCount:
      return py::int_(static_cast<long long>(*value));
    default:
      return py::float_(*value);
  }
}

void add_choice(py::dict& row, const ChoiceColumns& choice) {
  for (size_t i = 0; i < kChoiceColumns.size(); ++i) {
    row[py::str(std::string(kChoiceColumns[i]))] =
        kChoiceColumns[i] == "memory_limit" ? choice_value(choice[i])
        : choice[i].empty()                 ? py::object(py::none())
                                            : py::object(py::str(choice[i]));
  }
}

void add_metrics(py::dict& row, const MetricRow& metrics) {
  for (size_t i = 0; i < metrics.size(); ++i) {
    const Metric& metric = run_metrics()[i];
    row[py::str(std::string(metric.name))] = value_of(metric, metrics[i]);
  }
}

void bind_rows(py::module_& module) {
  module.def("metrics", metrics_json);
  module.def("ranges", ranges);
  module.def(
      "metric_text",
      [](const std::string& name, double value) { return metric_text(metric_named(name), value); },
      py::arg("name"), py::arg("value"));
  module.def(
      "human",
      [](double value, const std::string& unit) {
        return unit == "s" ? human(Seconds(value)) : human(Bytes(value));
      },
      py::arg("value"), py::arg("unit"));
  module.def("catalogue", catalogue, py::arg("what"));
}

}  // namespace pipesim
