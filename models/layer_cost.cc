#include "models/layer_cost.h"

#include <algorithm>

#include "models/layer_work.h"

namespace pipesim {
namespace {

// The largest number of `ranks` equal parts that is at most `most`.
int divisor_within(int ranks, int most) {
  for (int parts = std::min(ranks, most); parts > 1; --parts) {
    if (ranks % parts == 0) return parts;
  }
  return 1;
}

Seconds collective_of(const Work& work, Group group, const CostSetting& setting,
                      const Hardware& hardware) {
  Seconds sum;
  const GroupShape shape = group_shape(setting, hardware.interconnect.gpus_per_node, group);
  for (const Collective& collective : work.collectives) {
    if (collective.group == group) {
      sum += collective_seconds(hardware.interconnect, collective, shape);
    }
  }
  return sum;
}

double collectives_of_many(const Work& work, const CostSetting& setting, const Hardware& hardware) {
  const int node = hardware.interconnect.gpus_per_node;
  return static_cast<double>(
      std::ranges::count_if(work.collectives, [&](const Collective& collective) {
        return group_shape(setting, node, collective.group).ranks > 1;
      }));
}

// Reductions of input gradients in B, which nothing in B waits for.
Seconds reductions(const Work& backward, const CostSetting& setting, const Hardware& hardware) {
  Work only;
  for (const Collective& collective : backward.collectives) {
    if (collective.kind != CollectiveKind::kAllGather) only.collectives.push_back(collective);
  }
  return collective_of(only, Group::kTensor, setting, hardware);
}

// Seconds of a ring's messages that the parts of attention hide.
Seconds beside_attention(const Work& work, const CostSetting& setting, const Hardware& hardware) {
  const Gpu& gpu = hardware.gpu;
  Seconds hidden;
  for (const Collective& collective : work.collectives) {
    if (collective.beside < 0) continue;
    const Attention& attention = work.attention[collective.beside];
    const GroupShape shape =
        group_shape(setting, hardware.interconnect.gpus_per_node, collective.group);
    const Seconds part = setting.factors.compute / shape.ranks *
                         (kernel_seconds(attention, setting, gpu) - gpu.launch);
    const Seconds all = collective_seconds(hardware.interconnect, collective, shape);
    hidden += std::min(all, 1.0 * collective.steps * part);
  }
  return hidden;
}

// The host quantizes what experts multiply one by one.
Seconds quantizing_experts(const Work& work, const Software& software) {
  if (software.launch == LaunchMode::kCudaGraphs) return {};
  double experts = 0;
  for (const Matmul& matmul : work.matmuls) {
    if (matmul.grouped && matmul.precision != Precision::kBf16) {
      experts += static_cast<double>(matmul.batch);
    }
  }
  return experts * software.quantizing;
}

bool cuts_into_parts(const CostSetting& setting) {
  return setting.overlap.tensor && setting.context.sequence_parallel && setting.context.tensor > 1;
}

// Seconds left to hide when one part in `tensor` has nothing to run behind.
Seconds but_one_part(Seconds collective, const CostSetting& setting) {
  return (1 - 1.0 / setting.context.tensor) * collective;
}

void leave_out(const Matmul& matmul, const CostSetting& setting, const Gpu& gpu, PassCost& pass) {
  const Software& software = setting.software;
  const double factor = setting.factors.compute;
  pass.matmul -= factor * (kernel_seconds(matmul, setting, gpu) - gpu.launch);
  pass.launches -= factor * (gpu.launch + software.gap);
  pass.host -= factor * software.operation[software.launch];
}

// Adds what of the tensor ranks' collectives is hidden.
void hide_tensor(const Transformer& model, LayerKind kind, const CostSetting& setting,
                 const Hardware& hardware, LayerCost& cost) {
  PassCost& f = cost.forward;
  PassCost& b = cost.backward_input;
  PassCost& w = cost.backward_weight;
  const Seconds gathers = std::min(w.tensor, b.matmul);
  w.hidden += gathers;
  // Where experts are divided over tensor ranks too, their exchange is no gradient's reduction.
  const bool apart = setting.context.expert_tensor == 1 || !model.experts;
  LayerContext once = setting.context;  // what is computed again reduces no gradient
  once.recompute = {};
  const Seconds reduced =
      apart ? reductions(layer_work(model, kind, PassKind::kB, once), setting, hardware)
            : Seconds(0);
  const Seconds behind_w = setting.fused_backward ? std::min(reduced, w.matmul) : Seconds(0);
  b.hidden += behind_w;
  if (cuts_into_parts(setting)) {
    f.hidden += std::min(but_one_part(f.tensor, setting), f.matmul);
    b.hidden += std::min(but_one_part(b.tensor - behind_w, setting), b.matmul - gathers);
  }
}

}  // namespace

PassCost& PassCost::operator+=(const PassCost& other) {
  matmul += other.matmul;
  attention += other.attention;
  memory_bound += other.memory_bound;
  launches += other.launches;
  tensor += other.tensor;
  context += other.context;
  expert += other.expert;
  hidden += other.hidden;
  host += other.host;
  return *this;
}

PassCost operator*(double factor, const PassCost& cost) {
  return {factor * cost.matmul,   factor * cost.attention, factor * cost.memory_bound,
          factor * cost.launches, factor * cost.tensor,    factor * cost.context,
          factor * cost.expert,   factor * cost.hidden,    factor * cost.host};
}

GroupShape group_shape(const CostSetting& setting, int gpus_per_node, Group group) {
  const LayerContext& context = setting.context;
  const auto shape = [gpus_per_node](int ranks, int stride) {
    return GroupShape{ranks, divisor_within(ranks, std::max(1, gpus_per_node / stride))};
  };
  switch (group) {
    case Group::kTensor:
      return shape(context.tensor, 1);
    case Group::kContext:
      return shape(sequence_ranks(context), context.tensor * head_ranks(context));
    case Group::kContextHeads:
      return shape(head_ranks(context), context.tensor);
    case Group::kExpert:
      return shape(context.expert, context.expert_tensor);
    case Group::kData:
      break;
  }
  return shape(setting.state.data * context.context, context.tensor);
}

Seconds kernel_seconds(const Matmul& matmul, const CostSetting& setting, const Gpu& gpu) {
  const double aligned = matmul.aligned ? 1 : gpu.sustained.unaligned;
  double rate = aligned * gpu.sustained.matmul[matmul.precision];
  // The fullest of the ranks holds the others up.
  if (matmul.grouped) rate *= setting.software.grouped / setting.software.fullest;
  return gpu.launch + (matmul_seconds(gpu, matmul) - gpu.launch) / rate;
}

Seconds kernel_seconds(const Attention& attention, const CostSetting& setting, const Gpu& gpu) {
  // One that the GPU does not run is replaced by what it runs.
  const double share =
      gpu.attention_kernels[setting.software.attention][attention.backward ? 1 : 0];
  const double rate = gpu.sustained.attention * (share > 0 ? share : 1);
  return gpu.launch + (attention_seconds(gpu, attention) - gpu.launch) / rate;
}

Seconds streaming_seconds(const Work& work, const CostSetting& setting, const Gpu& gpu) {
  const Software& software = setting.software;
  Bytes moved = software.traffic[software.launch] * work.moved +
                (software.permuting - 1) * work.permuted + software.biases * work.biased;
  for (const Matmul& matmul : work.matmuls) {
    if (matmul.adds()) moved += Bytes(software.gradient * matmul.results());
  }
  return memory_bound_seconds(gpu, moved / gpu.sustained.streaming, 0);
}

PassCost work_cost(const Work& work, const CostSetting& setting, const Hardware& hardware) {
  const Gpu& gpu = hardware.gpu;
  const Software& software = setting.software;
  PassCost cost;
  for (const Matmul& matmul : work.matmuls) {
    cost.matmul += kernel_seconds(matmul, setting, gpu) - gpu.launch;
  }
  for (const Attention& attention : work.attention) {
    cost.attention += kernel_seconds(attention, setting, gpu) - gpu.launch;
  }
  cost.memory_bound = streaming_seconds(work, setting, gpu);
  const auto kernels = static_cast<double>(work.matmuls.size() + work.attention.size() +
                                           static_cast<size_t>(work.kernels));
  cost.launches = kernels * (gpu.launch + software.gap) + 1.0 * work.routed * software.routing;
  cost.host = (kernels + collectives_of_many(work, setting, hardware)) *
                  software.operation[software.launch] +
              quantizing_experts(work, software);
  cost = setting.factors.compute * cost;
  cost.tensor = collective_of(work, Group::kTensor, setting, hardware);
  cost.context = collective_of(work, Group::kContext, setting, hardware) +
                 collective_of(work, Group::kContextHeads, setting, hardware);
  cost.expert =
      software.fullest / software.exchange * collective_of(work, Group::kExpert, setting, hardware);
  return cost;
}

CostSetting setting_of(LayerKind kind, const Transformer& model, const CostSetting& setting) {
  CostSetting own = setting;
  own.context = context_of(kind, model, setting.context);
  return own;
}

PassCost pass_cost(const Transformer& model, LayerKind kind, PassKind pass,
                   const CostSetting& setting, const Hardware& hardware) {
  return work_cost(layer_work(model, kind, pass, setting.context), setting_of(kind, model, setting),
                   hardware);
}

LayerCost layer_cost(const Transformer& model, LayerKind kind, const CostSetting& of_all,
                     const Hardware& hardware) {
  const CostSetting setting = setting_of(kind, model, of_all);
  const Work forward = layer_work(model, kind, PassKind::kF, setting.context);
  const Work backward = layer_work(model, kind, PassKind::kB, setting.context);
  LayerCost cost{work_cost(forward, setting, hardware),
                 work_cost(backward, setting, hardware),
                 pass_cost(model, kind, PassKind::kW, setting, hardware),
                 {}};
  cost.forward.hidden = beside_attention(forward, setting, hardware);
  cost.backward_input.hidden = beside_attention(backward, setting, hardware);
  if (setting.context.tensor > 1) hide_tensor(model, kind, setting, hardware, cost);
  for (PassCost* pass : {&cost.forward, &cost.backward_input, &cost.backward_weight}) {
    pass->hidden = (1 - hardware.interconnect.exchange_share) * pass->hidden;
  }
  if (!has_backward(model, kind)) return cost;  // nothing runs again
  cost.again = cost.forward;
  if (setting.software.early_stop && is_layer(kind) && feed_of(kind) == Feed::kMlp) {
    leave_out(forward.matmuls.back(), setting, hardware.gpu, cost.again);
  }
  return cost;
}

LayerCosts layer_costs(const Transformer& model, const CostSetting& setting,
                       const Hardware& hardware) {
  const KindCounts counts = count_all(model);
  LayerCosts costs{};
  for (const LayerKind kind : kLayerKinds) {
    if (counts[kind] == 0) continue;
    costs[kind] = layer_cost(model, kind, setting, hardware);
    if (!recomputes_apart(setting.context)) continue;
    CostSetting others = setting;
    others.context = context_of_others(setting.context);
    costs[kind].backward_of_others = layer_cost(model, kind, others, hardware).backward_input;
  }
  return costs;
}

}  // namespace pipesim
