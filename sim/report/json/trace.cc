#include "sim/report/json/trace.h"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>

#include "sim/metrics/memory_curve.h"

namespace pipesim {
namespace {

enum class Stream { kCompute, kMessages, kCopyOut, kCopyIn };
constexpr std::array kStreamNames{"compute", "messages", "copy out", "copy in"};

constexpr size_t kBuffered = size_t{1} << 16U;
constexpr TaskId kNoTask = std::numeric_limits<TaskId>::max();

class TraceWriter {
 public:
  TraceWriter(std::ostream& out, const Result& result)
      : out_(out), graph_(*result.graph), timeline_(result.timeline) {}

  void write(const std::string& name) {
    using Json = nlohmann::json;
    const Json quoted(name);
    out_ << R"({"displayTimeUnit":"ms","otherData":{"schedule":)"
         << quoted.dump(-1, ' ', false, Json::error_handler_t::replace) << "},\"traceEvents\":[\n";
    for (std::uint32_t device = 0; device < devices(); ++device) name_device(device);
    for (TaskId task = 0; task < graph_.size(); ++task) write_task(task);
    write_memory();
    flush();
    out_ << "\n]}\n";
  }

 private:
  [[nodiscard]] std::uint32_t devices() const {
    return static_cast<std::uint32_t>(graph_.devices());
  }
  static std::uint32_t process(std::uint32_t device) { return device + 1; }
  static std::uint32_t thread(std::uint32_t device, Stream stream) {
    return device * static_cast<std::uint32_t>(kStreamNames.size()) +
           static_cast<std::uint32_t>(stream) + 1;
  }
  // Whole nanoseconds.
  static double ns(double seconds) { return std::round(seconds * 1e9); }

  template <class... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    if (!first_) buffer_.append(std::string_view(",\n"));
    first_ = false;
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
    if (buffer_.size() >= kBuffered) flush();
  }
  void flush() {
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }

  void name_device(std::uint32_t device) {
    const std::uint32_t pid = process(device);
    event(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"device {}"}}}})", pid,
          device);
    event(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})", pid,
          device);
    const bool copies = graph_.pipelines().front().program->copies() != nullptr;
    const size_t streams = copies ? kStreamNames.size() : 2;
    for (size_t stream = 0; stream < streams; ++stream) {
      event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})", pid,
            thread(device, static_cast<Stream>(stream)), kStreamNames[stream]);
    }
  }

  void write_task(TaskId task) {
    const TaskClass& of = graph_.task_class(task);
    switch (of.kind) {
      case TaskKind::kCompute:
        slice(task, of.device, Stream::kCompute, graph_.name(task), to_text(of.pass));
        write_arrivals(task, of);
        break;
      case TaskKind::kOptimizer:
        slice(task, of.device, Stream::kCompute, graph_.name(task), "optimizer");
        break;
      case TaskKind::kCollective:
        if (timeline_.end[task] > timeline_.start[task]) {
          slice(task, 0, Stream::kMessages, graph_.name(task), "collective");
        }
        break;
      case TaskKind::kCopyOut:
        slice(task, of.device, Stream::kCopyOut, graph_.name(task), "copy");
        break;
      case TaskKind::kCopyIn:
        slice(task, of.device, Stream::kCopyIn, graph_.name(task), "copy");
        break;
      case TaskKind::kTransfer:
        beside(task, of.device, fmt::format("to device {}", of.receiver), "message");
        break;
      case TaskKind::kBarrier:
        beside(task, of.device, to_text(of.barrier), "collective");
        break;
    }
  }

  void slice(TaskId task, std::uint32_t device, Stream stream, std::string_view name,
             std::string_view category) {
    const double start = ns(timeline_.start[task]);
    event(R"({{"ph":"X","name":"{}","cat":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},)"
          R"("args":{{"iteration":{}}}}})",
          name, category, process(device), thread(device, stream), start / 1e3,
          (ns(timeline_.end[task]) - start) / 1e3, graph_.iteration(task));
  }

  // A task that may overlap others of its device. Viewers put those of one name into one track.
  void beside(TaskId task, std::uint32_t device, std::string_view name, std::string_view category) {
    const auto end = [&](const char* phase, double seconds) {
      event(R"({{"ph":"{}","name":"{}","cat":"{}","id":{},"pid":{},"tid":{},"ts":{:.3f},)"
            R"("args":{{"task":"{}"}}}})",
            phase, name, category, task, process(device), thread(device, Stream::kMessages),
            ns(seconds) / 1e3, graph_.name(task));
    };
    end("b", timeline_.start[task]);
    end("e", timeline_.end[task]);
  }

  // An arrow per message, from the pass that sent it to the one that it reaches. It leaves in the
  // middle of the sender: at its very end a viewer would take it for the next pass's.
  void write_arrivals(TaskId task, const TaskClass& of) {
    for (const TaskId message : graph_.waits_for(task)) {
      const TaskClass& sent = graph_.task_class(message);
      if (sent.kind != TaskKind::kTransfer || sent.receiver != of.device) continue;
      const TaskId sender = pass_before(message, sent.device);
      if (sender == kNoTask) continue;
      event(R"({{"ph":"s","name":"message","cat":"flow","id":{},"pid":{},"tid":{},"ts":{:.3f}}})",
            message, process(sent.device), thread(sent.device, Stream::kCompute),
            std::floor((ns(timeline_.start[sender]) + ns(timeline_.end[sender])) / 2) / 1e3);
      event(
          R"({{"ph":"f","bp":"e","name":"message","cat":"flow","id":{},"pid":{},"tid":{},"ts":{:.3f}}})",
          message, process(of.device), thread(of.device, Stream::kCompute),
          ns(timeline_.start[task]) / 1e3);
    }
  }

  // The last pass of the device before the message: what it waited for or, in blocking calls, what
  // the messages before it waited for.
  [[nodiscard]] TaskId pass_before(TaskId message, std::uint32_t device) const {
    for (const TaskId waited : graph_.waits_for(message)) {
      const TaskClass& of = graph_.task_class(waited);
      if (of.kind == TaskKind::kCompute && of.device == device) return waited;
    }
    for (const TaskId waited : graph_.waits_for(message)) {
      const TaskClass& of = graph_.task_class(waited);
      if (of.kind != TaskKind::kTransfer) continue;
      if (of.device != device && of.receiver != device) continue;
      const TaskId found = pass_before(waited, device);
      if (found != kNoTask) return found;
    }
    return kNoTask;
  }

  void write_memory() {
    std::vector<double> level(devices(), 0);
    visit_memory_events(graph_, timeline_, kEveryIteration, [&](const MemoryEvent& change) {
      level[change.device] += change.delta_bytes;
      event(R"({{"ph":"C","name":"{}","pid":{},"ts":{:.3f},"args":{{"bytes":{:.0f}}}}})",
            kActivationsName, process(change.device), ns(change.seconds) / 1e3,
            std::round(level[change.device]) + 0.0);  // never -0
    });
  }

  std::ostream& out_;
  const TaskGraph& graph_;
  const Timeline& timeline_;
  fmt::memory_buffer buffer_;  // what has not been written yet
  bool first_ = true;
};

}  // namespace

void write_trace(std::ostream& out, const Result& result, const std::string& name) {
  TraceWriter(out, result).write(name);
}

}  // namespace pipesim
