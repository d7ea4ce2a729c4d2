#include "validate/papers/controllable_memory/controllable_memory.h"

#include <fmt/format.h>

#include "validate/papers/paper_data.h"

namespace pipesim {
namespace {

void list_grid_search(std::vector<Cell>& cells, const YamlValue& table) {
  YamlMap map(table);
  const auto rows = map.find("cells");
  if (!rows) return;
  for (const YamlValue& value : rows->list()) {
    YamlMap row(value);
    const auto number = [&row](const char* key) {
      return row.require(key, "a whole number").integer(1, 1 << 24);
    };
    Cell cell;
    cell.table = "Tables 6 and 7";
    cell.cell = fmt::format("{} d={} t={} p={} seq={} batch={}, MFU %",
                            row.require("schedule", "a name").text(), number("d"), number("t"),
                            number("p"), number("seq"), number("batch"));
    cell.published = row.require("mfu_pct", "percent").number(0, 100);
    cell.digits = 2;
    cell.relative = true;
    cell.note = "not modelled: model and micro batch of the row are not known";
    cells.push_back(cell);
  }
}

}  // namespace

std::vector<Cell> compare_controllable_memory(const std::string& folder, const Location& asked) {
  using namespace controllable_memory;
  const YamlSource source = YamlSource::from_file(paper_file(folder, "controllable_memory"), asked);
  YamlMap root(source.root());
  std::vector<Cell> cells;
  if (const auto rows = root.find("table1")) compare_blocks(cells, *rows);
  if (const auto rows = root.find("table8_vmin_offsets")) {
    compare_offsets(cells, *rows, "Table 8", "v-min");
  }
  if (const auto rows = root.find("table9_vhalf_offsets")) {
    compare_offsets(cells, *rows, "Table 9", "v-half");
  }
  if (const auto panels = root.find("figure7_approximate")) compare_runs(cells, *panels, asked);
  if (const auto table = root.find("table6_7_partial")) list_grid_search(cells, *table);
  if (cells.empty()) root.value().fail("no table of this paper in this file");
  return cells;
}

}  // namespace pipesim
