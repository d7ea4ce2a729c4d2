// Configurations of training frameworks, as far as a draft of a scenario and what it says.
#include <string>

#include "sim/interop/frameworks/draft.h"
#include "sim/read/scenario.h"
#include "tests/fuzz/target.h"

namespace pipesim::fuzz {
namespace {

// A draft that misses nothing reads as a scenario, or says why not.
void use(const Draft& draft) {
  const std::string text = scenario_of(draft);
  if (draft.missing.empty()) (void)read_scenario(YamlSource("draft.yaml", text));
}

const Register kArguments{{"arguments", Form::kText, [](const std::string& text) {
                             use(megatron_draft(read_arguments("fuzz.sh", text), "dgx-h100"));
                           }}};

const Register kMegatron{
    {"megatron_yaml", Form::kYaml, [](const std::string& text) {
       use(megatron_draft(read_yaml_settings("megatron", "fuzz.yaml", text), "dgx-h100"));
     }}};

const Register kTorchtitan{
    {"torchtitan", Form::kText, [](const std::string& text) {
       use(torchtitan_draft(read_toml_settings("torchtitan", "fuzz.toml", text), "dgx-h100"));
     }}};

const Register kDeepspeed{
    {"deepspeed", Form::kText, [](const std::string& text) {
       use(deepspeed_draft(read_json_settings("deepspeed", "fuzz.json", text), "dgx-h100"));
     }}};

}  // namespace
}  // namespace pipesim::fuzz
