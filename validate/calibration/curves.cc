#include "validate/calibration/curves.h"

#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "validate/calibration/csv_table.h"

namespace pipesim::calibration {
namespace {

CollectiveKind kind_of(const CsvTable& table) {
  static const std::array<std::pair<std::string_view, CollectiveKind>, 4> kNames{
      {{"all_reduce", CollectiveKind::kAllReduce},
       {"all_gather", CollectiveKind::kAllGather},
       {"reduce_scatter", CollectiveKind::kReduceScatter},
       {"alltoall", CollectiveKind::kAllToAll}}};
  for (const auto& [name, kind] : kNames) {
    if (table.text(0) == name) return kind;
  }
  table.fail(
      fmt::format("'{}' is no collective; valid: all_reduce, all_gather, reduce_scatter, "
                  "alltoall",
                  table.text(0)));
}

}  // namespace

std::vector<MatmulRow> read_matmuls(const std::string& path) {
  CsvTable table(path, {"m", "n", "k", "latency_ms"});
  std::vector<MatmulRow> rows;
  while (table.next()) {
    rows.push_back({{.m = table.positive<std::int64_t>(0),
                     .n = table.positive<std::int64_t>(1),
                     .k = table.positive<std::int64_t>(2)},
                    Seconds(table.positive<double>(3) * 1e-3)});
  }
  return rows;
}

std::vector<CollectiveRow> read_collectives(const std::string& path) {
  CsvTable table(path, {"op", "gpus", "bytes", "latency_us"});
  std::vector<CollectiveRow> rows;
  while (table.next()) {
    rows.push_back({kind_of(table), table.positive<int>(1), Bytes(table.positive<double>(2)),
                    Seconds(table.positive<double>(3) * 1e-6)});
  }
  return rows;
}

}  // namespace pipesim::calibration
