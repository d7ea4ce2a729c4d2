// Schemas and the readers that they are made from accept and refuse the same keys.
#include "sim/schema/schema.h"

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "sim/read/scenario.h"

namespace pipesim::schema_test {
namespace {

using nlohmann::json;

const Location kAsked{"command line", 1, 1, ""};

json schema(const std::string& name) { return json::parse(schema_of(name, kAsked)); }

// The properties of a map, whatever other forms its place takes.
json properties_of(const json& place) {
  if (place.contains("properties")) return place["properties"];
  for (const json& form : place.value("anyOf", json::array())) {
    if (form.contains("properties")) return form["properties"];
  }
  return json::object();
}

// The place of a key; null where there is none.
json place_at(json place, const std::string& path) {
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, '.');) {
    const json below = properties_of(place);
    if (!below.contains(part)) return nullptr;
    place = below[part];
  }
  return place;
}

// Keys without a sample whose value is read: the schema takes anything there.
const std::set<std::string> kAnyValue{
    "assumed",   "fp16",         "fp4",         "source",
    "fitted",    "title",        "biases",      "quantizing",
    "step",      "weight_share", "projectors",  "num_distributed_optimizer_instances",
    "hf_config", "traced",       "latent_size", "v_channels",
    "ramp",      "sweep"};

TEST(Schema, KnowsTheValueOfEveryKey) {
  for (const std::string& name : schema_names()) {
    for (const std::string& key : unknown_values(name, kAsked)) {
      EXPECT_TRUE(kAnyValue.contains(key.substr(key.rfind('.') + 1))) << name << ": " << key;
    }
  }
}

TEST(Schema, IsTheSameTwice) {
  EXPECT_EQ(schema_of("scenario", kAsked), schema_of("scenario", kAsked));
}

TEST(Schema, HasTheKeysOfTheReference) {
  const json root = schema("scenario");
  std::ifstream page(PIPESIM_SOURCE_DIR "/docs/reference/scenario.md");
  const std::regex key("`([a-z_]+\\.[a-z_.0-9]+)`");
  size_t checked = 0;
  for (std::string line; std::getline(page, line);) {
    std::smatch found;
    if (!line.starts_with("| `") || !std::regex_search(line, found, key)) continue;
    if (line.find(found.str()) > line.find('|', 1)) continue;
    const std::string path = found[1];
    const std::string model = "model.";
    const bool in_model =
        path.starts_with("moe.") || path.starts_with("mla.") || path.starts_with("encoder.") ||
        path.starts_with("linear_attention.") || path.starts_with("window_attention.") ||
        path.starts_with("sparse_attention.") || path.starts_with("compressed_attention.") ||
        path.starts_with("cross_attention.");
    EXPECT_FALSE(place_at(root, in_model ? model + path : path).is_null()) << path;
    ++checked;
  }
  EXPECT_GT(checked, 100U);
}

// A key that the schema has is none that the reader calls unknown.
TEST(Schema, HasNoKeyThatTheReaderDoesNotKnow) {
  const std::string scenario =
      "schedule: 1f1b\nparallel: {pipeline_model_parallel_size: 2}\n"
      "batch: {num_microbatches: 4}\n"
      "cost: {kind: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n";
  const std::string modelled =
      "schedule: 1f1b\nparallel: {pipeline_model_parallel_size: 2}\nmodel: llama3-8b\n"
      "cluster: dgx-h100\nbatch: {num_microbatches: 4, micro_batch_size: 1, seq_length: 1024}\n";
  const auto is_unknown = [](const std::string& text, const std::string& path) {
    try {
      (void)read_scenario(YamlSource("sample", text, {{path, "0", kAsked}}));
    } catch (const InputError& error) {
      return std::string(error.what()).find("unknown key") != std::string::npos;
    }
    return false;
  };
  // Each kind of costs has keys of its own, and so has a shared vocabulary.
  const std::vector<std::string> kinds{scenario, scenario + "vocabulary: vocab-1\n", modelled,
                                       modelled + "cost: {kind: measured}\n"};
  const auto is_unknown_to_all = [&](const std::string& path) {
    return std::ranges::all_of(kinds,
                               [&](const std::string& text) { return is_unknown(text, path); });
  };
  const json root = schema("scenario");
  for (const char* section : {"batch", "cost", "parallel"}) {
    const json keys = properties_of(root["properties"][section]);
    for (const auto& [key, value] : keys.items()) {
      const std::string path = std::string(section) + "." + key;
      EXPECT_FALSE(is_unknown_to_all(path)) << path;
    }
    EXPECT_TRUE(is_unknown(scenario, std::string(section) + ".no_such_key"));
  }
}

TEST(Schema, TakesQuantitiesWithAUnitAlone) {
  const json root = schema("scenario");
  const json capacity = place_at(root, "memory.capacity");
  ASSERT_FALSE(capacity.is_null());
  const std::regex pattern(capacity.at("anyOf")[0].at("pattern").get<std::string>());
  EXPECT_TRUE(std::regex_match("71.2 GiB", pattern));
  EXPECT_FALSE(std::regex_match("71.2", pattern));
  EXPECT_FALSE(std::regex_match("71.2 ms", pattern));
}

}  // namespace
}  // namespace pipesim::schema_test
