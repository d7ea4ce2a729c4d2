// The errors of measured runs by group, as a drawing.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "sim/report/svg/elements.h"
#include "sim/report/svg/xml.h"
#include "validate/papers/runs/groups.h"

namespace pipesim {
namespace {

// Pixels; errors beyond kMost stand at the edge.
constexpr double kNames = 560, kStrip = 420, kLine = 18, kHead = 44, kEdge = 20, kMost = 0.4;

double place(double error) {
  return kNames + kStrip * (std::clamp(error / kMost, -1.0, 1.0) + 1) / 2;
}

// Every run a circle, the median a bar.
std::string group_line(const RunGroup& group, double y) {
  std::string svg =
      svg_words(kNames - 10, y + 4,
                fmt::format("{} ({} of {})", group.name, group.runs.size(), group.rows), "end");
  for (const TrainingRun* run : group.runs) {
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"#0072b2\" fill-opacity=\"0.5\">"
        "<title>{}: {:+.1f}%</title></circle>\n",
        place(*run->relative_error()), y, xml_escaped(run->id), 100 * *run->relative_error());
  }
  if (group.runs.empty()) return svg;
  return svg + fmt::format(
                   "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"2\" height=\"12\" fill=\"#d55e00\"/>\n",
                   place(group.signed_median) - 1, y - 6);
}

}  // namespace

std::string runs_drawing(const TrainingRuns& all) {
  const auto groups = groups_of(all, "seconds");
  const double bottom = kHead + kLine * static_cast<double>(groups.size());
  std::string svg = svg_words((kNames + kStrip) / 2, 16,
                              "simulated seconds against measured, each run (bar: median; beyond "
                              "40%: at the edge)",
                              "middle");
  for (const double error : {-0.4, -0.2, -0.1, 0.0, 0.1, 0.2, 0.4}) {
    svg += svg_grid_line(place(error), kHead - 6, bottom, error == 0,
                         error == 0 ? "0" : fmt::format("{:+.0f}%", 100 * error));
  }
  double y = kHead + kLine / 2;
  for (const RunGroup& group : groups) {
    svg += group_line(group, y);
    y += kLine;
  }
  return svg_page("Errors of measured runs", kNames + kStrip + kEdge, bottom + kEdge, svg);
}

}  // namespace pipesim
