// The figures and tables that `pipesim reproduce` makes, as data: the source of the points of each,
// their names and their drawing (validate/reproduce/figures/*.yaml, a file per paper).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/error.h"
#include "validate/reproduce/pattern.h"

namespace pipesim::reproduce {

// A number of a point, from cells of a validation.
struct Quantity {
  std::string name;                 // a column: mfu, peak_activation_bytes, ...
  std::vector<std::string> tables;  // of the validation
  std::vector<std::string> fitted;  // others, of cells that are fitted to: drawn, not counted
  Pattern cell;                     // what the cells' names say
  double scale = 1;                 // of the column's unit, what a cell's number is multiplied by
};

// How many bytes and FLOPs the output layer takes next to a transformer layer.
struct LayerRatio {
  std::vector<std::string> models;  // of the catalogue
  std::vector<long> vocabularies;   // none: the model's own
};

// Where some points come from: the cells of a validation, a sweep, or layers alone.
struct Part {
  std::string validation;
  std::vector<Quantity> quantities;
  std::string scenario;          // a file of scenarios/paper
  std::vector<std::string> set;  // path.to.key=value, over what it says
  LayerRatio ratio;
  std::map<std::string, std::string> names;             // what the paper calls our schedules
  std::vector<std::pair<std::string, Pattern>> fields;  // more of them, made of the others
  Pattern panel;
  Pattern series;
  Location where;

  // The paper's name of a schedule; ours where it has none.
  [[nodiscard]] std::string paper_name(const std::string& schedule) const;
};

struct Figure {
  std::string name;  // "controllable-memory/figure7"
  std::string title;
  std::string draw;            // a kind of `pipesim plot`
  std::string x;               // a field or a quantity
  std::vector<std::string> y;  // quantities; of a heat map a field
  std::string value;           // of a heat map
  std::string relative_to;     // the series that the others are compared with
  std::string remark;          // stands behind the sentence
  std::vector<Part> parts;

  // Quantities that the drawing needs, in order.
  [[nodiscard]] std::vector<std::string> quantities() const;
  // True where a point may have a published one beside it.
  [[nodiscard]] bool has_published() const;
};

// The figures of all papers, in the order of the papers and of their files. InputError where a file
// is not as expected.
std::vector<Figure> read_figures(const std::string& folder);

}  // namespace pipesim::reproduce
