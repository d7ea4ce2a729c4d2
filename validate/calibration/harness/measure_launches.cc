#include <chrono>
#include <memory>

#include "validate/calibration/harness/kernels.h"
#include "validate/calibration/harness/session.h"

namespace pipesim::calibration {
namespace {

constexpr int kGraphNodes = 500;
constexpr int kHostLaunches = 500;
constexpr int kHostRepetitions = 25;

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
struct DestroyGraphExec {
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};
using GraphExec = std::unique_ptr<CUgraphExec_st, DestroyGraphExec>;

GraphExec graph_of_empty_kernels(const Stream& stream) {
  check_cuda(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal),
             "cudaStreamBeginCapture");
  for (int i = 0; i < kGraphNodes; ++i) kernels::empty(stream.get());
  cudaGraph_t raw = nullptr;
  check_cuda(cudaStreamEndCapture(stream.get(), &raw), "cudaStreamEndCapture");
  const std::unique_ptr<CUgraph_st, DestroyGraph> graph(raw);
  cudaGraphExec_t executable = nullptr;
  check_cuda(cudaGraphInstantiate(&executable, graph.get(), 0), "cudaGraphInstantiate");
  return GraphExec(executable);
}

// Times `work` on the host's clock; each sample is the mean over `count` calls.
template <class F>
void measure_on_host(Point& point, const Stream& stream, int count, bool wait_each, F work) {
  using Clock = std::chrono::steady_clock;
  work();
  stream.synchronize();
  point.launches_per_repetition = count;
  for (int repetition = 0; repetition < kHostRepetitions; ++repetition) {
    const auto begin = Clock::now();
    for (int i = 0; i < count; ++i) {
      work();
      if (wait_each) stream.synchronize();
    }
    const std::chrono::duration<double, std::micro> elapsed = Clock::now() - begin;
    stream.synchronize();
    point.samples_us.push_back(elapsed.count() / count);
  }
  point.time_us = summarize_times(point.samples_us);
}

Point launch_point(const char* name) {
  Point point;
  point.group = "launch";
  point.name = name;
  return point;
}

}  // namespace

void measure_launches(Session& session) {
  const Stream& stream = session.timer.stream();
  const auto launch = [&] { kernels::empty(stream.get()); };
  session.attempt(launch_point("kernel_to_kernel"), [&](Point& point) {
    session.timer.measure(point, [](cudaStream_t s, int) { kernels::empty(s); });
  });
  session.attempt(launch_point("host_launch"), [&](Point& point) {
    measure_on_host(point, stream, kHostLaunches, false, launch);
  });
  session.attempt(launch_point("launch_and_wait"), [&](Point& point) {
    measure_on_host(point, stream, kHostLaunches / 10, true, launch);
  });
  session.attempt(launch_point("graph_kernel_to_kernel"), [&](Point& point) {
    const GraphExec graph = graph_of_empty_kernels(stream);
    session.timer.measure(point, [&](cudaStream_t s, int) {
      check_cuda(cudaGraphLaunch(graph.get(), s), "cudaGraphLaunch");
    });
    // A launch here is a graph; what is reported is one of its kernels.
    for (double& sample : point.samples_us) sample /= kGraphNodes;
    point.time_us = summarize_times(point.samples_us);
    stream.synchronize();
  });
}

}  // namespace pipesim::calibration
