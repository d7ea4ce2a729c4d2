// PyTorch-profiler traces (Kineto's Chrome trace JSON): passes are named ranges.
//
// Where the GPU's side of a range is in the trace (cat gpu_user_annotation) it is the pass. Else
// the pass runs from the first to the last kernel, NCCL's left out, that was launched while the
// CPU's range was open (args.correlation); with no kernels at all it is the CPU's range, which a
// note says. ProfilerStep#N parts iterations. Sources: pytorch/kineto (ActivityType), the tutorial
// of torch.profiler; names: torch/distributed/pipelining/schedules.py.
#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "sim/interop/json/json.h"
#include "sim/interop/passes/recording.h"

namespace pipesim {
namespace {

constexpr double kMostMicroseconds = 1e18;

// True if the pattern matches the whole of `name`. Each number is as long as the rest allows, up to
// 7 digits, and is stored in `pass`.
bool matches(std::string_view pattern, std::string_view name, RecordedPass& pass) {
  struct Field {
    std::string_view name;
    int RecordedPass::*to;
  };
  constexpr std::array<Field, 3> kFields{{{"{stage}", &RecordedPass::stage},
                                          {"{chunk}", &RecordedPass::chunk},
                                          {"{microbatch}", &RecordedPass::microbatch}}};
  for (; !pattern.empty(); pattern.remove_prefix(1), name.remove_prefix(1)) {
    const auto* const field = std::ranges::find_if(
        kFields, [pattern](const Field& each) { return pattern.starts_with(each.name); });
    if (field != kFields.end()) {
      const std::string_view rest = pattern.substr(field->name.size());
      const size_t digits =
          std::min({name.find_first_not_of("0123456789"), name.size(), size_t{7}});
      for (size_t taken = digits; taken > 0; --taken) {
        if (!matches(rest, name.substr(taken), pass)) continue;
        std::from_chars(name.data(), name.data() + taken, pass.*field->to);
        return true;
      }
      return false;
    }
    if (name.empty() || name.front() != pattern.front()) return false;
  }
  return name.empty();
}

// A range of one name on the CPU or the GPU.
struct Range {
  RecordedPass pass;
  bool on_gpu = false;
};

struct Kernel {
  double start = 0;
  double end = 0;
};

class Trace {
 public:
  explicit Trace(const std::vector<RangePattern>& patterns) : patterns_(patterns) {}

  void add(const JsonValue& event) {
    if (text_of(event, "ph") != "X") return;
    const std::string cat = text_of(event, "cat");
    const std::string name = text_of(event, "name");
    if (cat == "user_annotation" || cat == "gpu_user_annotation") {
      add_range(event, name, cat.front() == 'g');
    } else if (cat == "cuda_runtime" || cat == "cuda_driver") {
      if (const auto id = correlation(event)) launches_.emplace_back(begin_of(event), *id);
    } else if (cat == "kernel" && !name.starts_with("nccl")) {
      if (const auto id = correlation(event)) kernels_[*id] = {begin_of(event), end_of(event)};
    }
  }

  // Passes on the GPU where the trace has them, else on the CPU.
  std::vector<Range> passes(std::vector<std::string>& notes) {
    const bool gpu = std::ranges::any_of(ranges_, &Range::on_gpu);
    if (gpu) {
      std::erase_if(ranges_, [](const Range& range) { return !range.on_gpu; });
      return std::move(ranges_);
    }
    std::ranges::sort(launches_);
    bool launched = false;
    for (Range& range : ranges_) launched = settle(range.pass) || launched;
    if (launched) {
      note(notes, "passes run from the first to the last kernel launched within their range");
    } else {
      note(notes, "no kernels in the trace: passes are the CPU's ranges");
    }
    return std::move(ranges_);
  }

  // The number of the ProfilerStep that is open at a time; nothing where there are none.
  [[nodiscard]] std::optional<int> step_at(double time) const {
    for (const auto& [number, step] : steps_) {
      if (time >= step.start && time < step.end) return number;
    }
    return std::nullopt;
  }
  [[nodiscard]] bool has_steps() const { return !steps_.empty(); }
  [[nodiscard]] const Location& overlapped() const { return overlapped_; }

 private:
  static void note(std::vector<std::string>& notes, const char* text) {
    if (std::ranges::find(notes, text) == notes.end()) notes.emplace_back(text);
  }
  static std::string text_of(const JsonValue& event, std::string_view key) {
    const auto found = event.find(key);
    return found && found->is_text() ? found->text() : "";
  }
  static double begin_of(const JsonValue& event) {
    return event.require("ts", "microseconds").number(0, kMostMicroseconds) / 1e6;
  }
  static double end_of(const JsonValue& event) {
    const double seconds = event.require("dur", "microseconds").number(0, kMostMicroseconds) / 1e6;
    return begin_of(event) + seconds;
  }
  static std::optional<long> correlation(const JsonValue& event) {
    const auto args = event.find("args");
    if (!args || !args->is_map()) return std::nullopt;
    const auto id = args->find("correlation");
    return id && id->is_number() ? std::optional(id->integer(0, 1L << 52)) : std::nullopt;
  }

  void add_range(const JsonValue& event, const std::string& name, bool on_gpu) {
    constexpr std::string_view kStep = "ProfilerStep#";
    if (name.starts_with(kStep)) {
      int number = 0;
      std::from_chars(name.data() + kStep.size(), name.data() + name.size(), number);
      if (!on_gpu) steps_[number] = {begin_of(event), end_of(event)};
      return;
    }
    if (name.find("OVERLAP_F_B") != std::string::npos && overlapped_.line == 0) {
      overlapped_ = event.where();
    }
    for (const RangePattern& pattern : patterns_) {
      RecordedPass pass{.kind = pattern.kind, .start = begin_of(event), .end = end_of(event)};
      if (!matches(pattern.template_, name, pass)) continue;
      ranges_.push_back({pass, on_gpu});
      return;
    }
  }

  // The pass by its kernels; false where it has none.
  bool settle(RecordedPass& pass) const {
    std::optional<Kernel> span;
    auto launch = std::ranges::lower_bound(launches_, std::pair(pass.start, -1L));
    for (; launch != launches_.end() && launch->first <= pass.end; ++launch) {
      const auto kernel = kernels_.find(launch->second);
      if (kernel == kernels_.end()) continue;
      if (!span) span = kernel->second;
      span = {std::min(span->start, kernel->second.start), std::max(span->end, kernel->second.end)};
    }
    if (!span) return false;
    pass.start = span->start;
    pass.end = span->end;
    return true;
  }

  const std::vector<RangePattern>& patterns_;
  std::vector<Range> ranges_;
  std::map<int, Kernel> steps_;
  std::vector<std::pair<double, long>> launches_;
  std::unordered_map<long, Kernel> kernels_;
  Location overlapped_;
};

// Files of a folder, in order of the numbers in their names.
std::vector<std::string> files_of(const std::string& path, const Location& asked) {
  namespace fs = std::filesystem;
  std::error_code failed;
  if (!fs::is_directory(path, failed)) return {path};
  std::vector<std::pair<std::pair<size_t, std::string>, std::string>> found;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".json") found.push_back({{name.size(), name}, entry.path()});
  }
  if (found.empty()) throw InputError(asked, fmt::format("'{}' has no *.json", path));
  std::ranges::sort(found);
  std::vector<std::string> paths;
  for (auto& each : found) paths.push_back(std::move(each.second));
  return paths;
}

// distributedInfo says it; without it the place among the files.
size_t rank_of(const JsonFile& file, size_t place, size_t files) {
  const auto info = file.root().find("distributedInfo");
  const auto rank = info && info->is_map() ? info->find("rank") : std::nullopt;
  if (!rank) return place;
  const auto number = static_cast<size_t>(rank->integer(0, kMostRanks));
  if (number >= files) {
    rank->fail(fmt::format("rank {}, but there are {} traces: one for each rank of one pipeline",
                           number, files));
  }
  return number;
}

// A step for each ProfilerStep; without them, a new one whenever a pass comes again.
void split(const Trace& trace, std::vector<Range> ranges, size_t rank, Recording& recording) {
  const auto start = [](const Range& range) { return range.pass.start; };
  std::ranges::stable_sort(ranges, {}, start);
  std::map<std::array<int, 4>, int> seen;
  for (const Range& range : ranges) {
    const RecordedPass& pass = range.pass;
    const std::optional<int> step = trace.step_at(pass.start);
    if (trace.has_steps() && !step) continue;
    const int again =
        seen[{static_cast<int>(pass.kind), pass.stage, pass.chunk, pass.microbatch}]++;
    const int number = step.value_or(pass.microbatch >= 0 ? again : 0);
    auto found = std::ranges::find(recording.iterations, number, &RecordedIteration::number);
    if (found == recording.iterations.end()) {
      recording.iterations.push_back({number, {}});
      found = recording.iterations.end() - 1;
      found->ranks.resize(static_cast<size_t>(recording.ranks));
    }
    found->ranks[rank].push_back(pass);
    recording.chunks = std::max(recording.chunks, pass.chunk + 1);
  }
}

// A backward without a W of its stage is a whole one, whatever its name said.
void settle_backwards(Recording& recording) {
  bool splits = false;
  for (const auto& iteration : recording.iterations) {
    for (const auto& passes : iteration.ranks) {
      splits =
          splits || std::ranges::find(passes, PassKind::kW, &RecordedPass::kind) != passes.end();
    }
  }
  if (splits) return;
  for (auto& iteration : recording.iterations) {
    for (auto& passes : iteration.ranks) {
      for (RecordedPass& pass : passes) {
        if (pass.kind == PassKind::kB) pass.kind = PassKind::kBW;
      }
    }
  }
}

}  // namespace

const std::vector<RangePattern>& default_patterns() {
  static const std::vector<RangePattern> kPatterns{
      {PassKind::kF, "PP:{stage}F{microbatch}"},
      {PassKind::kB, "PP:{stage}I{microbatch}"},
      {PassKind::kW, "PP:{stage}W{microbatch}"},
      {PassKind::kBW, "PP:{stage}B{microbatch}"},
      {PassKind::kF, "Forward {microbatch}"},
      {PassKind::kBW, "Backward {microbatch}"},
      {PassKind::kF, "forward_step"},
      {PassKind::kBW, "backward_step"},
      {PassKind::kF, "F{microbatch}"},
      {PassKind::kB, "B{microbatch}"},
      {PassKind::kW, "W{microbatch}"},
      {PassKind::kBW, "BW{microbatch}"},
      {PassKind::kF, "F{microbatch}.{chunk}"},
      {PassKind::kB, "B{microbatch}.{chunk}"},
      {PassKind::kW, "W{microbatch}.{chunk}"},
      {PassKind::kBW, "BW{microbatch}.{chunk}"},
  };
  return kPatterns;
}

Recording read_kineto(const std::string& path, const Location& asked,
                      const std::vector<RangePattern>& patterns) {
  const auto files = files_of(path, asked);
  Recording recording{.format = "PyTorch-profiler traces",
                      .where = {path, 0, 0, ""},
                      .ranks = static_cast<int>(files.size())};
  for (size_t i = 0; i < files.size(); ++i) {
    Trace trace(patterns);
    const JsonFile file =
        JsonFile::read(files[i], asked, "traceEvents", [&trace](const JsonValue& event) {
          if (event.is_map()) trace.add(event);
        });
    if (trace.overlapped().line > 0) {
      throw InputError(trace.overlapped(), "overlapped blocks (OVERLAP_F_B) are not read");
    }
    auto ranges = trace.passes(recording.notes);
    if (ranges.empty()) {
      std::vector<std::string> names;
      for (const RangePattern& pattern : patterns) names.push_back(pattern.template_);
      throw InputError({files[i], 0, 0, ""},
                       fmt::format("no range is named as a pass: expected one of {}; --range "
                                   "KIND=NAME says others",
                                   fmt::join(names, ", ")));
    }
    split(trace, std::move(ranges), rank_of(file, i, files.size()), recording);
  }
  settle_backwards(recording);
  sort_by_start(recording);
  return recording;
}

}  // namespace pipesim
