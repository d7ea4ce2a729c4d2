// The floor of the SimGrid engine: what SimGrid's library alone costs for one message. Pairs of
// hosts with a link of their own send one message after the other: SimGrid starts it, ends it and
// says so, which begins the next. No graph, no waiting, no results.
#include <algorithm>
#include <benchmark/benchmark.h>
#include <cstdint>
#include <simgrid/s4u.hpp>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "bench/processor.h"

namespace {

namespace s4u = simgrid::s4u;

constexpr int kMessagesOfPair = 1024;
constexpr double kBandwidth = 0x1p40;

struct Pair {
  s4u::Host* from = nullptr;
  s4u::Host* to = nullptr;
  s4u::CommPtr flying;
  std::uint64_t bytes = 0;
  int left = kMessagesOfPair;

  void send() {
    --left;
    flying = s4u::Comm::sendto_init(from, to);
    flying->set_payload_size(bytes);
    flying->set_data(this);
    flying->start();
  }
};

// SimGrid's engine is one per process: this is the life of a forked one.
void send_all(int pairs) {
  std::vector<std::string> words = {"floor",
                                    "--log=root.thresh:critical",
                                    "--cfg=network/model:CM02",
                                    "--cfg=network/crosstraffic:0",
                                    "--cfg=network/TCP-gamma:0",
                                    "--cfg=debug/clean-atexit:no"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int count = static_cast<int>(words.size());
  s4u::Engine engine(&count, arguments.data());
  s4u::NetZone* const zone = s4u::create_full_zone("zone");
  std::vector<Pair> all(pairs);
  for (int i = 0; i < pairs; ++i) {
    Pair& pair = all[i];
    pair.from = zone->create_host("from" + std::to_string(i), 1e9);
    pair.to = zone->create_host("to" + std::to_string(i), 1e9);
    s4u::Link* const link = zone->create_link("link" + std::to_string(i), kBandwidth);
    link->set_latency(0)->seal();
    zone->add_route(pair.from->get_netpoint(), pair.to->get_netpoint(), nullptr, nullptr,
                    std::vector<s4u::LinkInRoute>{s4u::LinkInRoute(link)}, false);
    pair.bytes = (std::uint64_t{1} << 36) + static_cast<std::uint64_t>(i);  // ends of their own
  }
  zone->seal();
  s4u::ActivityPtr reported;  // SimGrid uses it until the callback is over
  s4u::Activity::on_completion_cb([&reported](const s4u::Activity& activity) {
    auto* const pair = activity.get_data<Pair>();
    reported = std::move(pair->flying);
    if (pair->left > 0) pair->send();
  });
  for (Pair& pair : all) pair.send();
  engine.run();
  const bool done = std::all_of(all.begin(), all.end(), [](const Pair& p) { return p.left == 0; });
  _exit(done ? 0 : 1);
}

void messages(benchmark::State& state) {
  const auto pairs = static_cast<int>(state.range(0));
  const double before = pipesim::bench::processor_seconds();
  for (auto _ : state) {
    const pid_t child = fork();
    if (child == 0) send_all(pairs);
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0) state.SkipWithError("SimGrid did not send all messages");
  }
  const std::int64_t sent = state.iterations() * pairs * kMessagesOfPair;
  state.SetItemsProcessed(sent);
  state.counters["messages_per_cpu_s"] =
      static_cast<double>(sent) / (pipesim::bench::processor_seconds() - before);
}
BENCHMARK(messages)->Arg(32)->Arg(64)->Arg(256)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
