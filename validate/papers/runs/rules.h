// How rows of measured runs become scenarios: the rules of rules.yaml, one for each table.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/read/yaml.h"
#include "validate/papers/runs/row.h"

namespace pipesim::runs {

// A framework's settings where a row does not say.
struct Settings {
  bool sequence_parallel = false;
  bool distributed_optimizer = false;
  bool fp32_gradients = true;
  bool fused_gate = true;       // a gated activation is one kernel
  bool fp8_parameters = false;  // weights in fp8 alone, where that is the precision
  bool overlap_tensor = false;
  bool overlap_gradients = false;
  bool overlap_parameters = false;
  bool blocking = false;
  bool flash_attention = true;
  bool fused_loss = false;
  bool dropout = false;
  bool forced_balance = false;
  std::string recompute = "none";  // `stated`: a row has to say it
  // The last stages have fewer, or `uniform`, or `cumulative` by parameters.
  std::string layers = "front";
  std::optional<int> micro_batch;
  std::string precision;          // empty: a row has to say it
  std::string gpu;                // as a row would say it; empty: a row has to
  std::optional<int> sequence;    // tokens; empty: a row has to say it
  std::optional<int> vocabulary;  // where neither a row nor its model says it
};

// A release of a framework: rows whose source, system or software has `in`, of this precision and
// dispatcher where it names them.
struct Version {
  std::string in;
  std::string precision;
  std::string dispatcher;
  int year = 0;
  std::string software;          // a name of the software catalogue
  bool overlap_experts = false;  // exchanges of tokens run beside the other pass
};

struct Rule {
  std::string table;
  std::string source;
  std::string framework;
  std::vector<Version> versions;
  Settings settings;
};

struct HardwareName {
  std::vector<std::string> words;
  std::string cluster;
};

struct Rules {
  std::vector<Rule> rules;
  std::vector<HardwareName> hardware;
  std::map<std::string, std::string> models;
  std::vector<std::string> ignored;

  // The table's, or `default`.
  [[nodiscard]] const Rule& of(const std::string& table) const;
};

// InputError where the file is not as rules.yaml.
Rules read_rules(const YamlSource& source);

const Version& version_of(const Rule& rule, const Row& row);

// A row as a scenario, or why there is none.
struct Asked {
  std::string scenario;  // YAML
  std::string gpu;       // of the catalogue, or as the row has it
  std::string precision;
  std::string missing;  // empty: there is a scenario
};

Asked scenario_of(const Row& row, const Rules& rules);

}  // namespace pipesim::runs
