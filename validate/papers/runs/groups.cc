#include "validate/papers/runs/groups.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/core/csv.h"
#include "sim/report/svg/xml.h"
#include "sim/report/text/aligned.h"

namespace pipesim {
namespace {

double middle_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double share_within(const std::vector<double>& sizes, double limit) {
  if (sizes.empty()) return 0;
  const auto count = std::ranges::count_if(sizes, [limit](double size) { return size <= limit; });
  return static_cast<double>(count) / static_cast<double>(sizes.size());
}

void summarise(RunGroup& group) {
  std::vector<double> errors;
  std::vector<double> sizes;
  for (const TrainingRun* run : group.runs) {
    errors.push_back(*run->relative_error());
    sizes.push_back(std::abs(errors.back()));
    if (sizes.back() > std::abs(group.worst)) group.worst = errors.back();
  }
  group.signed_median = middle_of(errors);
  group.median = middle_of(sizes);
  group.within_10 = share_within(sizes, 0.10);
  group.within_15 = share_within(sizes, 0.15);
}

std::vector<std::string> group_row(const RunGroup& group) {
  if (group.runs.empty()) return {group.name, fmt::format("0/{}", group.rows), "", "", "", "", ""};
  return {group.name,
          fmt::format("{}/{}", group.runs.size(), group.rows),
          fmt::format("{:+.1f}%", 100 * group.signed_median),
          fmt::format("{:.1f}%", 100 * group.median),
          fmt::format("{:+.1f}%", 100 * group.worst),
          fmt::format("{:.0f}%", 100 * group.within_10),
          fmt::format("{:.0f}%", 100 * group.within_15)};
}

}  // namespace

std::vector<RunGroup> groups_of(const TrainingRuns& all, const std::string& quantity) {
  std::vector<RunGroup> groups;
  RunGroup every{.name = "all"};
  const auto note = [](RunGroup& group, const TrainingRun& run) {
    ++group.rows;
    if (run.relative_error() && !run.anchor) group.runs.push_back(&run);
  };
  for (const TrainingRun& run : all.runs) {
    if (run.quantity != quantity) continue;
    auto found = std::ranges::find(groups, run.group(), &RunGroup::name);
    if (found == groups.end()) found = groups.insert(found, RunGroup{.name = run.group()});
    note(*found, run);
    note(every, run);
  }
  groups.push_back(every);
  for (RunGroup& group : groups) summarise(group);
  return groups;
}

std::string runs_text(const TrainingRuns& all) {
  std::string text;
  for (const char* quantity : {"seconds", "bytes"}) {
    std::vector<Row> rows{
        {quantity, "rows", "signed median", "median", "worst", "within 10%", "15%"}};
    for (const RunGroup& group : groups_of(all, quantity)) rows.push_back(group_row(group));
    text += aligned(rows) + "\n";
  }
  text += fmt::format("{} numbers of the catalogue are fitted to measured runs, {} figures here\n",
                      all.fitted, all.runs.size());
  std::map<std::string, int> reasons;
  for (const TrainingRun& run : all.runs) {
    if (!run.reason.empty()) ++reasons[run.table + ": " + run.reason];
  }
  for (const auto& [reason, rows] : reasons) {
    text += fmt::format("not modelled, {} of {}\n", rows, reason);
  }
  if (!all.unread.empty()) {
    text += fmt::format("keys that no rule reads (rows): {}\n", fmt::join(all.unread, ", "));
  }
  return text;
}

std::string runs_rows(const TrainingRuns& all) {
  std::vector<Row> rows{{"run", "group", "published", "simulated", "error"}};
  for (const TrainingRun& run : all.runs) {
    if (!run.relative_error()) continue;
    const bool bytes = run.quantity == "bytes";
    const double unit = bytes ? 1024.0 * 1024 * 1024 : 1;
    const char* name = bytes ? "GiB" : "s";
    rows.push_back({run.id, run.group(), fmt::format("{:.3f} {}", run.published / unit, name),
                    fmt::format("{:.3f} {}", *run.simulated / unit, name),
                    fmt::format("{:+.1f}%", 100 * *run.relative_error())});
  }
  return aligned(rows, 2);
}

std::string runs_json(const TrainingRuns& all) {
  auto json = nlohmann::ordered_json::array();
  const auto or_null = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  };
  for (const TrainingRun& run : all.runs) {
    json.push_back({{"paper", "runs"},
                    {"table", run.table},
                    {"cell", run.id},
                    {"group", run.group()},
                    {"quantity", run.quantity},
                    {"gpu", run.gpu},
                    {"precision", run.precision},
                    {"kind", run.kind},
                    {"framework", run.framework},
                    {"year", run.year},
                    {"gpus", run.gpus},
                    {"published", run.published > 0 ? nlohmann::ordered_json(run.published)
                                                    : nlohmann::ordered_json(nullptr)},
                    {"simulated", or_null(run.simulated)},
                    {"low", or_null(run.low)},
                    {"high", or_null(run.high)},
                    {"relative_error", or_null(run.relative_error())},
                    {"status", run.anchor      ? "anchor"
                               : run.simulated ? "simulated"
                                               : "not modelled"},
                    {"reason", run.reason}});
  }
  return json.dump(1) + "\n";
}

std::string residuals_csv(const TrainingRuns& all) {
  std::string text =
      "id,group,model,gpu,precision,kind,framework,year,software,gpus,network,"
      "published_seconds,simulated_seconds\n";
  for (const TrainingRun& run : all.runs) {
    if (run.quantity != "seconds" || !run.relative_error() || run.anchor) continue;
    text +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},{:.4g},{:.6g},{:.6g}\n", csv_field(run.id),
                    csv_field(run.group()), csv_field(run.shape), csv_field(run.gpu), run.precision,
                    run.kind, csv_field(run.framework), run.year, csv_field(run.software), run.gpus,
                    run.network, run.published, *run.simulated);
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> runs_scenarios(const TrainingRuns& all) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const TrainingRun& run : all.runs) {
    if (run.scenario.empty()) continue;
    std::string name = run.id;
    for (char& letter : name) {
      const bool plain = std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-' ||
                         letter == '.' || letter == '_';
      if (!plain) letter = '_';
    }
    if (files.empty() || files.back().first != name + ".yaml") {
      files.emplace_back(name + ".yaml", run.scenario);
    }
  }
  return files;
}

}  // namespace pipesim
