#include "sim/report/html/inputs.h"

#include "sim/core/input_text.h"

namespace pipesim {

ReportInput read_report_input(const std::string& path, const Location& asked) {
  return {path, read_input(path, asked)};
}

}  // namespace pipesim
