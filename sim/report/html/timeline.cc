#include "sim/report/html/timeline.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/graph/critical_path.h"
#include "sim/metrics/memory_curve.h"
#include "sim/report/drawing/palette.h"

namespace pipesim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

std::string base64(const std::vector<std::uint32_t>& words) {
  static constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve(words.size() * 16 / 3 + 4);
  std::uint32_t bits = 0;
  int held = 0;
  const auto put = [&] { text += kLetters[(bits >> static_cast<unsigned>(held)) & 63U]; };
  for (const std::uint32_t word : words) {
    for (unsigned byte = 0; byte < 4; ++byte) {  // the least significant first
      bits = bits << 8U | ((word >> (8 * byte)) & 255U);
      for (held += 8; held >= 6;) {
        held -= 6;
        put();
      }
    }
  }
  if (held > 0) {
    bits <<= static_cast<unsigned>(6 - held);
    held = 0;
    put();
  }
  while (text.size() % 4 != 0) text += '=';
  return text;
}

class TimelineData {
 public:
  explicit TimelineData(const Result& result)
      : graph_(*result.graph),
        timeline_(result.timeline),
        middle_(graph_.iterations() / 2),
        splits_(result.program->shape().splits),
        passes_(graph_.devices()),
        beside_(graph_.devices()),
        known_(graph_.classes().size(), kNone) {
    for (TaskId task = 0; task < graph_.size(); ++task) {
      if (graph_.iteration(task) == middle_) take(task);
    }
    for (auto& of_device : beside_) {
      std::ranges::stable_sort(of_device, {},
                               [this](TaskId task) { return timeline_.start[task]; });
    }
  }

  Json json(bool bytes) {
    std::vector<std::uint32_t> start, length, microbatch, second, of_class;
    std::vector<std::uint32_t> index(graph_.size(), kNone);
    Json first = Json::array({0});
    for (const auto& of_device : passes_) {
      for (const TaskId task : of_device) {
        index[task] = static_cast<std::uint32_t>(start.size());
        start.push_back(fraction(timeline_.start[task]));
        length.push_back(fraction(timeline_.end[task]) - start.back());
        of_class.push_back(class_of(task));
        const auto [mine, other] = microbatches(task);
        microbatch.push_back(mine);
        second.push_back(other);
      }
      first.push_back(start.size());
    }
    std::vector<std::uint32_t> critical;
    for (const TaskId task : critical_path(graph_, timeline_)) {
      if (index[task] != kNone) critical.push_back(index[task]);
    }
    Json json{{"seconds", end_ - begin_},    {"splits", splits_},
              {"classes", classes_},         {"first", first},
              {"start", base64(start)},      {"length", base64(length)},
              {"class", base64(of_class)},   {"microbatch", base64(microbatch)},
              {"critical", base64(critical)}};
    if (std::ranges::any_of(second, [](std::uint32_t each) { return each != kNone; })) {
      json["second"] = base64(second);
    }
    json["beside"] = beside();
    if (bytes) json["memory"] = memory();
    return json;
  }

 private:
  // Steps that take no time have no place in a drawing.
  void take(TaskId task) {
    const TaskClass& of = graph_.task_class(task);
    const bool pass = of.kind == TaskKind::kCompute;
    if (!pass && timeline_.end[task] <= timeline_.start[task]) return;
    if (of.kind == TaskKind::kCollective) {
      for (auto& of_device : beside_) of_device.push_back(task);
    } else {
      (pass || of.kind == TaskKind::kOptimizer ? passes_ : beside_)[of.device].push_back(task);
    }
    if (is_beside_compute(of.kind)) return;
    begin_ = std::min(begin_, timeline_.start[task]);
    end_ = std::max(end_, timeline_.end[task]);
  }

  // Messages by their sender, copies to and from the host, and collectives, which all devices have.
  Json beside() {
    std::vector<std::uint32_t> start, length, microbatch, of_class;
    std::vector<std::uint32_t> known(graph_.classes().size(), kNone);
    Json classes = Json::array(), first = Json::array({0});
    for (const auto& of_device : beside_) {
      for (const TaskId task : of_device) {
        const std::uint32_t number = graph_.class_of()[task];
        if (known[number] == kNone) {
          known[number] = static_cast<std::uint32_t>(classes.size());
          classes.push_back(beside_class(graph_.task_class(task)));
        }
        start.push_back(fraction(timeline_.start[task]));
        length.push_back(fraction(timeline_.end[task]) - start.back());
        microbatch.push_back(static_cast<std::uint32_t>(graph_.microbatch(task)));
        of_class.push_back(known[number]);
      }
      first.push_back(start.size());
    }
    return {{"classes", classes},        {"first", first},
            {"start", base64(start)},    {"length", base64(length)},
            {"class", base64(of_class)}, {"microbatch", base64(microbatch)}};
  }

  [[nodiscard]] Json beside_class(const TaskClass& of) const {
    if (of.kind == TaskKind::kCollective) return {{"kind", "collective"}};
    if (of.kind == TaskKind::kBarrier) return {{"kind", "vocabulary"}, {"of", to_text(of.barrier)}};
    const Placement& place = program(of).placement();
    const int device = static_cast<int>(of.device) % place.devices();
    const int stage = place.virtual_stage(device, of.chunk);
    if (of.kind != TaskKind::kTransfer) {
      return {{"kind", of.kind == TaskKind::kCopyOut ? "copy out" : "copy in"}, {"stage", stage}};
    }
    return {{"kind", "message"},
            {"of", of.pass == PassKind::kF ? "activations" : "gradients"},
            {"stage", stage},
            {"to", of.receiver}};
  }

  // The optimizer's step, or the gradients' reduction that it waits for.
  [[nodiscard]] Json closing(std::uint32_t of_class) const {
    const auto& origins = graph_.origins();
    const bool reduction =
        of_class < origins.size() && origins[of_class].of == ClassOrigin::Of::kGradients;
    return {{"kind", reduction ? "reduction" : "optimizer"}};
  }

  [[nodiscard]] std::uint32_t fraction(double seconds) const {
    const double part = std::clamp((seconds - begin_) / (end_ - begin_), 0.0, 1.0);
    return static_cast<std::uint32_t>(std::llround(part * 4294967295.0));
  }
  [[nodiscard]] const Program& program(const TaskClass& of) const {
    return *graph_.pipelines()[of.pipeline].program;
  }

  // The microbatch of a pass, and of the backward half of an overlapped block.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> microbatches(TaskId task) const {
    if (graph_.task_class(task).kind != TaskKind::kCompute) return {kNone, kNone};
    const Pass pass = graph_.pass(task);
    if (pass.kind != PassKind::kFB) return {pass.microbatch, kNone};
    const OverlappedPair& pair = program(graph_.task_class(task)).pair(pass);
    return {pair.forward.microbatch, pair.backward.microbatch};
  }

  std::uint32_t class_of(TaskId task) {
    std::uint32_t& known = known_[graph_.class_of()[task]];
    if (known != kNone) return known;
    const TaskClass& of = graph_.task_class(task);
    const Pass pass = graph_.pass(task);
    Json parts = Json::array();  // filled one by one: compilers differ over {one}
    if (of.kind != TaskKind::kCompute) {
      parts.push_back(closing(graph_.class_of()[task]));
    } else if (pass.kind == PassKind::kFB) {
      const OverlappedPair& pair = program(of).pair(pass);
      parts.push_back(part(of, pair.forward));
      parts.push_back(part(of, pair.backward));
    } else {
      parts.push_back(part(of, pass));
    }
    classes_.push_back(std::move(parts));
    return known = static_cast<std::uint32_t>(classes_.size() - 1);
  }

  [[nodiscard]] Json part(const TaskClass& of, const Pass& pass) const {
    const Placement& place = program(of).placement();
    const int device = static_cast<int>(of.device) % place.devices();
    const Colour fill = fill_of(pass.kind, pass.chunk, place.chunks());
    return {{"kind", to_text(pass.kind)}, {"meaning", meaning_of(pass.kind)},
            {"chunk", pass.chunk},        {"stage", place.virtual_stage(device, pass.chunk)},
            {"fill", css(fill)},          {"ink", css(text_on(fill))}};
  }

  // A device's level after each time at which it changes.
  [[nodiscard]] Json memory() const {
    std::vector<std::uint32_t> at, level;
    Json first = Json::array({0});
    for (const auto& curve : memory_curves(graph_, timeline_, middle_)) {
      const size_t begin = at.size();
      for (const MemoryLevel& each : curve) {
        const std::uint32_t when = fraction(each.seconds);
        const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(each.bytes));
        if (at.size() > begin && at.back() == when) {
          level.back() = bits;
        } else {
          at.push_back(when);
          level.push_back(bits);
        }
      }
      first.push_back(at.size());
    }
    return {{"first", first}, {"at", base64(at)}, {"bytes", base64(level)}};
  }

  const TaskGraph& graph_;
  const Timeline& timeline_;
  int middle_;
  int splits_;
  std::vector<std::vector<TaskId>> passes_;  // by device, the optimizer's step among them
  std::vector<std::vector<TaskId>> beside_;  // by device, what takes nothing of its compute
  std::vector<std::uint32_t> known_;         // by task class: its number in
  Json classes_ = Json::array();
  double begin_ = std::numeric_limits<double>::infinity();
  double end_ = 0;
};

}  // namespace

size_t passes_of_iteration(const Result& result) {
  size_t passes = 0;
  for (const PipelineInstance& pipeline : result.graph->pipelines()) {
    passes += pipeline.program->size();
  }
  return passes;
}

Json timeline_json(const Result& result, bool bytes) { return TimelineData(result).json(bytes); }

}  // namespace pipesim
