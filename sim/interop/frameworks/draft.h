// A scenario as far as a framework's settings say it.
//
// Sections are keys and values in a scenario's form. `missing` names the keys that a scenario needs
// and no setting gives; with nothing missing the text reads as a scenario.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/device_memory.h"
#include "models/transformer.h"
#include "sim/interop/frameworks/settings.h"

namespace pipesim {

using Section = std::vector<std::pair<std::string, std::string>>;

struct Draft {
  std::string origin;  // what it is made from, for the text's first line
  std::string schedule = "1f1b";
  Section parallel, batch, model, memory, cost, optimizer, framework;
  std::string model_name = {};  // of the catalogue, in place of `model`
  std::string recompute = {};   // empty: none
  std::string cluster = {};     // a name of the catalogue
  std::vector<std::string> missing = {};
  std::vector<std::string> notes = {};         // what was assumed, and why
  std::vector<std::string> not_modelled = {};  // settings that would change the run
  std::vector<std::string> unknown = {};
  // Settings that are not understood and change the answer: name, and "name value (line 12)". The
  // answer stands only once each is accepted.
  std::vector<std::pair<std::string, std::string>> stops = {};
  std::string command = {};  // of a script, that was taken
  int without_effect = 0;
};

// Adds "key: value"; numbers and flags as YAML has them.
void put(Section& section, std::string_view key, long value);
void put(Section& section, std::string_view key, std::string_view value);
void put_flag(Section& section, std::string_view key, bool value);
bool has_key(const Section& section, std::string_view key);

// How data ranks divide parameters' state, as keys of the section memory.
void put_sharding(Section& memory, const ParameterState& state);

// Stops at an optimizer `named` by `setting` whose states or exchange are not Adam's.
void stop_at_optimizer(const char* setting, const std::string& named, Draft& draft);

// A value that is not known of a setting that is: `words` say both.
void not_understood(Draft& draft, std::string name, std::string words);

// Sorts the settings that nothing took; call it last.
void take_rest(const Settings& settings, Draft& draft);

// Goes on without settings that stop the import, by name; gives back names that stop nothing.
std::vector<std::string> accept(const std::vector<std::string>& names, Draft& draft);

// The scenario, with missing, assumed and left-out settings in comments.
std::string scenario_of(const Draft& draft);
// How each setting was treated, for people.
std::string summary_of(const Draft& draft);

// The model that model=NAME says. InputError at a name that the catalogue lacks.
std::optional<Transformer> catalogue_model(Settings& settings);

// Each from settings of its framework; `cluster` is a name of the catalogue or empty. InputError at
// a setting that is not what the framework takes.
Draft megatron_draft(Settings settings, const std::string& cluster);
Draft torchtitan_draft(Settings settings, const std::string& cluster);
Draft deepspeed_draft(Settings settings, const std::string& cluster);

}  // namespace pipesim
