// Any text is either a scenario or an InputError with a place: never a crash, another exception or
// a hang.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "sim/case/program.h"
#include "sim/read/scenario.h"
#include "tests/case/cases.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const pipesim::YamlSource source("fuzz.yaml", text);
    const pipesim::Scenario scenario = pipesim::read_scenario(source);
    // What was accepted must also become a problem; large ones take time, not correctness.
    for (const pipesim::ScheduleChoice& choice : scenario.schedules) {
      const long stages =
          static_cast<long>(scenario.parallel.pipeline) * pipesim::chunks_of(choice);
      if (stages * scenario.batch.microbatches > 4096) continue;
      (void)pipesim::make_program(choice, pipesim::case_of(scenario, choice).problem);
    }
  } catch (const pipesim::InfeasibleError&) {
    // A memory limit may be too small.
  } catch (const pipesim::InputError& error) {
    if (error.where().file.empty() || error.where().line < 1) std::abort();
  }
  return 0;
}
