#include "sim/read/software.h"

#include <algorithm>

#include "sim/core/data_folder.h"
#include "sim/read/curves.h"

namespace pipesim {
namespace {

SoftwareEntry read_generation(const std::string& name, const YamlValue& value) {
  YamlMap map(value);
  SoftwareEntry entry;
  entry.software.name = name;
  entry.title = map.require("title", "which releases of which framework").text();
  NumberGroup kernels(map, "kernels", entry.numbers);
  entry.software.traffic = kernels.factor("traffic");
  entry.software.gap = kernels.number("gap").seconds();
  entry.software.gradient = kernels.factor("gradient");
  kernels.note_fitted();
  kernels.finish();
  NumberGroup attention(map, "attention", entry.numbers);
  entry.software.attention = {attention.share("forward"), attention.share("backward")};
  attention.finish();
  NumberGroup vocabulary(map, "vocabulary", entry.numbers);
  entry.software.beside_vocabulary = vocabulary.share("beside");
  entry.software.vocabulary_token = {vocabulary.number("token_forward").seconds(),
                                     vocabulary.number("token_backward").seconds()};
  vocabulary.finish();
  NumberGroup experts(map, "experts", entry.numbers);
  entry.software.permuting = experts.factor("permuting");
  entry.software.grouped = experts.share("grouped");
  const YamlValue fullest = experts.number("fullest");
  entry.software.fullest = fullest.number(1, 1e3);
  entry.software.exchange = experts.share("exchange");
  entry.software.routing = experts.number("routing").seconds();
  experts.note_fitted();
  experts.finish();
  NumberGroup memory(map, "memory", entry.numbers);
  entry.software.memory_margin = memory.number("margin").bytes();
  entry.software.memory_band = {memory.share("low"), memory.number("high").number(1, 10)};
  if (const auto loss = memory.find("loss")) entry.software.loss_bytes[0] = loss->number(4, 100);
  if (const auto loss = memory.find("fused_loss")) {
    entry.software.loss_bytes[1] = loss->number(4, 100);
  }
  if (const auto copy = memory.find("gradient_copy")) {
    entry.software.gradient_copy = copy->number(0, 4);
  }
  if (const auto kept = memory.find("keeps_gathered")) entry.software.keeps_gathered = kept->flag();
  memory.finish();
  map.finish();
  return entry;
}

}  // namespace

std::vector<SoftwareEntry> read_software_catalogue(const YamlValue& root) {
  std::vector<SoftwareEntry> all;
  for (const auto& [name, value] : root.entries()) all.push_back(read_generation(name, value));
  if (all.empty()) root.fail("expected a generation at least");
  return all;
}

const std::vector<SoftwareEntry>& catalogue_software() {
  static const std::vector<SoftwareEntry> kAll = [] {
    const std::string path = data_folder("catalog") + "/software.yaml";
    return read_software_catalogue(YamlSource::from_file(path, {path, 0, 0, ""}).root());
  }();
  return kAll;
}

const SoftwareEntry& find_software(const YamlValue& name) {
  const auto& all = catalogue_software();
  std::vector<std::string> names;
  for (const SoftwareEntry& entry : all) names.push_back(entry.software.name);
  const auto found = std::ranges::find(names, name.choice(names));
  return all[found - names.begin()];
}

}  // namespace pipesim
