// Any text is a recorded run, as our CSV or as JSON, or an InputError with a place.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "sim/interop/json/json.h"
#include "sim/interop/passes/write.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    if (text.starts_with('{') || text.starts_with('[')) {
      (void)pipesim::JsonFile("fuzz.json", text);
      return 0;
    }
    const pipesim::RecordedRun run =
        pipesim::recorded_run(pipesim::read_passes_csv("fuzz.csv", text), "", {});
    (void)pipesim::summary_of(run, pipesim::measure(run));
  } catch (const pipesim::InputError& error) {
    if (error.where().line < 1 || error.where().column < 1) std::abort();
  } catch (const pipesim::InfeasibleError&) {
    // Passes may stand in an order that deadlocks.
  }
  return 0;
}
