#include "validate/reproduce/points.h"

#include <algorithm>
#include <fmt/format.h>

#include "models/layer_parameters.h"
#include "models/layer_work.h"
#include "sim/core/text.h"
#include "sim/prepare/prepare.h"
#include "sim/read/model.h"
#include "sim/read/scenario.h"
#include "validate/papers/validation.h"
#include "validate/reproduce/evaluated.h"

namespace pipesim::reproduce {
namespace {

void add_name(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

std::string filled(const Pattern& pattern, const Fields& fields, const Part& part) {
  std::string missing;
  std::string text = pattern.fill(fields, &missing);
  if (missing.empty()) return text;
  std::vector<std::string> known;
  for (const auto& [name, value] : fields) known.push_back(name);
  throw InputError(part.where, fmt::format("no field '{}'{}", missing, suggestion(missing, known)));
}

// The point with these fields, or a new one.
Point& point_of(Points& points, Fields fields, const Part& part, size_t first) {
  for (const auto& [name, pattern] : part.fields) {
    add_name(points.fields, name);
    fields[name] = filled(pattern, fields, part);
  }
  for (size_t i = first; i < points.points.size(); ++i) {
    if (points.points[i].fields == fields) return points.points[i];
  }
  Point point;
  point.panel = filled(part.panel, fields, part);
  point.series = filled(part.series, fields, part);
  point.fields = std::move(fields);
  points.points.push_back(std::move(point));
  return points.points.back();
}

// Cells that stand for information beside those that count.
bool counts(const std::vector<Cell>& cells, const Cell& cell) {
  const auto bound = [](const Cell& each) {
    return !each.simulated || each.must_agree || each.relative;
  };
  return bound(cell) || std::ranges::none_of(cells, [&](const Cell& each) {
           return each.table == cell.table && bound(each);
         });
}

void check_tables(const std::vector<Cell>& cells, const Quantity& quantity, const Part& part) {
  std::vector<std::string> tables;
  for (const Cell& cell : cells) add_name(tables, cell.table);
  std::vector<std::string> named = quantity.tables;
  named.insert(named.end(), quantity.fitted.begin(), quantity.fitted.end());
  for (const std::string& table : named) {
    if (std::ranges::find(tables, table) != tables.end()) continue;
    throw InputError(part.where, fmt::format("'{}' has no table '{}'{}", part.validation, table,
                                             suggestion(table, tables)));
  }
}

constexpr int kSequence = 4096;  // tokens, for layer ratios

double ratio(const Transformer& model, const std::string& quantity) {
  LayerContext context;
  context.seq_length = kSequence;
  context.flash_attention = false;  // every score is counted, as the papers do
  const auto of = [&](LayerKind kind) {
    if (quantity == "output_parameters_over_layer") return parameters(model, kind);
    return flops(layer_work(model, kind, PassKind::kF, context)).value();
  };
  return of(LayerKind::kOutput) / of(LayerKind::kDense);
}

// One schedule of one scenario.
struct Simulated {
  std::string schedule;
  Fields fields;  // the swept keys
  MetricRow metrics{};
  std::string refusal;  // why there are no metrics; empty: there are
};

Simulated simulated_of(const Prepared& prepared, const Scenario& scenario) {
  Simulated simulated;
  simulated.schedule = prepared.choice.name;
  try {
    simulated.metrics = metrics_of(scenario, simulate(prepared.get()));
  } catch (const InfeasibleError& error) {
    simulated.refusal = error.what();
  }
  return simulated;
}

void add_result(Points& points, const Figure& figure, const Part& part, size_t first,
                Simulated simulated) {
  add_name(points.fields, "schedule");
  simulated.fields["schedule"] = part.paper_name(simulated.schedule);
  const auto quantities = figure.quantities();
  for (const std::string& quantity : quantities) add_name(points.quantities, quantity);
  if (!simulated.refusal.empty()) {
    const std::string panel = filled(part.panel, simulated.fields, part);
    points.refused.push_back(fmt::format("{}{}{}: {}", panel, panel.empty() ? "" : ", ",
                                         filled(part.series, simulated.fields, part),
                                         simulated.refusal));
    return;
  }
  Point& point = point_of(points, simulated.fields, part, first);
  for (const std::string& quantity : quantities) {
    point.numbers[quantity].ours = metric(simulated.metrics, quantity);
  }
  point.fits = metric(simulated.metrics, "fits").value_or(1) != 0;
}

void add_ratios(Points& points, const Figure& figure, const Part& part) {
  add_name(points.fields, "model");
  add_name(points.fields, "vocab_size");
  for (const std::string& name : part.ratio.models) {
    const Transformer found = find_model(name, part.where);
    std::vector<long> sizes = part.ratio.vocabularies;
    if (sizes.empty()) sizes.push_back(found.vocab_size);
    for (const long size : sizes) {
      Transformer model = found;
      model.vocab_size = static_cast<int>(size);
      const Fields fields{{"model", name}, {"vocab_size", std::to_string(size)}};
      Point& point = point_of(points, fields, part, points.points.size());
      for (const std::string& quantity : figure.quantities()) {
        add_name(points.quantities, quantity);
        point.numbers[quantity].ours = ratio(model, quantity);
      }
    }
  }
}

Fields fields_of(const Cell& cell, const Quantity& quantity, const Part& part) {
  const auto fields = quantity.cell.match(cell.cell);
  if (fields) return *fields;
  throw InputError(part.where,
                   fmt::format("the cell '{}' of '{}' has another form than the pattern of {}",
                               cell.cell, cell.table, quantity.name));
}

}  // namespace

const std::vector<Cell>& Sources::cells(const std::string& validation) {
  const auto found = cells_.find(validation);
  if (found != cells_.end()) return found->second;
  progress(validation);
  const auto& all = validations();
  const auto chosen = std::ranges::find(all, validation, &Validation::name);
  return cells_[validation] = chosen->compare(papers_, {});
}

void Sources::add_cells(Points& points, const Part& part) {
  const std::vector<Cell>& all = cells(part.validation);
  const size_t first = points.points.size();
  for (const Quantity& quantity : part.quantities) {
    check_tables(all, quantity, part);
    add_name(points.quantities, quantity.name);
    for (const std::string& field : quantity.cell.names()) add_name(points.fields, field);
    for (const Cell& cell : all) {
      const bool fitted = std::ranges::find(quantity.fitted, cell.table) != quantity.fitted.end();
      if (!fitted && std::ranges::find(quantity.tables, cell.table) == quantity.tables.end()) {
        continue;
      }
      if (!counts(all, cell)) continue;
      Point& point = point_of(points, fields_of(cell, quantity, part), part, first);
      Number& number = point.numbers[quantity.name];
      if (cell.simulated) number.ours = *cell.simulated * quantity.scale;
      number.published = cell.published * quantity.scale;
      if (quantity.name == "out_of_memory") point.fits = number.ours.value_or(0) == 0;
      if (fitted) continue;
      PanelCell compared{point.panel, part.validation, cell.table, cell};
      compared.cell.table = quantity.name;
      compared.cell.cell = point.panel.empty() ? point.series : point.panel + ", " + point.series;
      points.compared.push_back(std::move(compared));
    }
  }
}

std::vector<Override> overrides_of(const Part& part) {
  std::vector<Override> overrides;
  for (const std::string& each : part.set) {
    overrides.push_back(parse_override(each, part.where));
    overrides.back().value_where = part.where;
  }
  return overrides;
}

std::string Sources::scenario_path(const Part& part) const {
  return fmt::format("{}/paper/{}", scenarios_, part.scenario);
}

void Sources::add_sweep(Points& points, const Figure& figure, const Part& part) {
  progress(part.scenario);
  const std::string path = scenario_path(part);
  const auto overrides = overrides_of(part);
  const YamlSource source = YamlSource::from_file(path, part.where, overrides);
  const bool several = YamlMap(source.root()).find("sweep").has_value();
  const size_t first = points.points.size();
  if (!several) {
    const auto scenario = std::make_shared<const Scenario>(read_scenario(source));
    for (const Prepared& prepared : prepare_all(scenario)) {
      add_result(points, figure, part, first, simulated_of(prepared, *scenario));
    }
    return;
  }
  const Sweep sweep = Sweep::read(path, part.where, overrides);
  for (const std::string& key : sweep.keys()) add_name(points.fields, key);
  for (const PointResult& result : evaluated(sweep, processes_)) {
    Simulated simulated;
    simulated.schedule = result.choice.front();
    simulated.metrics = result.metrics;
    simulated.refusal = result.reason;
    const auto values = sweep.values(sweep.setting(result.point));
    for (size_t i = 0; i < values.size(); ++i) simulated.fields[sweep.keys()[i]] = values[i];
    add_result(points, figure, part, first, simulated);
  }
}

Points Sources::points(const Figure& figure) {
  Points points;
  for (const Part& part : figure.parts) {
    if (!part.validation.empty()) {
      add_cells(points, part);
    } else if (!part.scenario.empty()) {
      add_sweep(points, figure, part);
    } else {
      add_ratios(points, figure, part);
    }
  }
  return points;
}

}  // namespace pipesim::reproduce
