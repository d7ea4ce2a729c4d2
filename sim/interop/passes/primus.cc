// Primus' --dump_pp_data: a file for each pipeline rank, {"1": iteration, ...}, whose lists of
// fwd_start, fwd_end and so on are parallel and in order of execution, in milliseconds from the
// iteration's start on that rank. Stock schedules of Megatron-LM leave *_minibatch and *_chunk
// empty. Source: AMD-AGI/Primus, primus/backends/megatron/core/pipeline_parallel/pp_visualizer.py.
#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <optional>

#include "sim/interop/json/json.h"
#include "sim/interop/passes/recording.h"

namespace pipesim {
namespace {

constexpr double kMostMilliseconds = 1e12;

struct Lists {
  std::vector<JsonValue> start, end, microbatch, chunk;
};

Lists lists_of(const JsonValue& iteration, const std::string& prefix) {
  const auto list = [&](const char* name) {
    const auto found = iteration.find(prefix + name);
    return found ? found->values() : std::vector<JsonValue>{};
  };
  Lists lists{list("_start"), list("_end"), list("_minibatch"), list("_chunk")};
  const auto check = [&](const std::vector<JsonValue>& values, const char* name, bool may_lack) {
    if (values.size() == lists.start.size() || (may_lack && values.empty())) return;
    iteration.fail(fmt::format("{}{} has {} values, {}_start has {}", prefix, name, values.size(),
                               prefix, lists.start.size()));
  };
  check(lists.end, "_end", false);
  check(lists.microbatch, "_minibatch", true);
  check(lists.chunk, "_chunk", true);
  return lists;
}

void add(const JsonValue& iteration, const std::string& prefix, PassKind kind,
         std::vector<RecordedPass>& to) {
  const Lists lists = lists_of(iteration, prefix);
  for (size_t i = 0; i < lists.start.size(); ++i) {
    RecordedPass pass{.kind = kind};
    pass.start = lists.start[i].number(0, kMostMilliseconds) / 1e3;
    pass.end = lists.end[i].number(0, kMostMilliseconds) / 1e3;
    if (pass.end < pass.start) lists.end[i].fail("the pass ends before it starts");
    if (!lists.microbatch.empty()) {
      pass.microbatch = static_cast<int>(lists.microbatch[i].integer(0, kMostOfPass));
    }
    if (!lists.chunk.empty()) {
      pass.chunk = static_cast<int>(lists.chunk[i].integer(0, kMostOfPass));
    }
    to.push_back(pass);
  }
}

std::vector<RecordedPass> passes_of(const JsonValue& iteration) {
  std::vector<RecordedPass> passes;
  add(iteration, "fwd", PassKind::kF, passes);
  const size_t forwards = passes.size();
  const auto weights = iteration.find("wgrad_start");
  const bool split = weights && !weights->values().empty();
  add(iteration, "bwd", split ? PassKind::kB : PassKind::kBW, passes);
  add(iteration, "wgrad", PassKind::kW, passes);
  for (size_t f = 0; f < forwards; ++f) {
    for (size_t b = forwards; b < passes.size(); ++b) {
      if (passes[f].start != passes[b].start || passes[f].end != passes[b].end) continue;
      iteration.fail("a forward and a backward share one interval: overlapped blocks are not read");
    }
  }
  return passes;
}

// Rank -> iterations by number.
void add_rank(const std::string& path, const Location& asked, int rank, Recording& recording) {
  const JsonFile file = JsonFile::read(path, asked);
  double memory = 0;
  for (const JsonValue& iteration : file.root().values()) {
    int number = 0;
    const std::string& key = iteration.key();
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
    if (error != std::errc() || end != key.data() + key.size()) {
      iteration.fail("expected the number of an iteration");
    }
    auto found = std::ranges::find(recording.iterations, number, &RecordedIteration::number);
    if (found == recording.iterations.end()) {
      recording.iterations.push_back({number, {}});
      found = recording.iterations.end() - 1;
      found->ranks.resize(static_cast<size_t>(recording.ranks));
    }
    found->ranks[static_cast<size_t>(rank)] = passes_of(iteration);
    if (const auto held = iteration.find("memory"); held && held->is_number()) {
      memory = std::max(memory, held->number(0, 1e9));
    }
  }
  recording.memory.push_back(memory);
}

}  // namespace

Recording read_primus(const std::string& folder, const Location& asked) {
  namespace fs = std::filesystem;
  const auto rank_file = [&](int rank) {
    return (fs::path(folder) / fmt::format("pp_rank_{}.json", rank)).string();
  };
  Recording recording{.format = "Primus pass JSON", .where = {folder, 0, 0, ""}};
  std::error_code ignored;
  while (recording.ranks < kMostRanks && fs::exists(rank_file(recording.ranks), ignored)) {
    ++recording.ranks;
  }
  const std::string config = (fs::path(folder) / "config.json").string();
  if (fs::exists(config, ignored)) {
    const JsonFile file = JsonFile::read(config, asked);
    const auto size = [&](const char* key) {
      const auto value = file.root().find(key);
      return value && value->is_number() ? static_cast<int>(value->integer(1, kMostOfPass)) : 0;
    };
    for (const char* key : {"vp_size", "vpp_size"}) {
      recording.chunks = std::max(recording.chunks, size(key));
    }
    if (const int ranks = size("pp_size"); ranks != 0 && ranks != recording.ranks) {
      file.root().fail(fmt::format("pp_size is {}, but there are {} files pp_rank_*.json from 0 on",
                                   ranks, recording.ranks));
    }
  }
  for (int rank = 0; rank < recording.ranks; ++rank) {
    add_rank(rank_file(rank), asked, rank, recording);
  }
  sort_by_start(recording);
  return recording;
}

}  // namespace pipesim
