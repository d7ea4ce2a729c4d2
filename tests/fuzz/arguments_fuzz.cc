// Any text is a list of settings, and a draft of a scenario or an InputError with a place follows.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "sim/interop/frameworks/draft.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    (void)pipesim::scenario_of(
        pipesim::megatron_draft(pipesim::read_arguments("fuzz.sh", text), "dgx-h100"));
  } catch (const pipesim::InputError& error) {
    if (error.where().line < 1 || error.where().column < 1) std::abort();
  }
  return 0;
}
