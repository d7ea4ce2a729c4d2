#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "sim/report/svg/elements.h"
#include "sim/report/svg/xml.h"
#include "validate/papers/validation_page.h"

namespace pipesim {
namespace {

// Pixels.
constexpr double kTop = 40, kLeft = 60, kSide = 400, kGap = 400, kStrips = 330, kRow = 13;
constexpr double kMargin = 20, kLegendLine = 16;
constexpr long kLabelled = 3;  // every third decade of the lower axis, so that labels stand apart
// Errors beyond this stand at the edge.
constexpr double kMostShare = 0.5;

// A paper's mark: hues that stay apart for colour-blind readers, and a shape that stays in grey.
struct Mark {
  const char* fill;
  const char* path;  // about 6 pixels wide, around the origin
};
constexpr std::array<Mark, 8> kMarks{{{"#0072b2", "M-3,0a3,3 0 1,0 6,0a3,3 0 1,0 -6,0z"},
                                      {"#d55e00", "M-3,-3h6v6h-6z"},
                                      {"#009e73", "M0,-4L4,3H-4z"},
                                      {"#cc79a7", "M0,-4L4,0L0,4L-4,0z"},
                                      {"#000000", "M0,4L4,-3H-4z"},
                                      {"#b8860b", "M-4,-1H-1V-4H1V-1H4V1H1V4H-1V1H-4z"},
                                      {"#56b4e9", "M-4,-2H4V2H-4z"},
                                      {"#7f3c8d", "M-2,-4H2V4H-2z"}}};

std::string mark_at(size_t paper, double x, double y, const std::string& title) {
  const Mark& mark = kMarks[paper % kMarks.size()];
  return fmt::format(
      "<path transform=\"translate({:.1f},{:.1f})\" d=\"{}\" fill=\"{}\" fill-opacity=\"0.6\">"
      "<title>{}</title></path>\n",
      x, y, mark.path, mark.fill, xml_escaped(title));
}

bool on_log_axes(const Cell& cell) {
  return cell.simulated && cell.published > 0 && *cell.simulated > 0;
}

std::string title_of(const Cell& cell) {
  return fmt::format("{}, {}: published {:.{}f}, simulated {:.{}f}", cell.table, cell.cell,
                     cell.published, cell.digits, *cell.simulated, cell.digits);
}

struct Decades {
  double least = 0;
  double most = 1;
};

Decades decades_of(const std::vector<Compared>& all) {
  double least = 1;
  double most = 1;
  for (const Compared& each : all) {
    for (const Cell& cell : each.cells) {
      if (!on_log_axes(cell)) continue;
      least = std::min(least, cell.published);
      most = std::max({most, cell.published, *cell.simulated});
    }
  }
  return {std::floor(std::log10(least)), std::max(1.0, std::ceil(std::log10(most)))};
}

std::string scatter(const std::vector<Compared>& all) {
  const Decades decades = decades_of(all);
  // Simulated values below all published ones stand at the edge.
  const auto along = [&decades](double value) {
    const double decade = std::max(std::log10(value), decades.least);
    return kSide * (decade - decades.least) / (decades.most - decades.least);
  };
  const double bottom = kTop + kSide;
  std::string svg =
      svg_words(kLeft, kTop - 12, "simulated against published, each in its cell's unit");
  for (double decade = decades.least; decade <= decades.most; ++decade) {
    const double at = along(std::pow(10, decade));
    svg += svg_line(kLeft + at, kTop, kLeft + at, bottom, "#dddddd");
    svg += svg_line(kLeft, bottom - at, kLeft + kSide, bottom - at, "#dddddd");
    if (std::lround(decade) % kLabelled == 0) {
      svg +=
          svg_words(kLeft + at, bottom + 14, fmt::format("{:g}", std::pow(10, decade)), "middle");
    }
    svg += svg_words(kLeft - 6, bottom - at + 4, fmt::format("{:g}", std::pow(10, decade)), "end");
  }
  svg += svg_line(kLeft, bottom, kLeft + kSide, kTop, "#555555");
  for (size_t paper = 0; paper < all.size(); ++paper) {
    for (const Cell& cell : all[paper].cells) {
      if (!on_log_axes(cell)) continue;
      svg += mark_at(paper, kLeft + along(cell.published), bottom - along(*cell.simulated),
                     title_of(cell));
    }
  }
  for (size_t paper = 0; paper < all.size(); ++paper) {
    const double y = bottom + 34 + kLegendLine * static_cast<double>(paper);
    svg += mark_at(paper, kLeft + 6, y - 4, all[paper].validation->title);
    svg += svg_words(kLeft + 18, y, all[paper].validation->title);
  }
  return svg;
}

// One row per table whose errors are shares; returns the lowest row's place through `bottom`.
std::string strips(const std::vector<Compared>& all, double& bottom) {
  const double left = kLeft + kSide + kGap;
  const auto at = [left](double share) {
    return left + kStrips * (std::clamp(share / kMostShare, -1.0, 1.0) + 1) / 2;
  };
  std::string marks;
  bottom = kTop + kRow;
  for (size_t paper = 0; paper < all.size(); ++paper) {
    for (const TableError& error : table_errors(all[paper].cells)) {
      if (!error.relative || error.simulated == 0) continue;
      marks += svg_words(left - 8, bottom + 3,
                         fmt::format("{}: {}", all[paper].validation->name, error.table), "end");
      for (const Cell& cell : all[paper].cells) {
        if (cell.table != error.table || !cell.simulated) continue;
        marks += mark_at(paper, at(*cell.relative_error()), bottom, title_of(cell));
      }
      bottom += kRow;
    }
  }
  std::string svg = svg_words(left, kTop - 12, "error, by table (beyond 50%: at the edge)");
  for (const double share : {-0.5, -0.25, -0.1, 0.0, 0.1, 0.25, 0.5}) {
    svg += svg_line(at(share), kTop, at(share), bottom, share == 0 ? "#555555" : "#dddddd");
    svg += svg_words(at(share), bottom + 14,
                     share == 0 ? "0" : fmt::format("{:+.0f}%", 100 * share), "middle");
  }
  bottom += 14;
  return svg + marks;
}

}  // namespace

std::string validation_drawing(const std::vector<Compared>& all) {
  double bottom = 0;
  const std::string right = strips(all, bottom);
  const double legend = kTop + kSide + 34 + kLegendLine * static_cast<double>(all.size());
  const double height = std::max(bottom, legend) + kMargin;
  const double width = kLeft + kSide + kGap + kStrips + kMargin;
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
             "viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\" "
             "font-family=\"Helvetica,Arial,sans-serif\" font-size=\"11\">\n"
             "<title>Simulated against published figures</title>\n"
             "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
             width, height) +
         scatter(all) + right + "</svg>\n";
}

}  // namespace pipesim
