#include "sim/report/workbench/workbench.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "sim/case/graph_options.h"
#include "sim/case/host_links.h"
#include "sim/case/program.h"
#include "sim/engine/engine.h"
#include "sim/graph/build.h"
#include "sim/prepare/microbatch_order.h"
#include "sim/report/drawing/palette.h"
#include "sim/report/html/assemble.h"
#include "sim/report/workbench/lowered.h"
#include "sim/scenario/scenario.h"

namespace pipesim {
namespace {

using Json = nlohmann::ordered_json;

PageParts parts_of_workbench() {
  return {"workbench/page.html",
          {"page.css", "workbench/page.css"},
          {"format.js", "workbench/copies.js", "workbench/evaluate.js", "workbench/edit.js",
           "workbench/data.js", "svg_context.js", "save.js", "plot.js", "workbench/board.js",
           "workbench/bench.js", "workbench/main.js"}};
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(value->value()) : Json(nullptr);
}

// The part of the scenario that the page cannot play; nothing where it plays all.
std::optional<std::string> beyond_the_page(const Case& made) {
  if (made.scenario->engine != EngineKind::kReplay) {
    return "its seconds depend on what else is in flight (engine: simgrid)";
  }
  if (made.blocking) {
    return "its seconds depend on what else is in flight (framework.transfers: blocking)";
  }
  if (made.sync == OptimizerSync::kAsynchronous) return "its iterations run into each other";
  return std::nullopt;
}

// Where passes take other seconds than the fields say, or than `pipesim run` has.
Json notes_on(const Case& made, int pipeline, const OnRanks& on) {
  Json notes = Json::array();
  for (size_t device = 0; device < on.ranks.size(); ++device) {
    if (on.options.slowdown_of_rank.empty()) break;
    const double factor = on.options.slowdown_of_rank[on.ranks[device]];
    if (factor == 1) continue;
    notes.push_back(
        fmt::format("with the passes of device {} taking {:.4g} times their seconds "
                    "(perturb.stragglers)",
                    device, factor));
  }
  if (made.scenario->perturb.jitter.value_or(0) > 0) {
    notes.push_back(fmt::format("without perturb.jitter {:g}, passes at their undisturbed seconds",
                                *made.scenario->perturb.jitter));
  }
  const int pipelines = made.scenario->parallel.pipelines;
  if (pipelines > 1) {
    notes.push_back(fmt::format("for pipeline {} of {}, which takes longest", pipeline, pipelines));
  }
  return notes;
}

// The pipeline that takes longest, since stragglers and links may be of one alone.
int slowest_pipeline(const Case& made, const std::shared_ptr<const Program>& program,
                     const Problem& problem) {
  const auto ranks = ranks_of(*made.scenario);
  BuildOptions options = graph_options(made, 1);
  options.sync = OptimizerSync::kNone;
  std::vector<double> ends;
  for (size_t pipeline = 0; ranks.size() > 1 && pipeline < ranks.size(); ++pipeline) {
    const TaskGraph graph = build_task_graph(program, problem, {ranks[pipeline]}, options);
    ends.push_back(std::ranges::max(make_replay_engine()->run(graph, Cluster{}, {}).end));
  }
  return static_cast<int>(std::ranges::max_element(ends) - ends.begin());
}

template <class T>
bool differs(CostBasis per, std::initializer_list<const std::vector<T>*> lists) {
  return per == CostBasis::kDevice &&
         std::ranges::any_of(lists, [](const auto* values) { return values->size() > 1; });
}

std::optional<std::string> unmovable(const Program& program) {
  if (is_sharded(program.vocabulary())) return "every device holds a share of the vocabulary";
  if (program.copies() != nullptr) return "its copies to the host are planned for their devices";
  if (program.wrap_around() != WrapAround::kEvery) {
    return "it waits for messages by where they wrap around";
  }
  return std::nullopt;
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
  if (!scenario.perturb.links.empty()) return "links differ (perturb.links)";
  const int again = made.problem.recompute_chunks;
  if (again > 0 && again < made.placement.chunks()) return "only the first chunks recompute";
  return std::nullopt;
}

// The reason why the page writes no CSV of the order; nothing where it does.
std::optional<std::string> unsaved(const Case& made, const Program& program) {
  if (made.placement.directions() != 1) {
    return "it runs two copies of the model; `pipesim export --format csv` writes the planned "
           "order";
  }
  if (made.problem.shape.splits != 1) {
    return "it splits microbatches; `pipesim export --format csv` writes the planned order";
  }
  if (program.wrap_around() != WrapAround::kEvery) {
    return "it does not wait for every message at the wrap-around boundary";
  }
  if (program.copies() == nullptr) return std::nullopt;
  if (program.copies()->devices_per_link > 1) {
    return "devices copy over links that they share, and rows have no order among them";
  }
  const Offload given = made.choice.offload.value_or(Offload{});
  if (given.ratio != 1 || given.bandwidth != CopyBandwidth::kDuplex) {
    return "rows do not say how much of an activation leaves, or how fast (schedule.offload)";
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
  for (const PassKind kind : kinds) {
    const int chunks = is_vocabulary(kind) ? 1 : program.placement().chunks();
    Json shades = Json::array();
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const Colour fill = fill_of(kind, chunk, chunks);
      shades.push_back({{"fill", css(fill)}, {"ink", css(text_on(fill))}});
    }
    all[std::string(to_text(kind))] = {{"meaning", meaning_of(kind)}, {"shades", shades}};
  }
  return all;
}

// The orders of one schedule by number of microbatches, and why it has none for others.
class Orders {
 public:
  Orders(const Case& made, const Program& own)
      : made_(made), ordered_(!ordered_peaks(made, own).empty()) {}

  // The nearest numbers first, as far as the page has room.
  void plan_around(const Program& own, const Problem& problem) {
    const int mine = own.shape().microbatches;
    add(mine, own, problem);
    // A file has one order, and unequal microbatches are as many as they are.
    if (made_.choice.program || !made_.problem.kinds.empty()) return;
    for (int step = 1; step <= mine; ++step) {
      if (mine - step > 0) plan(mine - step);
      plan(mine + step);
    }
  }
  Json orders = Json::object();
  Json copies = Json::object();
  Json refused = Json::object();

 private:
  void plan(int microbatches) {
    Problem problem = made_.problem;
    problem.shape.microbatches = microbatches;
    if (passes_ > kMostWorkbenchPasses) return;
    const auto refuse = [&](const std::string& why) {
      refused[std::to_string(microbatches)] = why;
    };
    try {
      const auto program = make_program(made_.choice, problem);
      if (beside_copies(made_, *program))
        return refuse("its copies would take another share of passes");
      add(microbatches, *program, problem);
    } catch (const InputError& error) {
      refuse(error.message());
    } catch (const InfeasibleError& error) {
      refuse(error.what());
    }
  }
  void add(int microbatches, const Program& program, const Problem& problem) {
    passes_ += program.size();
    const std::string number = std::to_string(microbatches);
    orders[number] = order_json(program);
    if (program.copies() == nullptr) return;
    for (const LinkCopies& link : program.copies()->links) passes_ += 2 * link.out.size();
    copies[number] = copies_json(program, problem, ordered_);
  }

  const Case& made_;
  bool ordered_;
  size_t passes_ = 0;
};

}  // namespace

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
  if (program->size() > kMostWorkbenchPasses) {
    refuse(fmt::format("it has {} passes, more than the {} that a page holds", program->size(),
                       kMostWorkbenchPasses));
  }
  const Problem problem = beside_copies(made, *program).value_or(made.problem);
  const int pipeline = slowest_pipeline(made, program, problem);
  const OnRanks on{graph_options(made, 1), ranks_of(*made.scenario)[pipeline]};
  Orders orders(made, *program);
  orders.plan_around(*program, problem);
  const auto reason = [](const std::optional<std::string>& why) {
    return why ? Json(*why) : Json(nullptr);
  };
  const auto tied = unmovable(*program);
  Json schedule{{"name", made.choice.name},
                {"label", made.label},
                {"microbatches", program->shape().microbatches},
                {"order", made.microbatch_order.empty() ? Json(nullptr)
                                                        : Json(order_text(made.microbatch_order))},
                {"samples", samples(*made.scenario)},
                {"model", evaluated_with(*program, problem, on)},
                {"wire", made.scenario->cost.transfer.value()},
                {"modelled", made.setting.has_value()},
                {"memory", knows_memory(*made.scenario)},
                {"limit", knows_memory(*made.scenario) ? or_null(made.problem.activation_limit)
                                                       : Json(nullptr)},
                {"unmovable", reason(tied ? tied : unmovable(made))},
                {"unsaved", reason(unsaved(made, *program))},
                {"notes", notes_on(made, pipeline, on)},
                {"fills", fills(*program)},
                {"orders", std::move(orders.orders)},
                {"copies", std::move(orders.copies)},
                {"refused", std::move(orders.refused)}};
  (*data_)["schedules"].push_back(std::move(schedule));
}

std::string Workbench::page(const std::string& folder, const Location& asked) const {
  return assembled_page(folder, parts_of_workbench(), (*data_)["file"].get<std::string>(), *data_,
                        asked);
}

}  // namespace pipesim
