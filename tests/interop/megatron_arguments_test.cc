// The flags that `export --format megatron` writes, held against the argument tables of the two
// runtimes (tests/interop/data): every flag is known there, has a value of its type, and breaks no
// assertion.
#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <charconv>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>

#include "sim/case/program.h"
#include "sim/core/error.h"
#include "sim/interop/megatron/flags.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim::megatron_arguments_test {
namespace {

using Values = std::map<std::string, std::string>;  // by flag

Values values_of(const std::vector<std::string>& flags) {
  Values values;
  for (const std::string& flag : flags) {
    const size_t space = flag.find(' ');
    const bool bare = space == std::string::npos;
    EXPECT_TRUE(values.emplace(flag.substr(0, space), bare ? "" : flag.substr(space + 1)).second)
        << flag << " stands twice";
  }
  return values;
}

template <typename Number>
bool is_number(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

class Arguments {
 public:
  explicit Arguments(const std::string& file)
      : table_(YamlSource::from_file(PIPESIM_SOURCE_DIR "/tests/interop/data/" + file, {})
                   .root()
                   .node()) {}

  // A parser's message for these flags; empty when it takes them.
  [[nodiscard]] std::string refusal(const Values& values) const {
    for (const auto& [flag, value] : values) {
      if (std::string fault = fault_of(flag, value); !fault.empty()) return fault;
    }
    for (const YAML::Node& each : table_["asserts"]) {
      if (!all_stand(values, each["when"])) continue;
      for (const YAML::Node& needed : each["needs"]) {
        if (!stands(values, needed.as<std::string>())) {
          return "needs " + needed.as<std::string>() + because(each);
        }
      }
      for (const YAML::Node& excluded : each["excludes"]) {
        if (stands(values, excluded.as<std::string>())) {
          return "has " + excluded.as<std::string>() + because(each);
        }
      }
    }
    return "";
  }

 private:
  [[nodiscard]] std::string fault_of(const std::string& flag, const std::string& value) const {
    const YAML::Node row = table_["arguments"][flag];
    if (!row) return "does not know " + flag;
    const auto type = row["type"].as<std::string>();
    // In a list every word has the type.
    std::vector<std::string> words{value};
    if (row["nargs"]) boost::split(words, value, boost::is_any_of(" "));
    const bool fits = std::ranges::all_of(words, [&](const std::string& word) {
      return type == "flag"    ? word.empty()
             : type == "int"   ? is_number<long>(word)
             : type == "float" ? is_number<double>(word)
                               : !word.empty();
    });
    if (!fits) return fmt::format("wants {} for {}, not '{}'", type, flag, value);
    if (!row["choices"]) return "";
    const bool chosen = std::ranges::any_of(row["choices"], [&](const YAML::Node& choice) {
      return choice.as<std::string>() == value;
    });
    return chosen ? "" : fmt::format("has no {} '{}'", flag, value);
  }

  static std::string because(const YAML::Node& each) {
    return each["when"] ? " beside " + YAML::Dump(each["when"]) : "";
  }
  static bool stands(const Values& values, const std::string& flag) {
    const size_t space = flag.find(' ');
    const auto found = values.find(flag.substr(0, space));
    if (found == values.end()) return false;
    return space == std::string::npos || found->second == flag.substr(space + 1);
  }
  static bool all_stand(const Values& values, const YAML::Node& flags) {
    return std::ranges::all_of(
        flags, [&](const YAML::Node& flag) { return stands(values, flag.as<std::string>()); });
  }

  YAML::Node table_;
};

const Arguments& arguments_of(const std::string& runtime) {
  static const Arguments megatron("megatron_lm.yaml");
  static const Arguments fork("zero_bubble_fork.yaml");
  return runtime == "Megatron-LM" ? megatron : fork;
}

// Divisions that both parsers check with an assertion.
void expect_divisible(const Values& values, const std::string& what) {
  const auto number = [&](const std::string& flag, long otherwise) {
    const auto found = values.find(flag);
    return found == values.end() ? otherwise : std::stol(found->second);
  };
  const long layers = number("--num-layers", 0);
  const long devices = number("--pipeline-model-parallel-size", 1);
  if (!values.contains("--pipeline-model-parallel-layout")) {
    EXPECT_EQ(layers % devices, 0) << what;
    const long chunks = number("--num-virtual-stages-per-pipeline-rank", 1);
    EXPECT_EQ(layers / devices % chunks, 0) << what;
    EXPECT_EQ(layers / devices % number("--num-layers-per-virtual-pipeline-stage", 1), 0) << what;
  }
  if (values.contains("--zero-bubble-v-schedule") || values.contains("--enable-1f1b-v")) {
    EXPECT_EQ(layers / devices % 2, 0) << what;
  }
  const long heads = number("--num-attention-heads", 1);
  EXPECT_EQ(heads % number("--tensor-model-parallel-size", 1), 0) << what;
  EXPECT_EQ(number("--seq-length", 0) % number("--num-seq-splits", 1), 0) << what;
  EXPECT_GE(number("--max-position-embeddings", 0), number("--seq-length", 0)) << what;
}

struct Setting {
  std::string model;
  std::string parallel;
  std::string more;
};

std::string text_of(const std::string& schedule, const Setting& setting) {
  return fmt::format(
      "schedule: {}\nmodel: {}\ncluster: dgx-h100\n"
      "parallel: {{pipeline_model_parallel_size: 4, {}}}\n"
      "batch: {{num_microbatches: 8, micro_batch_size: 1, seq_length: 4096}}\n{}",
      schedule, setting.model, setting.parallel, setting.more);
}

TEST(MegatronArguments, EveryScheduleWithFlagsPassesItsOwnParser) {
  const std::vector<Setting> settings{
      {"llama3-70b", "tensor_model_parallel_size: 8, sequence_parallel: true", ""},
      {"gpt3-175b", "tensor_model_parallel_size: 8, sequence_parallel: true, data_parallel_size: 2",
       "recompute: [core_attn]\noptimizer: {sync: post_validation}\n"},
      {"llama3-8b", "context_parallel_size: 2", "recompute: [mlp, layernorm]\n"},
      {"llama3-8b",
       "context_parallel_size: 4, cp_comm_type: a2a+p2p, "
       "hierarchical_context_parallel_sizes: [2, 2]",
       ""},
      {"mixtral-8x7b", "expert_model_parallel_size: 4, data_parallel_size: 4",
       "memory: {kind: model, use_distributed_optimizer: true}\n"},
      {"llama3-8b", "tensor_model_parallel_size: 2",
       "memory: {kind: model, accumulate_allreduce_grads_in_fp32: false}\n"},
      {"llama3-8b", "tensor_model_parallel_size: 2, sequence_parallel: true, data_parallel_size: 2",
       "recompute: full\nmemory: {kind: model, use_distributed_optimizer: true}\n"
       "cost: {kind: roofline, tp_comm_overlap: true, overlap_grad_reduce: true, "
       "overlap_param_gather: true}\n"},
      {"mixtral-8x7b", "expert_model_parallel_size: 4, data_parallel_size: 4",
       "cost: {kind: roofline, moe_token_dispatcher_type: flex}\n"}};
  size_t taken = 0;
  size_t refused = 0;
  for (const Setting& setting : settings) {
    for (const std::string& schedule : megatron_schedules()) {
      const std::string what = schedule + " with " + setting.model + ", " + setting.parallel;
      try {
        const Scenario scenario = read_scenario(YamlSource("s.yaml", text_of(schedule, setting)));
        const Case made = prepare_first(scenario);
        const MegatronFlags flags = megatron_flags(made, *make_program(made));
        const Values values = values_of(flags.flags);
        EXPECT_EQ(arguments_of(flags.runtime).refusal(values), "") << what << "\n"
                                                                   << megatron_text(flags);
        expect_divisible(values, what);
        ++taken;
      } catch (const InfeasibleError& error) {
        EXPECT_NE(std::string(error.what()).find(" has no "), std::string::npos)
            << what << ": " << error.what();
        ++refused;
      } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()).find("chunks that recompute in full"),
                  std::string::npos)
            << what << ": " << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GE(taken, 45U);
  EXPECT_GE(refused, 10U);  // of the fork: no context parallelism, no experts of their own width
}

TEST(MegatronArguments, TheTablesRefuseWhatTheParsersDo) {
  const Values none;
  EXPECT_EQ(arguments_of("Megatron-LM").refusal(none), "needs --num-layers");
  EXPECT_EQ(arguments_of("Megatron-LM").refusal({{"--enable-zero-bubble", ""}}),
            "does not know --enable-zero-bubble");
  EXPECT_EQ(arguments_of("Megatron-LM").refusal({{"--num-layers", "four"}}),
            "wants int for --num-layers, not 'four'");
  EXPECT_EQ(
      arguments_of("Megatron-LM").refusal({{"--hierarchical-context-parallel-sizes", "2 two"}}),
      "wants int for --hierarchical-context-parallel-sizes, not '2 two'");
  EXPECT_EQ(arguments_of("Megatron-LM").refusal({{"--normalization", "BatchNorm"}}),
            "has no --normalization 'BatchNorm'");
}

TEST(MegatronArguments, ARefusalNamesTheNearestScheduleWithFlags) {
  const auto known = megatron_schedules();
  for (const Schedule* schedule : schedules()) {
    if (schedule->runs_on != Runtime::kNone) continue;
    EXPECT_NE(std::ranges::find(known, schedule->nearest_with_flags), known.end())
        << schedule->name << " names '" << schedule->nearest_with_flags << "'";
  }
}

}  // namespace
}  // namespace pipesim::megatron_arguments_test
