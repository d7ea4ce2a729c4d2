#include <algorithm>
#include <fmt/format.h>

#include "sim/core/text.h"
#include "sim/layouts/report.h"

namespace pipesim {
namespace {

// Keys in their order, with a value or keys of their own.
struct Node {
  std::string key;
  std::string value = {};
  std::vector<Node> children = {};

  // A value goes where `path` says; what stood there is replaced.
  void set(std::string_view path, std::string text) {
    const size_t dot = path.find('.');
    const std::string_view name = path.substr(0, dot);
    auto found = std::ranges::find(children, name, &Node::key);
    if (found == children.end()) {
      found = children.insert(children.end(), Node{.key = std::string(name)});
    }
    if (dot == std::string_view::npos) {
      found->value = std::move(text);
    } else {
      found->set(path.substr(dot + 1), std::move(text));
    }
  }

  void write(std::string& text, size_t indent) const {
    for (const Node& child : children) {
      const std::string value = child.children.empty() ? fmt::format(" {}", child.value) : "";
      text += fmt::format("{:{}}{}:{}\n", "", indent, child.key, value);
      child.write(text, indent + 2);
    }
  }
};

std::string schedule_text(const PlanQuestion& question, const PlanPoint& point) {
  std::string text = fmt::format("{{name: {}", point.schedule->name);
  if (point.schedule->placement) {
    text += fmt::format(", placement: {}", point.schedule->placement->name);
  }
  if (point.schedule->max_chunks > 1) {
    text += fmt::format(", virtual_pipeline_model_parallel_size: {}", point.chunks);
  }
  if (point.expert_overlap) {
    for (const std::string_view name : kExpertOverlap) text += fmt::format(", {}: true", name);
  }
  if (point.schedule->memory_limit) {
    text += fmt::format(", memory_limit: {{total: {} GiB}}", question.schedule_limit_gib());
  }
  return fmt::format("{}}}", text);
}

void add_sizes(const PlanQuestion& question, const PlanPoint& point, Node& root) {
  const auto size = [&root](const char* key, int value) {
    root.set(fmt::format("parallel.{}", key), fmt::format("{}", value));
  };
  size("tensor_model_parallel_size", point.tensor);
  size("context_parallel_size", point.context);
  if (point.exchange) {
    root.set("parallel.cp_comm_type", std::string(to_text(point.exchange->kind)));
    const auto [heads, ring] = point.exchange->hierarchy;
    if (point.exchange->kind == ContextExchange::kHeadsAndRing) {
      root.set("parallel.hierarchical_context_parallel_sizes",
               fmt::format("[{}, {}]", heads, ring));
    }
  }
  if (question.base.modelled->model.experts) {
    size("expert_model_parallel_size", point.expert);
    size("expert_tensor_parallel_size", point.expert_tensor);
  }
  size("pipeline_model_parallel_size", point.pipeline);
  size("data_parallel_size", point.data);
}

void add_split(const Planned& planned, Node& root) {
  if (planned.layout) {
    root.set("parallel.pipeline_model_parallel_layout",
             fmt::format("'{}'", to_megatron_layout(*planned.layout)));
  } else if (planned.point.split == PlanSplit::kEvenWithEnds) {
    root.set("parallel.account_for_embedding_in_pipeline_split", "true");
    root.set("parallel.account_for_loss_in_pipeline_split", "true");
  }
}

// The strategy stands beside what the question says of the optimizer, which it must not contradict.
void add_sharding(const PlanQuestion& question, const PlanPoint& point, Node& root) {
  const ParameterState state = state_of(question, point);
  const ParameterState& base = question.base.modelled->state;
  if (point.sharding || strategy_of(state) != strategy_of(base)) {
    root.set("memory.use_distributed_optimizer", state.distributed_optimizer ? "true" : "false");
    root.set("memory.data_parallel_sharding_strategy", std::string(to_text(strategy_of(state))));
  }
  if (state.sharded_weights && state.reduce_every_microbatch != base.reduce_every_microbatch) {
    root.set("memory.reduce_every_microbatch", state.reduce_every_microbatch ? "true" : "false");
  }
  if (state.sharded_weights && state.reshard_after_forward != base.reshard_after_forward) {
    root.set("memory.reshard_after_forward", state.reshard_after_forward ? "true" : "false");
  }
  if (state.shard_degree > 0) {
    root.set("memory.data_parallel_shard_degree", fmt::format("{}", state.shard_degree));
  }
}

void add_dispatcher(const PlanQuestion& question, const PlanPoint& point, Node& root) {
  const ExpertDispatcher dispatcher = dispatcher_of(question, point);
  if (dispatcher == question.dispatcher) return;
  const bool flex = dispatcher != ExpertDispatcher::kAllToAll;
  root.set("cost.moe_token_dispatcher_type", flex ? "flex" : "alltoall");
  if (flex) root.set("cost.moe_flex_dispatcher_backend", std::string(to_text(dispatcher)));
}

// A setting that the point goes without.
bool is_left_out(const PlanSetting& setting, const PlanQuestion& question, const PlanPoint& point) {
  if (setting.path == "cost.moe_flex_dispatcher_backend") {
    return dispatcher_of(question, point) == ExpertDispatcher::kAllToAll;
  }
  const bool of_gathers = setting.path == "memory.reshard_after_forward" ||
                          setting.path == "memory.reduce_every_microbatch";
  return of_gathers && !state_of(question, point).sharded_weights;
}

}  // namespace

std::string plan_scenario(const ClusterPlan& plan, const Planned& planned) {
  const PlanPoint& point = planned.point;
  const PlanQuestion& question = question_of(plan, planned);
  Node root;
  for (const char* first : {"model", "cluster"}) root.set(first, "");
  root.set("schedule", schedule_text(question, point));
  add_sizes(question, point, root);
  add_split(planned, root);
  root.set("batch.global_batch_size", fmt::format("{}", question.global_batch));
  root.set("batch.micro_batch_size", fmt::format("{}", point.micro_batch));
  for (const PlanSetting& setting : question.settings) {
    if (!is_left_out(setting, question, point)) root.set(setting.path, setting.value);
  }
  add_dispatcher(question, point, root);
  if (point.recompute != RecomputeGranularity::kNone) {
    const std::string all = to_text(point.recompute);
    root.set("recompute", point.recompute_layers == 0
                              ? all
                              : fmt::format("{{granularity: {}, method: block, num_layers: {}}}",
                                            all, point.recompute_layers));
  }
  if (point.vocabulary != VocabularyPlacement::kFirstLast) {
    root.set("vocabulary", fmt::format("{{placement: {}}}", to_text(point.vocabulary)));
  }
  if (point.offload) root.set("offload", "true");
  if (point.modules.any()) {
    root.set("memory.offload_modules", fmt::format("[{}]", to_text(point.modules, ", ")));
  }
  add_sharding(question, point, root);
  std::string text = fmt::format(
      "# Planned for {} GPUs: {} an iteration{}, {} at most on a GPU.\n", question.gpus,
      human(planned.iteration),
      planned.contended ? fmt::format(" ({} with contention)", human(planned.contended->iteration))
                        : "",
      human(planned.peak));
  if (plan.result.stopped) text += "# Incomplete: the search was ended early.\n";
  root.write(text, 0);
  return text;
}

}  // namespace pipesim
