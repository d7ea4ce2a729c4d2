// The errors of measured runs by group, as a drawing.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "sim/report/svg/xml.h"
#include "validate/papers/runs/groups.h"

namespace pipesim {
namespace {

// Pixels; errors beyond kMost stand at the edge.
constexpr double kNames = 560, kStrip = 420, kLine = 18, kHead = 44, kEdge = 20, kMost = 0.4;

double place(double error) {
  return kNames + kStrip * (std::clamp(error / kMost, -1.0, 1.0) + 1) / 2;
}

std::string label_at(double x, double y, const std::string& text, const char* anchor) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     xml_escaped(text));
}

std::string grid_line(double error, double bottom) {
  return fmt::format(
      "<line x1=\"{0:.1f}\" y1=\"{1:.0f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\"/>\n",
      place(error), kHead - 6, bottom, error == 0 ? "#555555" : "#dddddd");
}

// Every run a circle, the median a bar.
std::string group_line(const RunGroup& group, double y) {
  std::string svg =
      label_at(kNames - 10, y + 4,
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
  std::string svg = label_at((kNames + kStrip) / 2, 16,
                             "simulated seconds against measured, each run (bar: median; beyond "
                             "40%: at the edge)",
                             "middle");
  for (const double error : {-0.4, -0.2, -0.1, 0.0, 0.1, 0.2, 0.4}) {
    svg += grid_line(error, bottom);
    svg += label_at(place(error), kHead - 12,
                    error == 0 ? "0" : fmt::format("{:+.0f}%", 100 * error), "middle");
  }
  double y = kHead + kLine / 2;
  for (const RunGroup& group : groups) {
    svg += group_line(group, y);
    y += kLine;
  }
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
             "viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\" font-family=\"sans-serif\" "
             "font-size=\"12\">\n<title>Errors of measured runs</title>\n<rect width=\"100%\" "
             "height=\"100%\" fill=\"#ffffff\"/>\n",
             kNames + kStrip + kEdge, bottom + kEdge) +
         svg + "</svg>\n";
}

}  // namespace pipesim
