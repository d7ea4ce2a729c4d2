#include "sim/interop/frameworks/megatron_schedule.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace pipesim {
namespace {

// Bars of a layout, counted with its repetitions: stages less one.
class LayoutBars {
 public:
  explicit LayoutBars(std::string_view text) : text_(text) {}
  long count() { return group(); }

 private:
  static constexpr long kMost = 1 << 16;

  long group() {
    long bars = 0;
    while (at_ < text_.size() && text_[at_] != ')') {
      const char c = text_[at_++];
      long here = c == '|' ? 1 : 0;
      if (c == '(' && depth_ < 16) {
        ++depth_;
        here = group();
        --depth_;
        if (at_ < text_.size()) ++at_;
      }
      bars = std::min(kMost, bars + here * times());
    }
    return bars;
  }
  long times() {
    if (at_ >= text_.size() || text_[at_] != '*') return 1;
    long times = 1;
    const auto read = std::from_chars(text_.data() + at_ + 1, text_.data() + text_.size(), times);
    at_ = static_cast<size_t>(read.ptr - text_.data());
    return std::clamp(times, 0L, kMost);
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

// The layout in a script's form, with its bars escaped or in quotes.
std::string layout_of(Settings& settings) {
  std::string text = settings.text({"pipeline_model_parallel_layout"}).value_or("");
  std::erase_if(text, [](char c) { return c == '\\' || c == '"' || c == '\'' || c == ' '; });
  return text;
}

long chunks_of(Settings& settings, const MegatronSizes& sizes) {
  const auto stages = settings.number(
      {"num_virtual_stages_per_pipeline_rank", "virtual_pipeline_model_parallel_size"}, 1);
  const auto layers = settings.number({"num_layers_per_virtual_pipeline_stage"}, 1);
  if (!sizes.layers_of_stage.empty()) {
    return std::max(1L, static_cast<long>(sizes.layers_of_stage.size()) / sizes.pipeline);
  }
  if (!sizes.layout.empty()) {
    const long all = LayoutBars(sizes.layout).count() + 1;
    return std::max(1L, all / sizes.pipeline);
  }
  if (stages) return *stages;
  return layers && sizes.layers > 0
             ? std::max(1L, sizes.layers / sizes.parts / sizes.pipeline / *layers)
             : 1;
}

std::string zero_bubble(Settings& settings, const MegatronSizes& sizes) {
  const std::string text = settings.text({"zero_bubble_max_pending_backward"}).value_or("");
  const long pending =
      text == "auto"
          ? 2 * sizes.pipeline
          : settings.number({"zero_bubble_max_pending_backward"}, 1).value_or(sizes.pipeline);
  if (pending == sizes.pipeline) return "zb-1p";
  if (pending == 2 * sizes.pipeline) return "zb-2p";
  return fmt::format("{{name: zb, memory_limit: {:.6g}}}",
                     static_cast<double>(pending) / static_cast<double>(sizes.pipeline));
}

std::string grouped(long group, const MegatronSizes& sizes) {
  const std::string chunks =
      sizes.chunks > 1 ? fmt::format(", virtual_pipeline_model_parallel_size: {}", sizes.chunks)
                       : "";
  if (group == (sizes.pipeline + 1) / 2) {
    return chunks.empty() ? "gis-h" : fmt::format("{{name: gis-h{}}}", chunks);
  }
  if (group == sizes.pipeline)
    return chunks.empty() ? "gis" : fmt::format("{{name: gis{}}}", chunks);
  return fmt::format("{{name: gis{}, group_size: {}}}", chunks, group);
}

// PipeOffload's: the order of groups, `count` chunks of which go to the host.
std::string offloaded(long group, long count, const MegatronSizes& sizes) {
  std::string text = count == sizes.chunks ? "{name: po-f" : "{name: po-h";
  if (sizes.chunks > 1) {
    text += fmt::format(", virtual_pipeline_model_parallel_size: {}", sizes.chunks);
  }
  if (group > 1) text += fmt::format(", group_size: {}", group);
  if (count < sizes.chunks) text += fmt::format(", offload_chunks: {}", count);
  return text + "}";
}

std::string interleaved(Settings& settings, const MegatronSizes& sizes) {
  std::string text = "{name: interleaved-1f1b";
  if (sizes.chunks > 1) {
    text += fmt::format(", virtual_pipeline_model_parallel_size: {}", sizes.chunks);
  }
  if (const auto group = settings.number({"microbatch_group_size_per_virtual_pipeline_stage",
                                          "microbatch_group_size_per_vp_stage"},
                                         1)) {
    text += fmt::format(", microbatch_group_size_per_vp_stage: {}", *group);
  }
  // MindSpeed's name, and Megatron-LM's.
  if (settings.is_set({"moe_fb_overlap", "overlap_moe_expert_parallel_comm"})) {
    text += ", overlap_moe_expert_parallel_comm: true";
  }
  for (const char* key : {"delay_wgrad_compute", "ep_overlap_early_attn_memory_release"}) {
    if (settings.is_set({key})) text += fmt::format(", {}: true", key);
  }
  return text + "}";
}

// One stage has no chunks there, and runs F of a microbatch beside BW of another all the same.
bool overlaps_on_one_stage(Settings& settings, const MegatronSizes& sizes) {
  return sizes.pipeline == 1 && settings.is_set({"overlap_moe_expert_parallel_comm"});
}

// Megatron-LM refuses the overlap on one expert rank and beside full recomputation.
void check_overlap(Settings& settings, const MegatronSizes& sizes, Draft& draft) {
  if (!settings.is_set({"overlap_moe_expert_parallel_comm"})) return;
  const long ranks =
      settings.number({"expert_model_parallel_size", "moe_expert_parallel_size"}, 1).value_or(1);
  const bool all = settings.text({"recompute_granularity"}) == "full";
  if (sizes.experts && ranks > 1 && !all) return;
  not_understood(draft, "overlap_moe_expert_parallel_comm",
                 fmt::format("overlap_moe_expert_parallel_comm {}",
                             all ? "beside full recomputation" : "of one expert rank"));
}

// The schedule by the fork's flags; empty: none of them is set.
std::string of_fork(Settings& settings, const MegatronSizes& sizes) {
  const bool plain = settings.is_set({"enable_zero_bubble"});
  const bool vee = settings.is_set({"zero_bubble_v_schedule"});
  const auto setup = settings.text({"zero_bubble_v_schedule_mem_setup"}).value_or("zb");
  const bool runtime = settings.is_set({"enable_zb_runtime"});
  const auto group = settings.number({"interleave_group_size"});
  const auto splits = settings.number({"num_seq_splits"}, 1);
  const bool offloads = settings.is_set({"cpu_offload"});
  const auto to_host = settings.number({"offload_chunk_num"}, 0);
  // Primus lists the fork's settings and switches them on by one of its own.
  if (!settings.flag({"patch_zero_bubble"}).value_or(true)) {
    (void)settings.find({"zero_bubble_max_pending_backward"});
    return "";
  }
  if (settings.is_set({"enable_1f1b_v"})) return "1f1b-v";
  if (vee) return setup == "half" ? "v-half" : setup == "min" ? "v-min" : "zb-v";
  if (plain) return zero_bubble(settings, sizes);
  if (runtime && group > 0 && offloads && to_host) return offloaded(*group, *to_host, sizes);
  if (runtime && group > 0) return grouped(*group, sizes);
  if (splits && *splits > 1) return fmt::format("{{name: seq-1f1b, splits: {}}}", *splits);
  return "";
}

// A schedule by its name: MindSpeed's, and those of Primus' own pipeline. Empty: none is named, or
// one that Megatron-LM's settings say.
std::string named_schedule(Settings& settings, MegatronSizes& sizes, Draft& draft) {
  struct Name {
    std::string_view theirs, ours;
    long chunks = 1;
  };
  static constexpr Name kNames[] = {{"1f1b", ""},
                                    {"1f1b-interleaved", ""},
                                    {"zero-bubble", "zb-h1"},
                                    {"zbv-formatted", "zb-v", 2},
                                    {"v-half", "v-half", 2},
                                    {"v-min", "v-min", 2},
                                    {"dualpipev", "dualpipev", 2},
                                    {"gpipe", "gpipe"}};
  const bool replaced = settings.is_set({"patch_primus_pipeline"});
  const auto algorithm = settings.text({"pp_algorithm"});
  const auto method = settings.text({"schedules_method"});
  const auto named = method ? method : replaced ? algorithm : std::nullopt;
  if (!named) return "";
  const auto* const known = std::ranges::find(kNames, *named, &Name::theirs);
  if (known != std::end(kNames)) {
    if (!known->ours.empty() && sizes.pipeline > 1) sizes.chunks = known->chunks;
    return sizes.pipeline > 1 ? std::string(known->ours) : "";
  }
  const char* const setting = method ? "schedules_method" : "pp_algorithm";
  not_understood(draft, setting, fmt::format("{} {}", setting, *named));
  return "";
}

}  // namespace

void put_schedule(Settings& settings, MegatronSizes& sizes, Draft& draft) {
  sizes.layout = layout_of(settings);
  sizes.chunks = sizes.pipeline > 1 ? chunks_of(settings, sizes) : 1;
  const std::string named = named_schedule(settings, sizes, draft);
  const bool deepspeeds = settings.is_set({"enable_zbh1_pipeline"});  // Megatron-DeepSpeed's
  const std::string fork = !named.empty() ? named : deepspeeds ? "zb-h1" : of_fork(settings, sizes);
  sizes.zero_bubble = !fork.empty();
  if (!fork.empty()) {
    draft.schedule = fork;
  } else if (sizes.chunks > 1 || overlaps_on_one_stage(settings, sizes)) {
    draft.schedule = interleaved(settings, sizes);
    check_overlap(settings, sizes, draft);
  }
  if (settings.is_set({"enable_optimizer_post_validation"})) {
    put(draft.optimizer, "sync", "post_validation");
  }
}

}  // namespace pipesim
