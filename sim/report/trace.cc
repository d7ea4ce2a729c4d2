#include "sim/report/trace.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ostream.h>
#include <ostream>

#include "sim/metrics/memory.h"

namespace pipesim {
namespace {

constexpr int kComputeThread = 0;
constexpr int kSendThread = 1;
constexpr int kCopyOutThread = 2;
constexpr int kCopyInThread = 3;

class TraceWriter {
 public:
  TraceWriter(std::ostream& out, const Simulation& simulation)
      : out_(out), graph_(*simulation.graph), timeline_(simulation.timeline) {}

  void write(const std::string& name) {
    fmt::print(
        out_,
        "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"schedule\":\"{}\"}},\"traceEvents\":[\n",
        escaped(name));
    for (int device = 0; device < graph_.devices(); ++device) name_device(device);
    for (TaskId task = 0; task < graph_.size(); ++task) write_task(task);
    for (int iteration = 0; iteration < graph_.iterations(); ++iteration) write_memory(iteration);
    fmt::print(out_, "\n]}}\n");
  }

 private:
  static std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      if (static_cast<unsigned char>(c) >= 0x20) out += c;
    }
    return out;
  }

  template <class... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    out_ << (first_ ? "" : ",\n");
    first_ = false;
    fmt::print(out_, format, std::forward<Args>(args)...);
  }

  static double us(double seconds) { return seconds * 1e6; }

  void name_device(int device) {
    event(R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"device {0}"}}}})", device);
    event(R"({{"ph":"M","name":"process_sort_index","pid":{0},"args":{{"sort_index":{0}}}}})",
          device);
    event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"compute"}}}})",
          device, kComputeThread);
    event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"send"}}}})", device,
          kSendThread);
    if (graph_.pipelines().front().program->copies() == nullptr) return;
    event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"copy out"}}}})",
          device, kCopyOutThread);
    event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"copy in"}}}})",
          device, kCopyInThread);
  }

  void write_task(TaskId task) {
    const TaskClass& of = graph_.task_class(task);
    const double start = us(timeline_.start[task]);
    const double duration = us(timeline_.end[task] - timeline_.start[task]);
    switch (of.kind) {
      case TaskKind::kCompute:
      case TaskKind::kOptimizer:
        event(R"({{"ph":"X","name":"{}","cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},)"
              R"("args":{{"iteration":{}}}}})",
              graph_.name(task), of.kind == TaskKind::kCompute ? to_text(of.pass) : "optimizer",
              of.device, kComputeThread, start, duration, graph_.iteration(task));
        write_arrivals(task, of, start);
        break;
      case TaskKind::kTransfer:
        // Messages of one device may overlap each other, which async events allow.
        event(R"({{"ph":"b","name":"{}","cat":"message","id":{},"pid":{},"tid":{},"ts":{}}})",
              graph_.name(task), task, of.device, kSendThread, start);
        event(R"({{"ph":"e","name":"{}","cat":"message","id":{},"pid":{},"tid":{},"ts":{}}})",
              graph_.name(task), task, of.device, kSendThread, start + duration);
        break;
      case TaskKind::kCollective:
        if (duration > 0) {
          event(
              R"({{"ph":"X","name":"all-reduce","cat":"collective","pid":{},"tid":{},"ts":{},"dur":{}}})",
              0, kSendThread, start, duration);
        }
        break;
      case TaskKind::kCopyOut:
      case TaskKind::kCopyIn:
        event(R"({{"ph":"X","name":"{}","cat":"copy","pid":{},"tid":{},"ts":{},"dur":{}}})",
              graph_.name(task), of.device,
              of.kind == TaskKind::kCopyOut ? kCopyOutThread : kCopyInThread, start, duration);
        break;
      case TaskKind::kBarrier:
        event(R"({{"ph":"b","name":"{}","cat":"collective","id":{},"pid":{},"tid":{},"ts":{}}})",
              graph_.name(task), task, of.device, kSendThread, start);
        event(R"({{"ph":"e","name":"{}","cat":"collective","id":{},"pid":{},"tid":{},"ts":{}}})",
              graph_.name(task), task, of.device, kSendThread, start + duration);
        break;
    }
  }

  // An arrow per message, from the pass that sent it to the one that it reaches. It leaves in the
  // middle of the sender: at its very end a viewer would take it for the next pass's. A message
  // that waited for other messages only (in blocking calls) is its own origin.
  void write_arrivals(TaskId task, const TaskClass& of, double start) {
    for (const TaskId message : graph_.waits_for(task)) {
      const TaskClass& sent = graph_.task_class(message);
      if (sent.kind != TaskKind::kTransfer || sent.receiver != of.device) continue;
      const auto waited = graph_.waits_for(message);
      const auto sender = std::ranges::find_if(waited, [&](TaskId each) {
        const TaskClass& before = graph_.task_class(each);
        return before.kind == TaskKind::kCompute && before.device == sent.device;
      });
      const bool known = sender != waited.end();
      const TaskId origin = known ? *sender : message;
      event(R"({{"ph":"s","name":"message","cat":"flow","id":{},"pid":{},"tid":{},"ts":{}}})",
            message, sent.device, known ? kComputeThread : kSendThread,
            us((timeline_.start[origin] + timeline_.end[origin]) / 2));
      event(
          R"({{"ph":"f","bp":"e","name":"message","cat":"flow","id":{},"pid":{},"tid":{},"ts":{}}})",
          message, of.device, kComputeThread, start);
    }
  }

  void write_memory(int iteration) {
    std::vector<double> level(static_cast<size_t>(graph_.devices()), 0);
    visit_memory_events(graph_, timeline_, iteration, [&](const MemoryEvent& change) {
      level[change.device] += change.delta_bytes;
      event(R"({{"ph":"C","name":"{}","pid":{},"ts":{},"args":{{"bytes":{}}}}})", kActivationsName,
            change.device, us(change.seconds), level[change.device]);
    });
  }

  std::ostream& out_;
  const TaskGraph& graph_;
  const Timeline& timeline_;
  bool first_ = true;
};

}  // namespace

void write_trace(std::ostream& out, const Simulation& simulation, const std::string& name) {
  TraceWriter(out, simulation).write(name);
}

}  // namespace pipesim
