#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "sim/core/input_text.h"
#include "sim/interop/passes/recording.h"

namespace pipesim {
void sort_by_start(Recording& recording) {
  std::ranges::sort(recording.iterations, {}, &RecordedIteration::number);
  for (RecordedIteration& iteration : recording.iterations) {
    for (auto& passes : iteration.ranks) {
      std::ranges::stable_sort(
          passes, {}, [](const RecordedPass& pass) { return std::pair(pass.start, pass.end); });
    }
  }
}

Recording read_passes(const std::string& path, const Location& asked) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) throw InputError(asked, fmt::format("cannot read '{}'", path));
  if (fs::is_directory(path)) {
    if (fs::exists(fs::path(path) / "pp_rank_0.json", ignored)) return read_primus(path, asked);
    if (fs::exists(fs::path(path) / "finished_tasks.json", ignored)) return read_tasks(path, asked);
    throw InputError(asked, fmt::format("'{}' has neither pp_rank_0.json (Primus) nor "
                                        "finished_tasks.json (Megatron-LM's pull request 3138)",
                                        path));
  }
  const fs::path file(path);
  if (file.filename().string().starts_with("pp_rank_")) {
    return read_primus(file.parent_path().empty() ? "." : file.parent_path().string(), asked);
  }
  if (file.extension() == ".json") return read_tasks(path, asked);
  return read_passes_csv(path, read_input(path, asked));
}

}  // namespace pipesim
