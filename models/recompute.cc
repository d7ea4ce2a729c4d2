#include "models/recompute.h"

#include <algorithm>

namespace pipesim {
namespace {

constexpr std::array<RecomputeGranularity, 4> kWords{
    RecomputeGranularity::kNone, RecomputeGranularity::kSelective, RecomputeGranularity::kPointwise,
    RecomputeGranularity::kFull};

}  // namespace

std::string to_text(RecomputeGranularity granularity) {
  const auto* word = std::ranges::find(kWords, granularity);
  if (word != kWords.end()) return std::string(kRecomputeGranularities[word - kWords.begin()]);
  std::string text;
  for (size_t i = 0; i < kRecomputeModules.size(); ++i) {
    if (!granularity.any(static_cast<RecomputeModule>(i))) continue;
    if (!text.empty()) text += '+';
    text += kRecomputeModules[i];
  }
  return text;
}

std::optional<RecomputeGranularity> recompute_from(std::string_view text) {
  const auto* word = std::ranges::find(kRecomputeGranularities, text);
  if (word != kRecomputeGranularities.end()) return kWords[word - kRecomputeGranularities.begin()];
  RecomputeGranularity all;
  while (true) {
    const size_t plus = text.find('+');
    const auto* module = std::ranges::find(kRecomputeModules, text.substr(0, plus));
    if (module == kRecomputeModules.end()) return std::nullopt;
    all = all | static_cast<RecomputeModule>(module - kRecomputeModules.begin());
    if (plus == std::string_view::npos) return all;
    text.remove_prefix(plus + 1);
  }
}

}  // namespace pipesim
