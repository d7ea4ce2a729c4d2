#include "app/common_options.h"

#include <fmt/format.h>

namespace pipesim {

void add_scenario(Parser& parser, std::string& file, std::vector<std::string>& overrides) {
  parser.add_option("file", file, "Scenario (YAML)").required();
  parser.add_option("overrides", overrides,
                    "path.to.key=value, over what the file says; or schedules, by name or file");
}

Option add_output(Parser& parser, std::string& path, const std::string& what) {
  return parser.add_option("-o,--output", path, what);
}

Option add_json(Parser& parser, std::string& path, const std::string& what) {
  return parser.add_option("--json", path,
                           fmt::format("Write {} as JSON ('-': standard output)", what));
}

Option add_csv(Parser& parser, std::string& path, const std::string& what) {
  return parser.add_option("--csv", path,
                           fmt::format("Write {} as CSV ('-': standard output)", what));
}

Option add_html(Parser& parser, std::string& path, const std::string& what) {
  return parser.add_option("--html", path,
                           fmt::format("Write {} as one HTML page ('-': standard output)", what));
}

}  // namespace pipesim
