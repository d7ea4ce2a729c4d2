#include "sim/report/html/inputs.h"

#include <fmt/format.h>
#include <fstream>
#include <sstream>

namespace pipesim {

ReportInput read_report_input(const std::string& path, const Location& asked) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  // Streaming nothing sets a fail bit, which is no fault of an empty file.
  const bool empty = file.is_open() && file.peek() == std::ifstream::traits_type::eof();
  if (!empty) text << file.rdbuf();
  if (!file.is_open() || file.bad() || !text) {
    throw InputError(asked, fmt::format("cannot read '{}'", path));
  }
  return {path, text.str()};
}

}  // namespace pipesim
