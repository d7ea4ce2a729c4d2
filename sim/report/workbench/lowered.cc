#include "sim/report/workbench/lowered.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sim/pipeline/dependencies.h"

namespace pipesim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kVocabularyPasses{PassKind::kS, PassKind::kT, PassKind::kIF, PassKind::kIB};

// Seconds of a message as the task graph has it.
Seconds message_seconds(const Problem& problem, const OnRanks& on, int from, int to,
                        std::uint32_t unit) {
  const Placement& place = problem.placement;
  if (!on.options.message || to < 0 || place.device(from) == place.device(to)) {
    return to < 0 ? problem.stage(from, unit).transfer : problem.transfer(from, to, unit);
  }
  const auto rank = [&](int vs) { return on.ranks[place.device(vs)]; };
  return on.options.message(from, to, rank(from), rank(to), unit).seconds;
}

// `nominal` seconds of a message, changed as that of `unit` is on its way.
double on_its_way(const Problem& problem, const OnRanks& on, int from, int to, std::uint32_t unit,
                  Seconds nominal) {
  const Seconds found = message_seconds(problem, on, from, to, unit);
  const Seconds known = problem.stage(std::min(from, to < 0 ? from : to), unit).transfer;
  if (nominal == known) return found.value();
  return known > Seconds(0) ? nominal.value() * (found / known) : nominal.value();
}

// Costs of stages for units like `unit`.
Json stages_json(const Problem& problem, const OnRanks& on, const std::vector<StageCost>& stages,
                 std::uint32_t unit) {
  Json all = Json::array();
  for (size_t i = 0; i < stages.size(); ++i) {
    const StageCost& cost = stages[i];
    const int vs = static_cast<int>(i);
    const int next = problem.placement.downstream(vs);
    const auto optional = [](const std::optional<Seconds>& seconds) {
      return seconds ? Json(seconds->value()) : Json(nullptr);
    };
    all.push_back(
        {{"forward", cost.forward.value()},
         {"backward_input", cost.backward_input.value()},
         {"backward_weight", cost.backward_weight.value()},
         {"overlapped", optional(cost.overlapped)},
         {"recompute", optional(cost.recompute)},
         {"transfer", on_its_way(problem, on, vs, next, unit, cost.transfer)},
         {"transfer_back", next < 0 ? cost.transfer.value()
                                    : on_its_way(problem, on, next, vs, unit, cost.transfer)},
         {"copy_out", cost.copy_out.value()},
         {"copy_in", cost.copy_in.value()},
         {"activation", cost.activation.value()},
         {"weight_stash", cost.weight_stash.value()},
         {"checkpoint", cost.checkpoint.value()}});
  }
  return all;
}

void add_costs(Json& model, const Problem& problem, const OnRanks& on) {
  Json kinds = nullptr;
  Json sizes = nullptr;
  for (size_t kind = 0; kind < problem.kinds.size(); ++kind) {
    const auto unit = static_cast<std::uint32_t>(std::ranges::find(problem.kind_of_unit, kind) -
                                                 problem.kind_of_unit.begin());
    kinds.push_back(stages_json(problem, on, problem.kinds[kind].stages, unit));
    sizes.push_back(problem.kinds[kind].size);
  }
  Json blocks = nullptr;
  for (const Seconds block : problem.blocks) blocks.push_back(block.value());
  Json slowdown = Json::array();
  for (int device = 0; device < problem.placement.devices(); ++device) {
    const auto& of_rank = on.options.slowdown_of_rank;
    slowdown.push_back(of_rank.empty() ? 1.0 : of_rank[on.ranks[device]]);
  }
  model["stages"] = stages_json(problem, on, problem.stages, 0);
  model["blocks"] = blocks;
  model["kinds"] = kinds;
  model["kind_of_unit"] = problem.kind_of_unit;
  model["sizes"] = sizes;
  model["slowdown"] = slowdown;
}

// Calls `visit` with the stage and kind of each pass that may have to do with a collective; those
// of the vocabulary by device.
template <class Visit>
void each_pass(const Placement& place, Visit visit) {
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    for (const PassKind kind : {PassKind::kF, PassKind::kB}) visit(StagePass{kind, vs});
  }
  for (int device = 0; device < place.devices(); ++device) {
    for (const PassKind kind : kVocabularyPasses) {
      visit(StagePass{kind, place.virtual_stage(device, 0)});
    }
  }
}

// The collective of each unit, and which passes of the unit stand before and behind it.
Json join_json(const Program& program, const Problem& problem, Barrier barrier) {
  const Placement& place = program.placement();
  Json waits = Json::array();
  Json gathers = Json::array();
  each_pass(place, [&](const StagePass& pass) {
    const Json named = {pass.vs, to_text(pass.kind)};
    const auto is = [barrier](const std::optional<Barrier>& other) { return other == barrier; };
    if (is(collective_before(place, program.vocabulary(), pass))) waits.push_back(named);
    if (is(collective_after(place, program.vocabulary(), pass))) gathers.push_back(named);
  });
  return {{"name", to_text(barrier)},
          {"seconds", problem.barriers[barrier].value()},
          {"of_all", joins_all_devices(barrier)},
          {"gathers", gathers},
          {"waits", waits}};
}

void add_vocabulary(Json& model, const Program& program, const Problem& problem) {
  Json joins = Json::array();
  Json costs = Json::array();
  if (is_sharded(program.vocabulary())) {
    for (size_t barrier = 0; barrier < static_cast<size_t>(Barrier::kRendezvous); ++barrier) {
      joins.push_back(join_json(program, problem, static_cast<Barrier>(barrier)));
    }
    for (const VocabularyCost& cost : problem.vocabulary_costs) {
      costs.push_back({{"S", cost.output_forward.value()},
                       {"T", cost.output_backward.value()},
                       {"IF", cost.input_forward.value()},
                       {"IB", cost.input_backward.value()},
                       {"bytes", cost.output_activation.value()}});
    }
  }
  const bool together = program.vocabulary() == VocabularyPlacement::kInterlaced;
  model["joins"] = joins;
  model["together"] =
      together ? Json(problem.barriers[Barrier::kRendezvous].value()) : Json(nullptr);
  model["vocabulary"] = costs;
}

// The text of a pass, and of a block that of its forward.
std::string name_of_pass(const Program& program, int device, const Pass& pass) {
  return program.text(device, pass.kind == PassKind::kFB ? program.pair(pass).forward : pass);
}

// [its F, factor on its seconds]
Json copy_json(const Program& program, const Problem& problem, const Copy& copy) {
  const auto device = static_cast<int>(copy.device);
  return {program.text(device, {PassKind::kF, copy.chunk, copy.unit}),
          copy.alone ? problem.copy_alone_factor : 1};
}

}  // namespace

Json evaluated_with(const Program& program, const Problem& problem, const OnRanks& on) {
  const Placement& place = problem.placement;
  Json device_of = Json::array();
  for (int vs = 0; vs < place.virtual_stages(); ++vs) device_of.push_back(place.device(vs));
  Json model{{"devices", place.devices()},
             {"directions", place.directions()},
             {"splits", problem.shape.splits},
             {"device_of", device_of},
             {"wraps", program.wrap_around() == WrapAround::kEvery ? 1 : place.devices()}};
  add_costs(model, problem, on);
  add_vocabulary(model, program, problem);
  return model;
}

Json copies_json(const Program& program, const Problem& problem, bool ordered) {
  const CopyPlan* plan = program.copies();
  if (plan == nullptr) return nullptr;
  Json links = Json::array();
  for (const LinkCopies& link : plan->links) {
    Json out = Json::array();
    Json back = Json::array();
    for (const Copy& copy : link.out) out.push_back(copy_json(program, problem, copy));
    for (const Copy& copy : link.in) {
      const auto device = static_cast<int>(copy.device);
      Json each = copy_json(program, problem, copy);
      const bool any = copy.after == Copy::kAnyTime;
      each.push_back(any ? Json(nullptr)
                         : Json(name_of_pass(program, device, program.passes(device)[copy.after])));
      back.push_back(std::move(each));
    }
    links.push_back({{"out", out}, {"back", back}});
  }
  Json gates = Json::object();
  for (int device = 0; device < program.placement().devices(); ++device) {
    const size_t link = plan->link_of(static_cast<std::uint32_t>(device));
    for (const Gate& gate : plan->gates[device]) {
      const Pass& pass = program.passes(device)[gate.position];
      if (is_vocabulary(pass.kind)) continue;  // `walk` lets these run
      gates[name_of_pass(program, device, pass)] = {link, gate.out};
    }
  }
  return {
      {"ratio", problem.offload_ratio}, {"ordered", ordered}, {"links", links}, {"gates", gates}};
}

Json order_json(const Program& program) {
  Json order = Json::array();
  for (int device = 0; device < program.shape().devices; ++device) {
    std::string text;
    for (const Pass& pass : program.passes(device)) {
      if (!text.empty()) text += ' ';
      text += program.text(device, pass);
    }
    order.push_back(text);
  }
  return order;
}

}  // namespace pipesim
