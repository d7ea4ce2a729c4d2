#include "sim/report/json/plot_data.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "sim/metrics/memory_curve.h"
#include "sim/report/drawing/drawing.h"
#include "sim/report/drawing/palette.h"
#include "sim/report/svg/svg.h"

namespace pipesim {
namespace {

using Json = nlohmann::ordered_json;

void add_kind(Json& kinds, PassKind kind, int chunks) {
  Json& entry = kinds[std::string(to_text(kind))];
  if (!entry.is_null()) return;
  entry = {{"meaning", meaning_of(kind)}, {"fills", Json::array()}, {"texts", Json::array()}};
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const Colour fill = fill_of(kind, chunk, chunks);
    entry["fills"].push_back(css(fill));
    entry["texts"].push_back(css(text_on(fill)));
  }
}

Json passes_json(const Simulation& simulation, Json& kinds) {
  const Drawing drawing(simulation);
  const int chunks = simulation.program->shape().chunks;
  Json rows = Json::array();
  for (size_t device = 0; device < drawing.devices(); ++device) {
    Json row = Json::array();
    for (const TaskId task : drawing.passes(device)) {
      const double start = drawing.start(task);
      const double seconds = drawing.end(task) - start;
      const auto add = [&](const Pass& pass, int part) {
        add_kind(kinds, pass.kind, chunks);
        row.push_back({start, seconds, to_text(pass.kind), pass.microbatch, pass.chunk, part});
      };
      const Pass pass = simulation.graph->pass(task);
      if (pass.kind == PassKind::kFB) {
        const OverlappedPair& pair = simulation.program->pairs()[pass.microbatch];
        add(pair.forward, 1);
        add(pair.backward, 2);
      } else {
        add(pass, 0);
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// Of the first pipeline, from its first change.
Json memory_json(const Simulation& simulation) {
  const TaskGraph& graph = *simulation.graph;
  auto curves = memory_curves(graph, simulation.timeline, graph.iterations() / 2);
  curves.resize(simulation.program->shape().devices);
  double begin = std::numeric_limits<double>::infinity();
  for (const auto& curve : curves) {
    if (!curve.empty()) begin = std::min(begin, curve.front().seconds);
  }
  Json rows = Json::array();
  for (const auto& curve : curves) {
    Json row = Json::array();
    for (const MemoryLevel& level : curve) row.push_back({level.seconds - begin, level.bytes});
    rows.push_back(std::move(row));
  }
  return rows;
}

Json drawing_json(const Scenario& scenario, const ScheduleChoice& choice,
                  const Simulation& simulation) {
  Json kinds = Json::object();
  Json passes = passes_json(simulation, kinds);
  Json json{{"schedule", label_of(choice)},
            {"headline", headline(simulation, knows_memory(scenario))},
            {"seconds", Drawing(simulation).seconds()},
            {"kinds", std::move(kinds)},
            {"passes", std::move(passes)},
            {"memory", nullptr},
            {"beside_bytes", nullptr}};
  if (knows_memory(scenario)) json["memory"] = memory_json(simulation);
  if (scenario.modelled) {
    json["beside_bytes"] = Json::array();
    for (int device = 0; device < simulation.program->shape().devices; ++device) {
      const auto& memory = simulation.report.devices[device].memory;
      json["beside_bytes"].push_back(memory->total().value());
    }
  }
  return json;
}

}  // namespace

void write_plot_data(std::ostream& out, const Scenario& scenario,
                     std::span<const Simulation> simulations) {
  Json document{{"capacity_bytes", nullptr}, {"drawings", Json::array()}};
  if (scenario.modelled && scenario.modelled->capacity) {
    document["capacity_bytes"] = scenario.modelled->capacity->value();
  }
  for (size_t i = 0; i < simulations.size(); ++i) {
    document["drawings"].push_back(drawing_json(scenario, scenario.schedules[i], simulations[i]));
  }
  out << document.dump() << '\n';
}

}  // namespace pipesim
