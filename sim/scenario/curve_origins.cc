#include "sim/scenario/curve_origins.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace pipesim {
namespace {

constexpr std::array<std::string_view, 26> kCurves{"matmul",
                                                   "matmul_fp8",
                                                   "matmul_fp4",
                                                   "attention_forward",
                                                   "attention_backward",
                                                   "attention_kernels",
                                                   "streaming",
                                                   "all_reduce",
                                                   "all_gather",
                                                   "reduce_scatter",
                                                   "all_to_all",
                                                   "all_reduce_in_switch",
                                                   "send_recv",
                                                   "send_recv_between_nodes",
                                                   "all_reduce_between_nodes",
                                                   "all_gather_between_nodes",
                                                   "reduce_scatter_between_nodes",
                                                   "all_to_all_between_nodes",
                                                   "host_operation",
                                                   "jitter",
                                                   "host",
                                                   "link",
                                                   "network",
                                                   "compute_beside_messages",
                                                   "compute_beside_copies",
                                                   "compute_beside_collectives"};

}  // namespace

CurveOrigins curve_origins(std::span<const Sourced> numbers) {
  CurveOrigins origins;
  for (const Sourced& number : numbers) {
    const std::string curve = number.key.substr(0, number.key.find('.'));
    if (std::ranges::find(kCurves, curve) == kCurves.end()) continue;
    const auto from = [&](std::string_view kind) { return number.source.starts_with(kind); };
    std::vector<std::string>& list = from("measured") ? origins.measured
                                     : from("fitted") ? origins.fitted
                                                      : origins.catalogue;
    if (list.empty() || list.back() != curve) list.push_back(curve);
  }
  // Some curves stand beside numbers of the same group that no calibration measures.
  for (std::vector<std::string>* list : {&origins.fitted, &origins.catalogue}) {
    std::erase_if(*list, [&](const std::string& curve) {
      return std::ranges::find(origins.measured, curve) != origins.measured.end();
    });
  }
  return origins;
}

}  // namespace pipesim
