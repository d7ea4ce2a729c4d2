// Calls what the examples do not: a scenario from a file, mistakes, a sweep, documents, a stop,
// sensitivity, import.
#include <atomic>
#include <cstdio>
#include <fstream>
#include <pipesim/exchange.h>
#include <pipesim/schedule.h>
#include <pipesim/search.h>
#include <pipesim/sensitivity.h>
#include <pipesim/simulate.h>
#include <pipesim/sweep.h>
#include <string>
#include <vector>

#include "models/cluster.h"

namespace {

// A schedule as lists of passes.
const pipesim::RegisteredSchedule kAllAtOnce{{
    .name = "all-at-once",
    .summary = "every F, then every backward",
    .source = "here",
    .passes =
        [](const pipesim::Problem& problem) {
          std::vector<std::vector<std::string>> devices(problem.devices);
          for (int device = 0; device < problem.devices; ++device) {
            for (const char* kind : {"F", "BW"}) {
              for (int i = 0; i < problem.microbatches; ++i) {
                devices[device].push_back(std::to_string(device) + kind + std::to_string(i));
              }
            }
          }
          return devices;
        },
}};

template <class Work>
void tell(Work work) {
  try {
    work();
  } catch (const pipesim::Error& error) {
    std::printf("%d %s:%d:%d %s\n", static_cast<int>(error.kind), error.file.c_str(), error.line,
                error.column, error.what());
  }
}

void compare(const pipesim::Scenario& scenario) {
  const auto compared = pipesim::simulate(scenario.replace({{"schedule", "[gpipe, all-at-once]"}}));
  for (const pipesim::Result& result : compared.results) {
    std::printf("%s %.4f, %zu of %zu devices, %zu tasks of %zu, %s\n", result.label.c_str(),
                *pipesim::metric(result.metrics, "iteration_seconds"), result.passes().size(),
                result.devices.size(), result.timeline().size(), result.tasks,
                result.svg().substr(0, 4).c_str());
  }
  std::printf("%zu %zu\n", compared.json().size(), compared.results[0].json().size());
}

void move(const pipesim::Scenario& scenario) {
  const auto moved = pipesim::sensitivity(scenario.replace({{"schedule", "1f1b"}}), {2});
  for (const pipesim::Effect& effect : moved.schedules.at(0).effects) {
    std::printf("%s x %g: %.4f to %.4f\n", effect.key.c_str(), effect.factor,
                moved.schedules[0].base.iteration_seconds, effect.metrics.iteration_seconds);
  }
}

void exchange(const pipesim::Scenario& scenario) {
  std::ofstream("exported.csv") << pipesim::export_schedule(
      scenario.replace({{"schedule", "zb-h1"}}));
  const pipesim::Imported imported = pipesim::import_file("exported.csv");
  const auto again = pipesim::simulate(pipesim::scenario_from_text(imported.text));
  std::printf("imported %zu devices, %d\n", again.results.at(0).devices.size(), imported.complete);
  std::ofstream("run.sh") << "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 8 "
                             "--hidden-size 1024 --num-attention-heads 8 --seq-length 1024 "
                             "--max-position-embeddings 1024 --vocab-size 32000 "
                             "--micro-batch-size 1 --global-batch-size 8 --bf16\n";
  const auto run = pipesim::import_file("run.sh", {.format = "megatron", .cluster = "dgx-h100"});
  std::printf("run.sh %s\n", run.summary.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto scenario = pipesim::scenario_from_file(argv[1], {{"batch.num_microbatches", "16"}});
  std::printf("%d microbatches, %d\n", scenario.num_microbatches(), kClusterOfMine);
  tell([&] { (void)pipesim::scenario_from_file(argv[1], {{"batch.num_microbatch", "16"}}); });
  tell([&] { (void)pipesim::scenario_from_text("schedule: 1f1b\nbatch: 3\n"); });
  tell([&] { (void)pipesim::search(scenario, "1", {.max_chunks = 0}); });
  const std::atomic<bool> stop = true;
  tell([&] { (void)pipesim::search(scenario, "1", {}, {.stop = &stop}); });
  compare(scenario);
  move(scenario);
  exchange(scenario);
  tell([] { (void)pipesim::import_file("exported.csv", {.format = "megatrom"}); });
  tell([&] { (void)pipesim::export_schedule(scenario); });
  for (int again = 0; again < 2; ++again) {
    const pipesim::Sweep sweep = pipesim::sweep_file(argv[2], argv[3], 2);
    for (const pipesim::SweepPoint& point : sweep.points) {
      std::printf("%s=%s %s: %s\n", sweep.keys[0].c_str(), point.values[0].c_str(),
                  point.schedule.c_str(),
                  point.done ? std::to_string(point.metrics.iteration_seconds).c_str()
                             : point.reason.c_str());
    }
  }
}
