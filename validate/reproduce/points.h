// The points of a figure: what the simulator says, beside what was published.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/read/yaml.h"
#include "validate/papers/cell.h"
#include "validate/reproduce/figure.h"

namespace pipesim::reproduce {

struct Number {
  std::optional<double> ours;  // in the unit of its column
  std::optional<double> published;
};

struct Point {
  std::string panel;
  std::string series;
  Fields fields;
  std::map<std::string, Number> numbers;  // by quantity
  bool fits = true;
};

// A cell of a validation that stands in a figure: `table` is the quantity, `cell` panel and series.
struct PanelCell {
  std::string panel;
  std::string validation;
  std::string table;  // of the validation
  Cell cell;
};

struct Points {
  std::vector<std::string> fields;      // in order of their first appearance
  std::vector<std::string> quantities;  // those with published numbers too, all that CSV has
  std::vector<Point> points;
  std::vector<PanelCell> compared;
  std::vector<std::string> refused;  // points of a sweep that have no result, with the reason
};

// The changes that a part makes to its scenario.
std::vector<Override> overrides_of(const Part& part);

// The data that figures of one command share: a validation runs once.
class Sources {
 public:
  // `papers` has the validations' data, `scenarios` the sweeps; up to `processes` processes.
  Sources(std::string papers, std::string scenarios, int processes)
      : papers_(std::move(papers)), scenarios_(std::move(scenarios)), processes_(processes) {}

  // Called with what begins: a validation, a sweep.
  std::function<void(const std::string&)> progress = [](const std::string&) {};

  // InputError where a part names what is not there: a table, a metric, a field.
  Points points(const Figure& figure);
  [[nodiscard]] std::string scenario_path(const Part& part) const;

 private:
  const std::vector<Cell>& cells(const std::string& validation);
  void add_cells(Points& points, const Part& part);
  void add_sweep(Points& points, const Figure& figure, const Part& part);

  std::string papers_;
  std::string scenarios_;
  int processes_;
  std::map<std::string, std::vector<Cell>> cells_;
};

}  // namespace pipesim::reproduce
