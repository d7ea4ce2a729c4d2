#include "sim/report/workbench/workbench.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "sim/case/microbatch_order.h"
#include "sim/case/program.h"
#include "sim/report/drawing/palette.h"
#include "sim/report/html/assemble.h"
#include "sim/scenario/scenario.h"

namespace pipesim {
namespace {

using Json = nlohmann::ordered_json;

PageParts parts_of_workbench() {
  return {"workbench/page.html",
          {"page.css", "workbench/page.css"},
          {"format.js", "workbench/evaluate.js", "workbench/edit.js", "workbench/data.js",
           "svg_context.js", "save.js", "plot.js", "workbench/board.js", "workbench/bench.js",
           "workbench/main.js"}};
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(value->value()) : Json(nullptr);
}

// The part of the scenario that the page cannot play; nothing where it plays all.
std::optional<std::string> beyond_the_page(const Case& made) {
  const Scenario& scenario = *made.scenario;
  const Perturbation& perturb = scenario.perturb;
  if (scenario.engine != EngineKind::kReplay) return "it shares links, as only engine simgrid does";
  if (made.sync == OptimizerSync::kAsynchronous) return "its iterations run into each other";
  if (made.blocking) return "its transfers hold the devices (framework.transfers: blocking)";
  if (perturb.jitter || !perturb.stragglers.empty() || !perturb.links.empty()) {
    return "its run is perturbed (perturb)";
  }
  if (is_sharded(made.problem.vocabulary)) {
    return "its vocabulary is shared by all devices (vocabulary.placement)";
  }
  return std::nullopt;
}

std::optional<std::string> beyond_the_page(const Program& program) {
  if (program.copies() != nullptr) return "it copies activations to the host";
  if (program.wrap_around() != WrapAround::kEvery) {
    return "it does not wait for every message at the wrap-around boundary";
  }
  if (program.size() > kMostWorkbenchPasses) {
    return fmt::format("it has {} passes, more than the {} that a page holds", program.size(),
                       kMostWorkbenchPasses);
  }
  return std::nullopt;
}

template <class T>
bool differs(CostBasis per, std::initializer_list<const std::vector<T>*> lists) {
  return per == CostBasis::kDevice &&
         std::ranges::any_of(lists, [](const auto* values) { return values->size() > 1; });
}

// Why a stage cannot be moved to another device on the page, which would have to know its costs
// there; nothing where it can.
std::optional<std::string> unmovable(const Case& made) {
  const Scenario& scenario = *made.scenario;
  const GivenCost& cost = scenario.cost;
  if (made.placement.directions() != 1) return "a second copy of the model mirrors the placement";
  if (!made.placement.even()) return "devices hold unequal numbers of stages";
  if (scenario.roofline || cost.passes || cost.message) {
    return "seconds of this scenario follow from where a stage stands";
  }
  if (differs<Seconds>(cost.per, {&cost.forward, &cost.backward_input, &cost.backward_weight,
                                  &cost.overlapped, &cost.recompute})) {
    return "the scenario gives seconds per device";
  }
  const auto& memory = scenario.memory;
  if (memory && differs<Bytes>(memory->per,
                               {&memory->activation, &memory->weight_stash, &memory->checkpoint})) {
    return "the scenario gives bytes per device";
  }
  if (!made.problem.kinds.empty()) return "its microbatches or slices cost unequally";
  const int again = made.problem.recompute_chunks;
  if (again > 0 && again < made.placement.chunks()) return "only the first chunks recompute";
  return std::nullopt;
}

// The part of the order that the CSV of schedules cannot hold; nothing where it holds all.
std::optional<std::string> unsaved(const Case& made) {
  if (made.placement.directions() != 1) {
    return "it runs two copies of the model, and a stage of the CSV stands on one rank";
  }
  if (made.problem.shape.splits != 1) {
    return "it splits microbatches, and an action of the CSV is of a whole one";
  }
  return std::nullopt;
}

// Samples of one microbatch on all replicas, by which a model's scenario may give its batch.
Json samples(const Scenario& scenario) {
  if (!scenario.modelled || !scenario.batch.micro_batch_size) return nullptr;
  return *scenario.batch.micro_batch_size * scenario.parallel.data;
}

Json fills(const Program& program) {
  std::set<PassKind> kinds;
  for (int device = 0; device < program.shape().devices; ++device) {
    for (const Pass& pass : program.passes(device)) kinds.insert(pass.kind);
  }
  kinds.erase(PassKind::kFB);
  for (const OverlappedPair& pair : program.pairs()) {
    kinds.insert({pair.forward.kind, pair.backward.kind});
  }
  Json all = Json::object();
  const int chunks = program.placement().chunks();
  for (const PassKind kind : kinds) {
    Json shades = Json::array();
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const Colour fill = fill_of(kind, chunk, chunks);
      shades.push_back({{"fill", css(fill)}, {"ink", css(text_on(fill))}});
    }
    all[std::string(to_text(kind))] = {{"meaning", meaning_of(kind)}, {"shades", shades}};
  }
  return all;
}

Json stages_json(const std::vector<StageCost>& stages) {
  Json all = Json::array();
  for (const StageCost& cost : stages) {
    all.push_back({{"forward", cost.forward.value()},
                   {"backward_input", cost.backward_input.value()},
                   {"backward_weight", cost.backward_weight.value()},
                   {"overlapped", or_null(cost.overlapped)},
                   {"recompute", or_null(cost.recompute)},
                   {"transfer", cost.transfer.value()},
                   {"activation", cost.activation.value()},
                   {"weight_stash", cost.weight_stash.value()},
                   {"checkpoint", cost.checkpoint.value()}});
  }
  return all;
}

// The orders of one schedule by number of microbatches, and why it has none for others.
class Orders {
 public:
  explicit Orders(const Case& made) : made_(made) {}

  // The nearest numbers first, as far as the page has room.
  void plan_around(const Program& own) {
    const int mine = own.shape().microbatches;
    add(mine, own);
    // A file has one order, and unequal microbatches are as many as they are.
    if (made_.choice.program || !made_.problem.kinds.empty()) return;
    for (int step = 1; step <= mine; ++step) {
      if (mine - step > 0) plan(mine - step);
      plan(mine + step);
    }
  }
  Json orders = Json::object();
  Json refused = Json::object();

 private:
  void plan(int microbatches) {
    Problem problem = made_.problem;
    problem.shape.microbatches = microbatches;
    if (passes_ > kMostWorkbenchPasses) return;
    try {
      add(microbatches, *make_program(made_.choice, problem));
    } catch (const InputError& error) {
      refused[std::to_string(microbatches)] = error.message();
    } catch (const InfeasibleError& error) {
      refused[std::to_string(microbatches)] = error.what();
    }
  }
  void add(int microbatches, const Program& program) {
    passes_ += program.size();
    orders[std::to_string(microbatches)] = order_json(program);
  }

  const Case& made_;
  size_t passes_ = 0;
};

}  // namespace

Json evaluated_with(const Problem& problem) {
  const Placement& place = problem.placement;
  Json device_of = Json::array();
  for (int vs = 0; vs < place.virtual_stages(); ++vs) device_of.push_back(place.device(vs));
  Json kinds = nullptr;
  for (const UnitKind& kind : problem.kinds) kinds.push_back(stages_json(kind.stages));
  Json blocks = nullptr;
  if (!problem.blocks.empty()) {
    blocks = Json::array();
    for (const Seconds block : problem.blocks) blocks.push_back(block.value());
  }
  return {{"devices", place.devices()},
          {"directions", place.directions()},
          {"splits", problem.shape.splits},
          {"device_of", device_of},
          {"stages", stages_json(problem.stages)},
          {"blocks", blocks},
          {"kinds", kinds},
          {"kind_of_unit", problem.kind_of_unit}};
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

Workbench::Workbench(const std::string& version, const std::string& file,
                     const std::vector<std::string>& overrides)
    : data_(std::make_unique<Json>(Json{{"version", version},
                                        {"file", file},
                                        {"overrides", overrides},
                                        {"schedules", Json::array()}})) {}
Workbench::~Workbench() = default;

void Workbench::add(const Case& made) {
  const auto refuse = [&](const std::string& why) {
    throw InfeasibleError(fmt::format("{}: the workbench does not play it: {}", made.label, why));
  };
  if (const auto why = beyond_the_page(made)) refuse(*why);
  const auto program = make_program(made);
  if (const auto why = beyond_the_page(*program)) refuse(*why);
  Orders orders(made);
  orders.plan_around(*program);
  const auto reason = [](const std::optional<std::string>& why) {
    return why ? Json(*why) : Json(nullptr);
  };
  Json schedule{{"name", made.choice.name},
                {"label", made.label},
                {"microbatches", program->shape().microbatches},
                {"order", made.microbatch_order.empty() ? Json(nullptr)
                                                        : Json(order_text(made.microbatch_order))},
                {"samples", samples(*made.scenario)},
                {"model", evaluated_with(made.problem)},
                {"wire", made.scenario->cost.transfer.value()},
                {"modelled", made.setting.has_value()},
                {"memory", knows_memory(*made.scenario)},
                {"limit", knows_memory(*made.scenario) ? or_null(made.problem.activation_limit)
                                                       : Json(nullptr)},
                {"unmovable", reason(unmovable(made))},
                {"unsaved", reason(unsaved(made))},
                {"fills", fills(*program)},
                {"orders", std::move(orders.orders)},
                {"refused", std::move(orders.refused)}};
  (*data_)["schedules"].push_back(std::move(schedule));
}

std::string Workbench::page(const std::string& folder, const Location& asked) const {
  return assembled_page(folder, parts_of_workbench(), (*data_)["file"].get<std::string>(), *data_,
                        asked);
}

}  // namespace pipesim
