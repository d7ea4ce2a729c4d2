#include "library/exchange.h"

#include <fmt/format.h>
#include <vector>

#include "app/exported.h"
#include "app/imported.h"
#include "library/errors.h"
#include "library/read_scenario.h"

namespace pipesim {
namespace {

// The options as `pipesim import` would have them, for places of mistakes.
CommandLine import_line(const ImportOptions& options) {
  std::vector<const char*> argv{"pipesim", "import", options.file.c_str()};
  for (const std::string& each : options.settings) argv.push_back(each.c_str());
  if (!options.format.empty()) argv.insert(argv.end(), {"--format", options.format.c_str()});
  argv.insert(argv.end(), {"-o", "-"});
  for (const std::string& each : options.accepted) {
    argv.insert(argv.end(), {"--accept", each.c_str()});
  }
  if (!options.cluster.empty()) argv.insert(argv.end(), {"--cluster", options.cluster.c_str()});
  if (!options.log.empty()) argv.insert(argv.end(), {"--log", options.log.c_str()});
  return {static_cast<int>(argv.size()), argv.data()};
}

}  // namespace

api::Imported imported_file(const std::string& path, const api::ImportOptions& options) {
  ImportOptions asked{.file = path,
                      .format = options.format,
                      .schedule = {},
                      .ranges = {},
                      .settings = {},
                      .accepted = options.accept,
                      .cluster = options.cluster,
                      .log = options.log,
                      .output = "-"};
  for (const auto& [name, value] : options.settings) {
    asked.settings.push_back(fmt::format("{}={}", name, value));
  }
  const Imported made = imported(asked, import_line(asked));
  return {made.text, made.summary, made.complete};
}

namespace api {

Imported import_file(const std::string& path, const ImportOptions& options) {
  return in_public([&] { return imported_file(path, options); });
}

std::string export_schedule(const Scenario& scenario, const std::string& format) {
  return in_public([&] {
    check_exportable(format, *scenario.read().scenario());
    return exported(format, *scenario.read().scenario());
  });
}

}  // namespace api
}  // namespace pipesim
