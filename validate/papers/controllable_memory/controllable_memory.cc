#include "validate/papers/controllable_memory/controllable_memory.h"

#include <array>
#include <fmt/format.h>
#include <optional>

#include "validate/papers/paper_data.h"
#include "validate/papers/paper_keys.h"

namespace pipesim {
namespace {

// A table under the name that it has as long as it is not whole, or under its own.
std::optional<YamlValue> either(YamlMap& root, const std::array<const char*, 2>& names) {
  auto partial = root.find(names[0]);
  auto whole = root.find(names[1]);
  if (partial && whole) whole->fail(fmt::format("'{}' is there as well", names[0]));
  return partial ? partial : whole;
}

}  // namespace

std::vector<Cell> compare_controllable_memory(const std::string& folder, const Location& asked) {
  using namespace controllable_memory;
  const YamlSource source = YamlSource::from_file(paper_file(folder, "controllable_memory"), asked);
  YamlMap root(source.root());
  const auto blocks = root.find("table1");
  const auto slides = root.find("slides_table");
  const auto v_min = root.find("table8_vmin_offsets");
  const auto v_half = root.find("table9_vhalf_offsets");
  const auto panels = either(root, {"figure7_approximate", "figure7"});
  const auto grid = either(root, {"table6_7_partial", "table6_7"});
  finish_paper(root, "controllable_memory");
  std::vector<Cell> cells;
  if (blocks) compare_blocks(cells, *blocks);
  if (slides) compare_slides(cells, *slides);
  if (v_min) compare_offsets(cells, *v_min, "Table 8", "v-min");
  if (v_half) compare_offsets(cells, *v_half, "Table 9", "v-half");
  if (panels) compare_runs(cells, *panels, asked);
  if (grid) compare_grid(cells, *grid, asked);
  if (cells.empty()) root.value().fail("no table of this paper in this file");
  return cells;
}

}  // namespace pipesim
