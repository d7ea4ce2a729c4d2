// The tasks that the simulation of Megatron-LM's pull request 3138 measures one by one:
// finished_tasks.json, {"<rank>": [task in order of execution]}, task {task_type, pp_rank,
// microbatch_id, model_chunk_id, duration in ms, ...}. There is no clock: durations alone. Source:
// NVIDIA/Megatron-LM pull request 3138, megatron/training/simulation/task.py and vpp_simulate.py.
#include <charconv>
#include <filesystem>
#include <fmt/format.h>

#include "sim/interop/json/json.h"
#include "sim/interop/passes/recording.h"

namespace pipesim {
namespace {

RecordedPass pass_of(const JsonValue& task, PassKind kind, double now) {
  const auto number = [&](const char* key, const char* what) {
    return static_cast<int>(task.require(key, what).integer(0, kMostOfPass));
  };
  const JsonValue duration = task.require("duration", "milliseconds");
  if (duration.is_null()) duration.fail("the task has not run");
  RecordedPass pass{.kind = kind};
  pass.microbatch = number("microbatch_id", "the number of its microbatch");
  pass.chunk = number("model_chunk_id", "the chunk of its rank");
  pass.start = now;
  pass.end = now + duration.number(0, 1e12) / 1e3;
  return pass;
}

std::vector<RecordedPass> passes_of(const JsonValue& tasks, int& chunks) {
  std::vector<RecordedPass> passes;
  double now = 0;
  for (const JsonValue& task : tasks.values()) {
    const std::string& type = task.require("task_type", "forward or backward").text();
    if (type == "send" || type == "recv" || type == "gbs_finish") continue;
    const bool forward = type == "forward";
    if (!forward && type != "backward") {
      task.require("task_type", "").fail("expected forward, backward, send, recv or gbs_finish");
    }
    passes.push_back(pass_of(task, forward ? PassKind::kF : PassKind::kBW, now));
    now = passes.back().end;
    chunks = std::max(chunks, passes.back().chunk + 1);
  }
  return passes;
}

}  // namespace

Recording read_tasks(const std::string& path, const Location& asked) {
  namespace fs = std::filesystem;
  const std::string file_path =
      fs::is_directory(path) ? (fs::path(path) / "finished_tasks.json").string() : path;
  const JsonFile file = JsonFile::read(file_path, asked);
  Recording recording{.format = "Megatron-LM task JSON (pull request 3138)",
                      .where = file.root().where(),
                      .timed = false};
  const auto ranks = file.root().values();
  recording.ranks = static_cast<int>(ranks.size());
  recording.iterations.push_back({1, {}});
  recording.iterations[0].ranks.resize(ranks.size());
  for (const JsonValue& tasks : ranks) {
    size_t rank = ranks.size();
    const std::string& key = tasks.key();
    std::from_chars(key.data(), key.data() + key.size(), rank);
    if (rank >= ranks.size()) {
      tasks.fail(fmt::format("expected a rank below {}, as many as there are", ranks.size()));
    }
    recording.iterations[0].ranks[rank] = passes_of(tasks, recording.chunks);
  }
  recording.notes.emplace_back(
      "durations alone, measured one by one on one rank: gaps, messages and the run itself are not "
      "in the file");
  return recording;
}

}  // namespace pipesim
