#include "sim/schema/schema.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <nlohmann/json.hpp>

#include "sim/core/data_folder.h"
#include "sim/core/input_text.h"
#include "sim/planning/schedule.h"
#include "sim/read/description.h"
#include "sim/read/hardware.h"
#include "sim/read/model.h"
#include "sim/read/scenario.h"
#include "sim/read/sweep_text.h"
#include "sim/schema/observed.h"
#include "sim/sweep/sweep.h"

namespace pipesim {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Files that end in .yaml, of the folder and those below it, in the order of their names.
std::vector<std::string> yaml_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

// True where a line of the text begins with the key.
bool has_section(const std::string& text, const std::string& key) {
  return std::ranges::any_of(
      lines_of(text), [&key](const std::string& line) { return line.starts_with(key + ":"); });
}

// Reads a text that may be refused: its keys have been asked for by then.
void attempt(ObservedText& observed, const std::string& name, const std::function<void()>& read) {
  observed.follow(name);
  try {
    read();
  } catch (const InputError&) {
  } catch (const InfeasibleError&) {
  }
}

constexpr const char* kSample = "sample";

// The texts of samples/NAME.yaml, a list.
void attempt_samples(ObservedText& observed, const std::string& name, const Location& asked,
                     const std::function<void(const std::string&)>& read) {
  const std::string path = data_folder("samples") + "/" + name + ".yaml";
  const YamlSource source = YamlSource::from_file(path, asked);
  for (const YamlValue& each : source.root().list()) {
    attempt(observed, kSample, [&] { read(each.text()); });
  }
}

void read_as_scenario(const std::string& text) { (void)read_scenario(YamlSource(kSample, text)); }

std::string value_of(const OptionSpec& option) {
  switch (option.type) {
    case OptionSpec::Type::kFlag:
      return "true";
    case OptionSpec::Type::kInteger:
    case OptionSpec::Type::kNumber:
      return fmt::format("{}", option.minimum);
    case OptionSpec::Type::kText:
      return "text";
  }
  return "";
}

constexpr const char* kGiven =
    "parallel: {pipeline_model_parallel_size: 4}\nbatch: {num_microbatches: 8}\n"
    "cost: {kind: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms, "
    "copy_out: 1 ms, copy_in: 1 ms}\n"
    "memory: {kind: given, activation: 1 GiB, weight_stash: 0}\n";
constexpr const char* kModelled =
    "schedule: 1f1b\nparallel: {pipeline_model_parallel_size: 4}\ncluster: dgx-h100\n"
    "batch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 1024}\n";

// By itself, and in a list.
void attempt_schedule(ObservedText& observed, const std::string& schedule) {
  for (const char* form : {"{}", "[{}]"}) {
    const std::string entry = fmt::format(fmt::runtime(form), schedule);
    attempt(observed, kSample,
            [&] { read_as_scenario(fmt::format("schedule: {}\n{}", entry, kGiven)); });
  }
}

// Every option of every schedule.
void observe_options(ObservedText& observed) {
  for (const Schedule* schedule : schedules()) {
    for (const OptionSpec& option : schedule->options) {
      attempt_schedule(observed, fmt::format("{{name: {}, {}: {}}}", schedule->name, option.name,
                                             value_of(option)));
    }
  }
}

// Every model of the catalogue as a scenario's own.
void observe_shapes(ObservedText& observed) {
  for (const Transformer& model : catalogue_models()) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : catalogue_entry(model.name)) {
      keys.push_back(fmt::format("{}: {}", key, value));
    }
    attempt(observed, kSample, [&] {
      read_as_scenario(fmt::format("{}model: {{{}}}\n", kModelled, fmt::join(keys, ", ")));
    });
  }
}

void observe_scenarios(ObservedText& observed, const Location& asked) {
  attempt_samples(observed, "scenario", asked, read_as_scenario);
  attempt_samples(observed, "schedule", asked,
                  [&](const std::string& schedule) { attempt_schedule(observed, schedule); });
  attempt_samples(observed, "model", asked, [](const std::string& shape) {
    read_as_scenario(fmt::format("{}model: {}\n", kModelled, shape));
  });
  observe_options(observed);
  observe_shapes(observed);
  for (const std::string& file : yaml_files(data_folder("scenarios"))) {
    const std::string text = read_input(file, asked);
    if (!has_section(text, "schedule") || has_section(text, "sweep")) continue;
    attempt(observed, file, [&] { (void)read_scenario_file(file, asked); });
  }
}

void observe_sweeps(ObservedText& observed, const Location& asked) {
  observe_scenarios(observed, asked);
  attempt_samples(observed, "sweep", asked,
                  [](const std::string& text) { (void)Sweep(kSample, text); });
}

void observe_descriptions(ObservedText& observed, const Location& asked) {
  for (const std::string& file : yaml_files(data_folder("descriptions"))) {
    attempt(observed, file, [&] { (void)read_description_file(file, asked); });
  }
  attempt_samples(observed, "description", asked, [](const std::string& text) {
    (void)read_description(YamlSource(kSample, text));
  });
}

std::string catalogue_path(const std::string& name) {
  return fmt::format("{}/{}.yaml", data_folder("catalog"), name);
}

void observe_models(ObservedText& observed, const Location& asked) {
  const YamlSource models = YamlSource::from_file(catalogue_path("models"), asked);
  attempt(observed, models.name(), [&] { (void)read_models(models.root()); });
  attempt_samples(observed, "model", asked, [](const std::string& shape) {
    (void)read_models(YamlSource(kSample, fmt::format("model: {}", shape)).root());
  });
}

void observe_gpus(ObservedText& observed, const Location& asked) {
  const YamlSource gpus = YamlSource::from_file(catalogue_path("gpus"), asked);
  const YamlSource none("none", "{}");
  attempt(observed, gpus.name(), [&] { (void)read_hardware(gpus, none); });
  attempt_samples(observed, "gpus", asked, [&](const std::string& text) {
    (void)read_hardware(YamlSource(kSample, text), none, read_hardware(gpus, none));
  });
}

void observe_clusters(ObservedText& observed, const Location& asked) {
  const YamlSource gpus = YamlSource::from_file(catalogue_path("gpus"), asked);
  const YamlSource clusters = YamlSource::from_file(catalogue_path("clusters"), asked);
  const YamlSource none("none", "{}");
  attempt(observed, clusters.name(), [&] { (void)read_hardware(gpus, clusters); });
  attempt_samples(observed, "clusters", asked, [&](const std::string& text) {
    (void)read_hardware(none, YamlSource(kSample, text), read_hardware(gpus, clusters));
  });
}

struct SchemaKind {
  const char* name;
  const char* title;
  void (*observe)(ObservedText&, const Location&);
};
constexpr std::array kKinds{
    SchemaKind{"scenario", "A scenario of pipesim", observe_scenarios},
    SchemaKind{"sweep", "A sweep of pipesim: a scenario with axes", observe_sweeps},
    SchemaKind{"description", "A schedule described for pipesim", observe_descriptions},
    SchemaKind{"models", "A catalogue of transformers", observe_models},
    SchemaKind{"gpus", "A catalogue of GPUs", observe_gpus},
    SchemaKind{"clusters", "A catalogue of clusters", observe_clusters}};

const SchemaKind& kind_named(const std::string& name) {
  return *std::ranges::find_if(kKinds,
                               [&name](const SchemaKind& kind) { return name == kind.name; });
}

void observe(ObservedText& observed, const std::string& name, const Location& asked) {
  const Observing observing(observed);
  kind_named(name).observe(observed, asked);
}

Json to_json(const ObservedPlace& place);

Json map_of(const ObservedPlace& place) {
  Json properties = Json::object();
  for (const auto& [key, value] : place.keys) properties[key] = to_json(*value);
  Json object = {{"type", "object"}, {"properties", std::move(properties)}};
  object["additionalProperties"] = place.any ? to_json(*place.any) : Json(false);
  return object;
}

// "71.2 GiB"; a plain 0 needs no unit.
Json quantity_of(const ObservedPlace& place) {
  const std::string units = fmt::format("{}", fmt::join(place.units, "|"));
  return {{"type", "string"}, {"pattern", fmt::format("^\\s*[0-9.eE+-]+\\s*({})\\s*$", units)}};
}

// A word that YAML takes for a flag is one in JSON.
Json words_of(const std::set<std::string>& words) {
  Json all = Json::array();
  for (const std::string& word : words) {
    if (word == "true" || word == "false") {
      all.push_back(word == "true");
    } else {
      all.push_back(word);
    }
  }
  return all;
}

void add_numbers(const ObservedPlace& place, Json& forms) {
  if (place.has(ValueKind::kInteger)) {
    forms.push_back({{"type", "integer"}, {"minimum", place.minimum}});
    forms.push_back({{"type", "string"}, {"pattern", "^[0-9.]+\\s*[kKmMgGtTbB]$"}});
  }
  if (place.has(ValueKind::kNumber)) {
    forms.push_back({{"type", "number"}, {"minimum", place.minimum}});
  }
  if (place.has(ValueKind::kQuantity)) {
    forms.push_back(quantity_of(place));
    forms.push_back({{"const", 0}});
  }
}

// The forms that a value may have; one that no sample gives may have any.
Json to_json(const ObservedPlace& place) {
  Json forms = Json::array();
  if (place.has(ValueKind::kMap) || place.has(ValueKind::kNamedMap) || !place.keys.empty()) {
    forms.push_back(map_of(place));
  }
  if (place.has(ValueKind::kList)) {
    forms.push_back({{"type", "array"}, {"items", place.item ? to_json(*place.item) : Json({})}});
  }
  if (place.has(ValueKind::kFlag)) forms.push_back({{"type", "boolean"}});
  add_numbers(place, forms);
  if (place.has(ValueKind::kChoice)) forms.push_back({{"enum", words_of(place.choices)}});
  if (place.has(ValueKind::kText)) {
    forms.push_back({{"type", {"string", "number", "boolean"}}});  // any scalar of YAML
  }
  if (forms.empty()) return Json::object();
  return forms.size() == 1 ? forms.front() : Json{{"anyOf", forms}};
}

void add_unknown(const ObservedPlace& place, const std::string& path,
                 std::vector<std::string>& unknown) {
  const bool leaf = place.keys.empty() && !place.item && !place.any;
  if (leaf && place.kinds.empty()) unknown.push_back(path);
  const std::string before = path.empty() ? "" : path + ".";
  for (const auto& [key, value] : place.keys) add_unknown(*value, before + key, unknown);
  const bool free_items = place.item && place.item->kinds.empty() && place.item->keys.empty();
  if (place.item && !free_items) add_unknown(*place.item, path + "[]", unknown);
  if (place.any) add_unknown(*place.any, before + "*", unknown);
}

}  // namespace

const std::vector<std::string>& schema_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> all;
    for (const SchemaKind& kind : kKinds) all.emplace_back(kind.name);
    return all;
  }();
  return kNames;
}

std::string schema_of(const std::string& name, const Location& asked) {
  ObservedText observed;
  observe(observed, name, asked);
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", kind_named(name).title}};
  schema.update(to_json(observed.root()));
  return schema.dump(2) + "\n";
}

std::vector<std::string> unknown_values(const std::string& name, const Location& asked) {
  ObservedText observed;
  observe(observed, name, asked);
  std::vector<std::string> unknown;
  add_unknown(observed.root(), "", unknown);
  return unknown;
}

}  // namespace pipesim
