// Any text is either a program or an InputError with a place, and a program survives the way out
// and in.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "sim/interop/torch/csv_reader.h"
#include "sim/interop/torch/csv_writer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const pipesim::Program program = pipesim::read_torch_csv("fuzz.csv", text);
    std::ostringstream out;
    pipesim::write_torch_csv(out, program);
    const pipesim::Program again = pipesim::read_torch_csv("again.csv", out.str());
    for (int device = 0; device < program.shape().devices; ++device) {
      const auto before = program.passes(device);
      const auto after = again.passes(device);
      if (!std::equal(before.begin(), before.end(), after.begin(), after.end())) std::abort();
    }
  } catch (const pipesim::InputError& error) {
    if (error.where().line < 1 || error.where().column < 1) std::abort();
  } catch (const pipesim::InfeasibleError&) {
    // A complete program may still deadlock.
  }
  return 0;
}
