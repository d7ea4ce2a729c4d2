#include "sim/report/text/layer_parts.h"

#include <array>
#include <fmt/format.h>

#include "models/layer_work.h"

namespace pipesim {
namespace {

constexpr EnumArray<LayerKind, const char*> kKindNames{{"dense layer",
                                                        "MoE layer",
                                                        "embedding",
                                                        "output",
                                                        "MTP module",
                                                        "dense layer with a window",
                                                        "MoE layer with a window",
                                                        "dense layer, linear attention",
                                                        "MoE layer, linear attention",
                                                        "dense layer, keys of the layer before",
                                                        "MoE layer, keys of the layer before",
                                                        "dense layer, sparse attention",
                                                        "MoE layer, sparse attention",
                                                        "dense layer, tokens of the layer before",
                                                        "MoE layer, tokens of the layer before",
                                                        "dense layer, both kinds of attention",
                                                        "MoE layer, both kinds of attention",
                                                        "dense layer, compressed attention",
                                                        "MoE layer, compressed attention",
                                                        "dense layer, compressed and sparse",
                                                        "MoE layer, compressed and sparse",
                                                        "linear attention",
                                                        "attention",
                                                        "MLP",
                                                        "experts",
                                                        "MLP of size a",
                                                        "MLP of size b",
                                                        "MLP of size c",
                                                        "MLP of size d",
                                                        "MLP of size e",
                                                        "MLP of size f",
                                                        "MLP of size g",
                                                        "MLP of size h",
                                                        "MLP of size i",
                                                        "MLP of size j",
                                                        "MLP of size k",
                                                        "MLP of size l",
                                                        "MLP of size m",
                                                        "MLP of size n",
                                                        "MLP of size o",
                                                        "MLP of size p",
                                                        "encoder layer",
                                                        "encoder layer, in front of a decoder",
                                                        "decoder layer, cross attention",
                                                        "embedding of the decoder",
                                                        "traced block",
                                                        "traced block, second kind",
                                                        "traced block, third kind",
                                                        "traced block, fourth kind"}};

constexpr std::array kCollectiveNames{"all-reduce", "all-gather", "reduce-scatter", "all-to-all",
                                      "send and receive"};
constexpr std::array kCurves{"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                             "all_to_all"};
constexpr std::array kGroups{"tensor", "context", "expert", "data", "context"};

double rate(Flops flops, Seconds seconds, FlopsPerSecond peak) { return flops / seconds / peak; }

CostPart part_of(const Matmul& matmul, const CostSetting& setting, const Gpu& gpu) {
  constexpr std::array kMatmulCurves{"matmul", "matmul_fp8", "matmul_fp4", "matmul"};
  const Seconds seconds = kernel_seconds(matmul, setting, gpu);
  return {.name = matmul.name,
          .shape = fmt::format("{} x {} x {}{}", matmul.m, matmul.n, matmul.k,
                               matmul.batch > 1 ? fmt::format(", {} of them", matmul.batch) : ""),
          .flops = matmul.flops(),
          .bytes = {},
          .share = rate(matmul.flops(), seconds, gpu.peak[static_cast<size_t>(matmul.precision)]),
          .seconds = seconds,
          .curve = kMatmulCurves[static_cast<size_t>(matmul.precision)]};
}

CostPart part_of(const Attention& attention, const CostSetting& setting, const Gpu& gpu) {
  const Seconds seconds = kernel_seconds(attention, setting, gpu);
  const char* way = attention.backward ? "backward" : "forward";
  return {.name = fmt::format("attention {}", way),
          .shape = fmt::format("heads of {}", attention.head_size),
          .flops = attention.flops,
          .bytes = attention.moved,
          .share = rate(attention.flops, seconds, gpu.peak[0]),
          .seconds = seconds,
          .curve = fmt::format("attention_{}", way)};
}

// Between kernels, and for what goes where.
Seconds host_seconds(const Work& work, const Software& software) {
  const auto kernels = static_cast<double>(work.matmuls.size() + work.attention.size() +
                                           static_cast<size_t>(work.kernels));
  return kernels * software.gap + 1.0 * work.routed * software.routing;
}

}  // namespace

const char* name_of(LayerKind kind) { return kKindNames[kind]; }

std::string curve_of(const Interconnect& interconnect, const Collective& collective,
                     GroupShape group) {
  const std::string ring = kCurves[static_cast<size_t>(collective.kind)];
  const bool crosses = group.ranks > group.ranks_per_node;
  const bool message = collective.kind == CollectiveKind::kSendReceive;
  if (message && !crosses && interconnect.messages) return "send_recv";
  if (crosses) {
    const std::string name = message ? "send_recv" : ring;
    const bool measured =
        interconnect.between_nodes[static_cast<size_t>(collective.kind)].has_value();
    const std::string network = measured ? name + "_between_nodes" : "network";
    const bool within = group.ranks_per_node > 1 && !message;
    return within ? ring + ", " + network : network;
  }
  const bool may = collective.kind == CollectiveKind::kAllReduce && interconnect.nvls &&
                   group.ranks >= interconnect.nvls_ranks;
  const auto seconds = [&](const CollectiveCurve& curve) {
    return collective_seconds(curve, collective.kind, collective.bytes, group.ranks);
  };
  return may && seconds(*interconnect.nvls) < seconds(interconnect.curves[0])
             ? "all_reduce_in_switch"
             : ring;
}

CostPart part_of(const Collective& collective, const std::string& among, GroupShape group,
                 const Interconnect& interconnect) {
  return {
      .name = fmt::format("{}, {}", kCollectiveNames[static_cast<size_t>(collective.kind)], among),
      .shape = fmt::format("{} ranks, {} a node{}", group.ranks, group.ranks_per_node,
                           collective.steps > 1 ? fmt::format(", {} steps", collective.steps) : ""),
      .flops = {},
      .bytes = 1.0 * collective.steps * collective.bytes,
      .share = 0,
      .seconds = collective_seconds(interconnect, collective, group),
      .curve = curve_of(interconnect, collective, group)};
}

std::vector<CostPart> parts_of(const Transformer& model, LayerKind kind, PassKind pass,
                               const CostSetting& setting, const Hardware& hardware) {
  return parts_of(layer_work(model, kind, pass, setting.context), setting_of(kind, model, setting),
                  hardware);
}

std::vector<CostPart> parts_of(const Work& work, const CostSetting& setting,
                               const Hardware& hardware) {
  const Gpu& gpu = hardware.gpu;
  std::vector<CostPart> parts;
  for (const Matmul& matmul : work.matmuls) parts.push_back(part_of(matmul, setting, gpu));
  for (const Attention& attention : work.attention)
    parts.push_back(part_of(attention, setting, gpu));
  if (work.kernels > 0) {
    const Seconds seconds = 1.0 * work.kernels * gpu.launch + streaming_seconds(work, setting, gpu);
    parts.push_back({.name = "memory-bound",
                     .shape = fmt::format("{} kernels", work.kernels),
                     .flops = {},
                     .bytes = work.moved,
                     .share = work.moved / seconds / gpu.memory_bandwidth,
                     .seconds = seconds,
                     .curve = "streaming"});
  }
  for (const Collective& collective : work.collectives) {
    const char* group = kGroups[static_cast<size_t>(collective.group)];
    CostPart part =
        part_of(collective, fmt::format("{} ranks", group),
                group_shape(setting, hardware.interconnect.gpus_per_node, collective.group),
                hardware.interconnect);
    if (collective.group == Group::kExpert) {
      part.seconds = setting.software.fullest / setting.software.exchange * part.seconds;
    }
    if (part.seconds > Seconds(0)) parts.push_back(std::move(part));
  }
  if (const Seconds host = host_seconds(work, setting.software); host > Seconds(0)) {
    parts.push_back({.name = "waiting for the host",
                     .shape = fmt::format("routed {} times", work.routed),
                     .flops = {},
                     .bytes = {},
                     .share = 0,
                     .seconds = host,
                     .curve = "software"});
  }
  return parts;
}

}  // namespace pipesim
