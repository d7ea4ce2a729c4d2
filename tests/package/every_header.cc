// Calls what the examples do not: a scenario from a file, a mistake in an override, a sweep.
#include <cstdio>
#include <pipesim/scenario.h>
#include <pipesim/schedule.h>
#include <pipesim/search.h>
#include <pipesim/simulate.h>
#include <pipesim/sweep.h>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto scenario = pipesim::scenario_from_file(argv[1], {"batch.num_microbatches=16"});
  std::printf("%d microbatches\n", scenario.batch.microbatches);
  try {
    (void)pipesim::scenario_from_file(argv[1], {"batch.num_microbatch=16"});
  } catch (const pipesim::InputError& error) {
    std::printf("%s\n", error.what());
  }
  for (int again = 0; again < 2; ++again) {
    const pipesim::SweepTable table = pipesim::sweep_file(argv[2], argv[3], 2);
    for (const pipesim::SweepPoint& point : table.points) {
      std::printf(
          "%s=%s %s: %s\n", table.keys[0].c_str(), point.values[0].c_str(), point.schedule.c_str(),
          point.done ? std::to_string(*pipesim::metric(point.metrics, "iteration_seconds")).c_str()
                     : point.reason.c_str());
    }
  }
}
