// The overhead of distributing a sweep over ranks, apart from evaluating: points that only sleep.
//
//   mpirun --oversubscribe -n 64 build/ci/bin/mpi_overhead [POINTS_PER_RANK] [MILLISECONDS]
//
// Rank 0 gives points out, stores every result, and prints two numbers. The first is by how much
// the run took longer than the points' sleep divided by the ranks. The second is the processor time
// of all ranks per point. Points need no processor, so ranks may outnumber cores by far.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <string>
#include <thread>
#include <unistd.h>

#include "bench/processor.h"
#include "sim/mpi/mpi.h"
#include "sim/sweep/mpi_workers.h"
#include "sim/sweep/point.h"
#include "sim/sweep/run_sweep.h"
#include "sim/sweep/store.h"
#include "sim/sweep/sweep.h"

namespace pipesim {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// So many points of equal weight.
Sweep sweep_of(int points) {
  return Sweep("idle.yaml", fmt::format("schedule: 1f1b\n"
                                        "parallel: {{pipeline_model_parallel_size: 2}}\n"
                                        "batch: {{num_microbatches: 4, micro_batch_size: 1}}\n"
                                        "cost: {{kind: given, forward: 1 ms, backward_input: 1 ms, "
                                        "backward_weight: 1 ms}}\n"
                                        "sweep:\n"
                                        "  draw:\n"
                                        "    seed: 1\n"
                                        "    count: {}\n"
                                        "    keys: {{cost.forward: {{from: 1 ms, to: 2 ms}}}}\n",
                                        points));
}

// A result of the usual size, after a sleep.
std::string sleep_through(std::uint32_t point, std::chrono::milliseconds sleep) {
  std::this_thread::sleep_for(sleep);
  PointResult result;
  result.point = point;
  result.choice = {"1f1b", "", "none", "none", ""};
  std::memcpy(result.key.data(), &point, sizeof(point));
  for (auto& metric : result.metrics) metric = point + 0.5;
  return to_bytes(result);
}

void lead(const Sweep& sweep, Workers& workers, std::chrono::milliseconds sleep) {
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("pipesim-mpi-overhead-{}", ::getpid());
  double seconds = 0;
  {
    ResultStore store(folder.string(), sweep, "1", {});
    const auto begin = Clock::now();
    const SweepRun run = run_sweep(sweep, store, workers, {});
    seconds = since(begin);
    if (run.progress.evaluated != sweep.points()) throw LogicError("points were lost");
  }
  std::filesystem::remove_all(folder);
  const double ideal = 1e-3 * static_cast<double>(sleep.count()) * sweep.points() / workers.count();
  std::cout << fmt::format(
      "{} points of {} ms on {} ranks: {:.2f} s for {:.2f} s of sleep each: {:+.1f}%\n"
      "processor time of rank 0 and its worker: {:.2f} s\n",
      sweep.points(), sleep.count(), workers.count(), seconds, ideal, 100 * (seconds / ideal - 1),
      bench::processor_seconds());
}

int run(int points_per_rank, std::chrono::milliseconds sleep) {
  const auto launched = launch();
  const Sweep sweep = sweep_of(points_per_rank * (launched ? launched->size : 1));
  LocalWorkers local(1, [sleep](std::uint32_t point) { return sleep_through(point, sleep); });
  if (!launched) {
    lead(sweep, local, sleep);
    return 0;
  }
  const Mpi mpi(*launched);
  if (launched->rank > 0) {
    serve_rank(local, mpi, "");
    return 0;
  }
  MpiWorkers all(local, mpi);
  all.check_same("", {});
  lead(sweep, all, sleep);
  return 0;
}

}  // namespace
}  // namespace pipesim

int main(int count, char** arguments) {
  const int points = count > 1 ? std::atoi(arguments[1]) : 250;
  const int milliseconds = count > 2 ? std::atoi(arguments[2]) : 20;
  if (count > 3 || points < 1 || milliseconds < 1) {
    std::cerr << "mpi_overhead [POINTS_PER_RANK] [MILLISECONDS]\n";
    return 2;
  }
  try {
    return pipesim::run(points, std::chrono::milliseconds(milliseconds));
  } catch (const std::exception& error) {
    std::cerr << "mpi_overhead: " << error.what() << '\n';
    return 1;
  }
}
