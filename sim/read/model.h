// Models from YAML: of the catalogue, of a scenario, of config.json, and traced.
//
// The keys are those of docs/reference/scenario.md, "Model". Everything read is a shape of which
// fault_of (models/transformer.h) finds nothing wrong; InputError otherwise, with the place and the
// nearest valid name.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/transformer.h"
#include "sim/read/yaml.h"

namespace pipesim {

constexpr long kLargestSize = 1L << 24;  // of any size of a model

// A name of the catalogue, or a map: a shape of its own, or {base: NAME} or {hf_config: FILE} with
// keys that replace the base's, or {traced: FILE}. A file is looked for beside `scenario_file`,
// then in the current folder.
Transformer read_model(const YamlValue& value, const std::string& scenario_file = "");

// The root of a config.json, which is YAML too. Architectures are those of
// docs/reference/scenario.md. An unread key whose name speaks of the shape is refused, unless the
// equivalent key of `model:` is among `stated`. `name` becomes the model's name.
Transformer read_hf_config(const YamlValue& root, const std::string& name,
                           std::span<const std::string> stated = {});
// The model is called as the folder that the file stands in. `asked` locates the request.
Transformer read_hf_config_file(const std::string& path, const Location& asked,
                                std::span<const std::string> stated = {});

// The shipped catalogue, in its order: read with the first call.
const std::vector<Transformer>& catalogue_models();
// The keys of a catalogue model as its entry has them, each with a value in one line of YAML.
// Requires a name of the catalogue.
std::vector<std::pair<std::string, std::string>> catalogue_entry(const std::string& name);
// InputError at `asked`, with the nearest name, when there is none.
Transformer find_model(const std::string& name, const Location& asked);
// The same, of a catalogue's text.
std::vector<Transformer> read_models(const YamlValue& root);

}  // namespace pipesim
