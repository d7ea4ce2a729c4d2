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

Json passes_json(const Result& result, Json& kinds) {
  const Drawing drawing(result);
  const int chunks = result.program->shape().chunks;
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
      const Pass pass = result.graph->pass(task);
      if (pass.kind == PassKind::kFB) {
        const OverlappedPair& pair = result.program->pairs()[pass.microbatch];
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

// Memory of the first pipeline, from its first change.
Json memory_json(const Result& result) {
  const TaskGraph& graph = *result.graph;
  auto curves = memory_curves(graph, result.timeline, graph.iterations() / 2);
  curves.resize(result.program->shape().devices);
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

Json drawing_json(const Answer& answer) {
  const Result& result = answer.result;
  const bool bytes = knows_memory(*answer.made.scenario);
  Json kinds = Json::object();
  Json passes = passes_json(result, kinds);
  Json json{{"label", answer.made.label},
            {"headline", headline(answer.made, result, bytes)},
            {"seconds", Drawing(result).seconds()},
            {"kinds", std::move(kinds)},
            {"passes", std::move(passes)},
            {"memory", nullptr},
            {"beside_bytes", nullptr}};
  if (bytes) json["memory"] = memory_json(result);
  if (answer.made.memory) {
    json["beside_bytes"] = Json::array();
    for (int device = 0; device < result.program->shape().devices; ++device) {
      const auto& memory = result.report.devices[device].memory;
      json["beside_bytes"].push_back(memory->total().value());
    }
  }
  return json;
}

}  // namespace

void write_plot_data(std::ostream& out, std::span<const Answer> answers) {
  const auto& modelled = answers.front().made.scenario->modelled;
  Json document{{"capacity_bytes", nullptr}, {"drawings", Json::array()}};
  if (modelled && modelled->capacity) document["capacity_bytes"] = modelled->capacity->value();
  for (const Answer& answer : answers) document["drawings"].push_back(drawing_json(answer));
  out << document.dump() << '\n';
}

}  // namespace pipesim
