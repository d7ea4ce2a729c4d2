#include "sim/sweep/surroundings.h"

#include <filesystem>
#include <set>

#include "sim/core/data_folder.h"
#include "sim/core/input_text.h"
#include "sim/read/hardware.h"
#include "sim/sweep/fingerprint.h"

namespace pipesim {
namespace {

void collect_texts(const YamlValue& value, std::set<std::string>& texts) {
  if (value.is_scalar()) texts.insert(value.node().Scalar());
  if (value.is_list()) {
    for (const YamlValue& each : value.list()) collect_texts(each, texts);
  }
  if (value.is_map()) {
    for (const auto& [key, each] : value.entries()) collect_texts(each, texts);
  }
}

// Beside the naming file or, if there is none, as named; empty for a text that names no file.
std::string file_named(const std::string& naming, const std::string& text) {
  if (text.empty() || text == ".") return "";
  const std::string path = file_beside(naming, text);
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) ? path : "";
}

std::string line_of(const std::string& path) {
  try {
    return "\n" + hex(fingerprint(read_input(path, {path, 0, 0, ""})));
  } catch (const InputError&) {  // named by chance, or the reader will say so
    return "";
  }
}

}  // namespace

bool is_of_catalogue(std::string_view key) {
  const std::string_view section = key.substr(0, key.find('.'));
  return section == "model" || section == "cluster";
}

std::string surroundings_of(const YamlSource& source, bool catalogue) {
  std::set<std::string> texts;
  collect_texts(source.root(), texts);
  std::string lines;
  for (const std::string& text : texts) {
    const std::string path = file_named(source.name(), text);
    if (!path.empty()) lines += line_of(path);
  }
  for (const auto& [key, value] : source.root().entries()) {
    catalogue = catalogue || is_of_catalogue(key);
  }
  if (!catalogue) return lines;
  for (const char* file :
       {"models.yaml", "software.yaml", "residuals.csv", "anchored_residuals.csv"}) {
    lines += line_of(data_folder("catalog") + "/" + file);
  }
  for (const std::string& file : hardware_files()) lines += line_of(file);
  return lines;
}

}  // namespace pipesim
