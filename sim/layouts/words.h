// Words of planned layouts for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/layouts/outcome.h"

namespace pipesim {

// "h100-sxm" as "H100".
std::string gpu_text(std::string_view name);
// "$9.5 M", "$790,000".
std::string money_text(double amount, int digits);
// "12 GiB": the rest of a limit, in two digits.
std::string room_text(Bytes bytes);

// "tp 8, pp 2, vpp 10, micro batch 2, layernorm recompute": sizes that are one are left out.
std::string layout_words(const PlanQuestion& question, const PlanPoint& point);
// "selective recompute", "full recompute of 3 layers a stage".
std::string recompute_text(const PlanPoint& point);
// "3-10" of chunk numbers that take as long, else the number.
std::string chunks_text(const Planned& planned);
// The layout's options beside its sizes and 1F1B: "interleaved-zb, pointwise recompute, offload";
// empty where it has nothing.
std::string extras_of(const PlanQuestion& question, const PlanPoint& point);

// "Megatron-Bridge": the framework that is named for a row, or that none runs it as it stands.
std::string runs_text(const Planned& planned);
// "Megatron" for both of its runtimes, "torchtitan"; "-" for none.
std::string frameworks_text(const std::vector<Framework>& frameworks);

// "exposed collectives".
std::string_view words_of(PlanShare share);

}  // namespace pipesim
