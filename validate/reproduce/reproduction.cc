#include "validate/reproduce/reproduction.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "sim/core/csv.h"

namespace pipesim::reproduce {
namespace {

std::string text_of(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : std::string();
}

std::string field_of(const Point& point, const std::string& name) {
  const auto found = point.fields.find(name);
  return found == point.fields.end() ? std::string() : csv_field(found->second);
}

Number number_of(const Point& point, const std::string& quantity) {
  const auto found = point.numbers.find(quantity);
  return found == point.numbers.end() ? Number{} : found->second;
}

bool has_published(const Point& point) {
  return std::ranges::any_of(point.numbers,
                             [](const auto& each) { return each.second.published.has_value(); });
}

// Panels of which nothing published is known.
std::set<std::string> alone(const Points& points) {
  std::set<std::string> panels;
  for (const Point& point : points.points) panels.insert(point.panel);
  for (const Point& point : points.points) {
    if (has_published(point)) panels.erase(point.panel);
  }
  return panels;
}

std::string first_columns(const std::vector<std::string>& fields) {
  std::string text = "panel,series";
  for (const std::string& field : fields) text += ',' + csv_field(field);
  return text;
}

std::string first_cells(const std::vector<std::string>& fields, const Point& point,
                        const std::string& panel) {
  std::string text = csv_field(panel) + ',' + csv_field(point.series);
  for (const std::string& field : fields) text += ',' + field_of(point, field);
  return text;
}

// The fields that stand on an axis.
std::vector<std::string> axes_of(const Figure& figure, const Points& points) {
  std::vector<std::string> names{figure.x};
  names.insert(names.end(), figure.y.begin(), figure.y.end());
  std::erase_if(names, [&points](const std::string& name) {
    return std::ranges::find(points.fields, name) == points.fields.end();
  });
  return names;
}

// One side, ours or theirs; a point without a number of it is left out.
std::string side_csv(const Figure& figure, const Points& points,
                     std::optional<double> Number::*side) {
  const std::set<std::string> ours_alone = alone(points);
  const std::vector<std::string> fields = axes_of(figure, points);
  const std::vector<std::string> quantities = figure.quantities();
  std::string text = first_columns(fields);
  for (const std::string& quantity : quantities) text += ',' + quantity;
  text += ",fits\n";
  bool any = false;
  for (const Point& point : points.points) {
    const bool known = std::ranges::any_of(quantities, [&](const std::string& quantity) {
      return (number_of(point, quantity).*side).has_value();
    });
    if (!known) continue;
    any = true;
    const bool marked = !point.panel.empty() && ours_alone.contains(point.panel);
    text += first_cells(fields, point, point.panel + (marked ? " (ours alone)" : ""));
    for (const std::string& quantity : quantities) {
      text += ',' + text_of(number_of(point, quantity).*side);
    }
    text += point.fits ? ",yes\n" : ",no\n";
  }
  return any ? text : std::string();
}

std::string in_words(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

// The cells of one quantity, in one panel where `panel` is given.
std::vector<Cell> cells_of(const Points& points, const std::string& quantity,
                           const std::string* panel = nullptr) {
  std::vector<Cell> cells;
  for (const PanelCell& each : points.compared) {
    if (each.cell.table == quantity && (panel == nullptr || each.panel == *panel)) {
      cells.push_back(each.cell);
    }
  }
  return cells;
}

std::string distance_text(const std::vector<Cell>& cells, const TableError& error) {
  if (error.simulated == 0) {
    return fmt::format("none of {} points is modelled", error.published);
  }
  std::string text;
  if (error.relative) {
    const Cell* worst = nullptr;
    for (const Cell& cell : cells) {
      if (!cell.simulated) continue;
      if (worst == nullptr || deviation(cell) > deviation(*worst)) worst = &cell;
    }
    text = fmt::format("median {:.1f}% off over {} points, {:.1f}% at most ({})",
                       100 * error.median, error.simulated, 100 * error.worst, worst->cell);
  } else if (error.agree == error.simulated) {
    text = fmt::format("all {} points as printed", error.simulated);
    if (error.lower > 0) text += fmt::format(" or lower ({} are)", error.lower);
  } else {
    text = fmt::format("{} of {} points as printed, {:.4g} off at most", error.agree,
                       error.simulated, error.worst_difference);
  }
  const int missing = error.published - error.simulated;
  return missing > 0 ? fmt::format("{}, {} more not modelled", text, missing) : text;
}

// "PO-F over TP 8 x PP 4: +6.0% (42.9B), ..." of the first quantity.
std::string changes_text(const Figure& figure, const Points& points) {
  const std::string& quantity = figure.y.front();
  std::map<std::string, std::string> texts;
  for (const Point& point : points.points) {
    const auto base = std::ranges::find_if(points.points, [&](const Point& each) {
      return each.series == figure.relative_to && each.panel == point.panel &&
             field_of(each, figure.x) == field_of(point, figure.x);
    });
    if (base == points.points.end() || point.series == figure.relative_to) continue;
    const Number now = number_of(point, quantity);
    const Number was = number_of(*base, quantity);
    if (!now.ours || !was.ours) continue;
    std::string& text = texts[point.series];
    text += fmt::format("{}{:+.1f}% ({}{})", text.empty() ? "" : ", ",
                        100 * (*now.ours / *was.ours - 1), point.fields.at(figure.x),
                        point.fits ? "" : ", does not fit");
  }
  std::string all;
  for (const auto& [series, text] : texts) {
    all +=
        fmt::format("; {} of {} over {}: {}", in_words(quantity), series, figure.relative_to, text);
  }
  return all;
}

}  // namespace

std::string beside_csv(const Points& points) {
  std::string text = first_columns(points.fields);
  for (const std::string& quantity : points.quantities) {
    text += ',' + quantity;
    if (!cells_of(points, quantity).empty()) text += ",published_" + quantity;
  }
  text += '\n';
  for (const Point& point : points.points) {
    text += first_cells(points.fields, point, point.panel);
    for (const std::string& quantity : points.quantities) {
      const Number number = number_of(point, quantity);
      text += ',' + text_of(number.ours);
      if (!cells_of(points, quantity).empty()) text += ',' + text_of(number.published);
    }
    text += '\n';
  }
  return text;
}

std::string ours_csv(const Figure& figure, const Points& points) {
  return side_csv(figure, points, &Number::ours);
}
std::string published_csv(const Figure& figure, const Points& points) {
  return side_csv(figure, points, &Number::published);
}

std::string sentence(const Figure& figure, const Points& points) {
  std::string text = figure.name + ": ";
  bool first = true;
  for (const std::string& quantity : points.quantities) {
    const std::vector<Cell> cells = cells_of(points, quantity);
    if (cells.empty()) continue;
    text += fmt::format("{}{} {}", first ? "" : "; ", in_words(quantity),
                        distance_text(cells, table_errors(cells).front()));
    first = false;
  }
  const std::set<std::string> ours_alone = alone(points);
  if (first) {
    text += "no published points are known here, drawn with ours alone";
  } else if (ours_alone.size() == 1) {
    text += fmt::format("; ours alone: {}", *ours_alone.begin());
  } else if (!ours_alone.empty()) {
    text += fmt::format("; {} panels are ours alone", ours_alone.size());
  }
  if (!figure.relative_to.empty()) text += changes_text(figure, points);
  if (!points.refused.empty()) {
    text += fmt::format("; {} not drawn ({})", points.refused.size(), points.refused.front());
  }
  if (!figure.remark.empty()) text += "; " + figure.remark;
  return text;
}

std::vector<std::string> beyond_recorded(const Figure& figure, const Points& points,
                                         const std::optional<ExpectedErrors>& expected) {
  std::vector<std::string> sentences;
  for (const PanelCell& each : points.compared) {
    const ExpectedError* recorded = recorded_of(expected, each.validation, each.table);
    const auto complain = [&](const std::string& what) {
      sentences.push_back(fmt::format("{}, {}: {}", figure.name, each.cell.cell, what));
    };
    if (recorded == nullptr) {
      complain(fmt::format("nothing is recorded of '{}'", each.table));
    } else if (each.cell.simulated && deviation(each.cell) > recorded->worst + kErrorAllowance) {
      complain(fmt::format("{:.4f} off, recorded of '{}' is at most {:.4f}", deviation(each.cell),
                           each.table, recorded->worst));
    }
  }
  return sentences;
}

}  // namespace pipesim::reproduce
