// Settings in YAML: Megatron-LM's own, and configurations of Megatron-Bridge, NeMo and Primus.
// Leaves bear Megatron's names; the section around one says whether it is a setting of training.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <deque>
#include <filesystem>
#include <fmt/format.h>
#include <span>

#include "sim/core/letters.h"
#include "sim/interop/frameworks/settings.h"
#include "sim/read/yaml.h"

namespace pipesim {
namespace {

constexpr int kDeepestFile = 8;
constexpr int kMostExpansions = 64;

using Path = std::vector<std::string>;

// "--num-layers" is num_layers.
std::string leaf_name(std::string key) {
  if (key.starts_with("--")) key.erase(0, 2);
  std::ranges::replace(key, '-', '_');
  return key;
}

Path parts_of(const std::string& text) {
  Path parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t dot = std::min(text.find('.', begin), text.size());
    parts.push_back(text.substr(begin, dot - begin));
    begin = dot + 1;
  }
  return parts;
}

std::string joined_path(const Path& path) {
  std::string text;
  for (const std::string& part : path) text += (text.empty() ? "" : ".") + part;
  return text;
}

// Sections of logs, files, tokenizers and the like.
bool is_aside(const std::string& section) {
  static constexpr std::array<std::string_view, 31> kAside{"ENV_VARS",
                                                           "env_vars",
                                                           "s3_checkpointing",
                                                           "METRICS",
                                                           "hydra",
                                                           "run",
                                                           "exp_manager",
                                                           "tokenizer",
                                                           "optim",
                                                           "nsys_profile",
                                                           "profiling",
                                                           "profiler",
                                                           "checkpoint",
                                                           "logger",
                                                           "rng",
                                                           "scheduler",
                                                           "sched",
                                                           "wandb",
                                                           "cluster",
                                                           "ft",
                                                           "straggler",
                                                           "inference",
                                                           "nvrx",
                                                           "validation",
                                                           "defaults",
                                                           "hooks",
                                                           "rerun_state_machine",
                                                           "inprocess_restart",
                                                           "tensor_inspect",
                                                           "p_tuning",
                                                           "straggler_detection"};
  return std::ranges::find(kAside, section) != kAside.end();
}

// Sections that say a setting of the same name better than those before them do.
int rank_of(const Path& path) {
  static constexpr std::array<std::string_view, 7> kRising{
      "tokenizer", "optimizer", "dist", "train", "model", "dataset", "ddp"};
  const auto* const found =
      path.size() < 2 ? kRising.end() : std::ranges::find(kRising, path[path.size() - 2]);
  return found == kRising.end() ? static_cast<int>(kRising.size())
                                : static_cast<int>(found - kRising.begin());
}

class YamlSettings {
 public:
  YamlSettings(const Given& given, const ScriptReader& reader, Settings& settings)
      : given_(given), reader_(reader), settings_(settings) {}

  void read(const std::string& file, const std::string& text) {
    const YamlValue root = open(file, text);
    if (!root.is_map()) root.fail("expected a map of settings");
    collect_root(root, 0);
    if (has_section(root, "system") && has_section(root, "model")) take_program(file, root);
    for (const Leaf& leaf : leaves_) add(leaf);
    // NeMo's default. Its files alone say how to train beside the model.
    const bool nemo = has_section(root, "trainer") && has_section(root, "model");
    if (nemo && !settings_.has("megatron_amp_O2")) {
      settings_.add({"megatron_amp_O2", {"false"}, root.where()});
    }
    take_bridge_recipe(root);
  }

 private:
  struct Leaf {
    Path path;
    YamlValue value;
    bool usual;             // of a file of defaults
    std::string name = {};  // empty: the last part of the path, as Megatron-LM names it
  };

  // Bridge's files override a recipe. All recipes have bf16, no dropout and the distributed
  // optimizer; pretraining overlaps its exchange.
  void take_bridge_recipe(const YamlValue& root) {
    const bool overrides = has_section(root, "train") && has_section(root, "model");
    if (!overrides && !settings_.has("recipe")) return;  // Primus names one
    const auto add_missing = [&](const char* name, const char* value) {
      if (!settings_.has(name)) settings_.add({name, {value}, root.where()});
    };
    add_missing("hidden_dropout", "0");
    add_missing("attention_dropout", "0");
    if (!settings_.has("use_distributed_optimizer")) {
      add_missing("use_distributed_optimizer", "true");
      const bool tunes = has_section(root, "peft") || settings_.has("peft");
      if (!tunes) add_missing("overlap_grad_reduce", "true");
      if (!tunes) add_missing("overlap_param_gather", "true");
      settings_.note(
          fmt::format("the distributed optimizer{}, as the recipes of Megatron-Bridge "
                      "have it",
                      tunes ? "" : " and its exchange beside passes"));
    }
    for (const char* name : {"mixed_precision", "bf16", "fp16", "params_dtype"}) {
      if (settings_.has(name)) return;
    }
    settings_.add({"mixed_precision", {"bf16_mixed"}, root.where()});
    settings_.note("bf16, as the recipes of Megatron-Bridge have it");
  }
  // FlagScale's file of the run, train.yaml, says the program of the files in the folder train.
  void take_program(const std::string& file, const YamlValue& root) {
    const auto folder = std::filesystem::absolute(file).parent_path().filename().string();
    const std::string path = fmt::format("../{}.yaml", folder);
    const auto text = reader_(path);
    if (!text) return refuse_untyped_tokenizer(root);
    const YamlValue run = open(path, *text);
    static const Path kProgram{"experiment", "task", "entrypoint"};
    if (run.is_map()) find_program(run, kProgram);
  }
  // All of FlagScale's programs with Megatron-LM's settings need the tokenizer's type but RWKV's.
  static void refuse_untyped_tokenizer(const YamlValue& root) {
    for (const auto& [section, data] : root.all_entries()) {
      if (section != "data" || !data.is_map()) continue;
      for (const auto& [key, tokenizer] : data.all_entries()) {
        if (key != "tokenizer" || !tokenizer.is_map() || scalar_of(tokenizer, "tokenizer_type")) {
          continue;
        }
        tokenizer.fail(
            "no tokenizer_type, which FlagScale's GPT needs: its RWKV alone trains without, which "
            "pipesim does not simulate");
      }
    }
  }
  void find_program(const YamlValue& map, std::span<const std::string> path) {
    for (const auto& [key, value] : map.all_entries()) {
      if (key != path.front()) continue;
      if (path.size() == 1 && value.is_scalar()) leaves_.push_back({{key}, value, usual_});
      if (path.size() > 1 && value.is_map()) find_program(value, path.subspan(1));
    }
  }
  static bool has_section(const YamlValue& root, const char* name) {
    return std::ranges::any_of(root.all_entries(), [name](const auto& entry) {
      return entry.first == name && entry.second.is_map();
    });
  }
  YamlValue open(const std::string& file, const std::string& text) {
    sources_.emplace_back(file, text);
    return sources_.back().root();
  }

  // ---- which leaves are settings ----

  void collect_root(const YamlValue& root, int depth) {
    for (const auto& [key, value] : root.all_entries()) {
      // Megatron-LM's functional tests: all else is the test's own.
      if (key == "MODEL_ARGS" && value.is_map()) {
        collect(value, {}, depth);
        for (const auto& [other, size] : root.all_entries()) {
          if (other == "world_size") leaves_.push_back({{other}, size, usual_});
        }
        return;
      }
    }
    for (const auto& [key, value] : root.all_entries()) {
      if (key == "modules" && value.is_map()) return collect_modules(root, value, depth);
      if (key == "defaults" && value.is_list()) follow_defaults(value, depth);
    }
    collect(root, {}, depth);
  }
  // Hydra's groups of files, of which these train.
  void follow_defaults(const YamlValue& defaults, int depth) {
    for (const YamlValue& each : defaults.list()) {
      if (!each.is_map()) continue;
      for (const auto& [group, name] : each.all_entries()) {
        if ((group != "train" && group != "training") || !name.is_scalar()) continue;
        follow(fmt::format("{}/{}.yaml", group, name.node().Scalar()), name, depth);
      }
    }
  }
  void collect(const YamlValue& map, const Path& path, int depth) {
    for (const auto& [key, value] : map.all_entries()) {
      if (key == "extends" || key == "bases") follow_all(value, depth);
    }
    for (const auto& [key, value] : map.all_entries()) {
      Path within = path;
      for (const std::string& part : parts_of(leaf_name(key))) within.push_back(part);
      if (key == "extends" || key == "bases" || key.starts_with("_") || is_aside(within.back())) {
        take_optimizer(within.back(), value);
        take_vocabulary(within, value);
        continue;
      }
      if (value.is_map() && !is_object(value)) {
        collect_section(map, value, within, depth);
      } else {
        leaves_.push_back({within, value, usual_});
      }
    }
  }
  // NeMo's models that encode and decode have a section of sizes for either part.
  static bool has_both(const YamlValue& map) {
    const auto sizes = [&map](const char* part) {
      return std::ranges::any_of(map.all_entries(), [&](const auto& entry) {
        return entry.first == part && entry.second.is_map() &&
               scalar_of(entry.second, "num_layers");
      });
    };
    return sizes("encoder") && sizes("decoder");
  }
  // The encoder's sizes are those of both; a decoder's that is another keeps its section's name.
  void collect_both(const YamlValue& map, const YamlValue& encoder, const Path& path) {
    Path other = path;
    other.back() = "decoder";
    for (const auto& [key, value] : encoder.all_entries()) add_of_part(path, key, value, key);
    for (const auto& [part, decoder] : map.all_entries()) {
      if (part != "decoder") continue;
      for (const auto& [key, value] : decoder.all_entries()) {
        const bool same = key != "num_layers" && value.is_scalar() &&
                          scalar_of(encoder, key.c_str()) == value.node().Scalar();
        if (!same) add_of_part(other, key, value, "decoder." + key);
      }
    }
  }
  void add_of_part(Path path, const std::string& key, const YamlValue& value,
                   const std::string& name) {
    path.push_back(key);
    const bool layers = key == "num_layers";
    leaves_.push_back({path, value, usual_, layers ? path[path.size() - 2] + "_num_layers" : name});
  }
  // A section of another model in the model, such as its vision encoder, is one setting.
  void collect_section(const YamlValue& around, const YamlValue& map, const Path& path, int depth) {
    static constexpr std::array<std::string_view, 6> kOthers{"vision",  "vision_encoder", "encoder",
                                                             "decoder", "vision_config",  "audio"};
    const std::string& name = path.back();
    if ((name == "encoder" || name == "decoder") && has_both(around)) {
      if (name == "encoder") collect_both(around, map, path);
    } else if (name == "mm_cfg") {
      collect_by_path(map, path, name);
    } else if (name == "lora") {
      collect_lora(map);
    } else if (std::ranges::find(kOthers, name) != kOthers.end()) {
      settings_.add({name, {"a section"}, map.where()});
    } else if (name == "peft" || (name == "data" && path.size() > 1)) {
      collect_adapters(map);
    } else {
      collect(map, path, depth);
    }
  }
  // NeMo's model that sees: names that its parts share are told apart by their paths.
  void collect_by_path(const YamlValue& map, const Path& path, const std::string& name) {
    for (const auto& [key, value] : map.all_entries()) {
      Path within = path;
      within.push_back(key);
      const std::string whole = fmt::format("{}.{}", name, key);
      if (value.is_map()) {
        collect_by_path(value, within, whole);
      } else {
        leaves_.push_back({within, value, usual_, whole});
      }
    }
  }
  // Primus' adapters, unless they are switched off. Without their size the section is not
  // understood.
  void collect_lora(const YamlValue& lora) {
    if (small_letters(scalar_of(lora, "enabled").value_or("true")) == "false") return;
    if (!scalar_of(lora, "dim")) settings_.add({"lora", {"a section"}, lora.where()});
    for (const auto& [key, value] : lora.all_entries()) {
      if (key == "dim") leaves_.push_back({{"lora_r"}, value, usual_});
      if (key == "target_modules") leaves_.push_back({{key}, value, usual_});
    }
  }
  // NeMo lists the settings of every scheme, and names the one that it takes; Bridge's is an
  // object.
  void collect_adapters(const YamlValue& peft) {
    const auto entries = peft.all_entries();
    const bool lora = scalar_of(peft, "peft_scheme") == "lora";
    for (const auto& [key, value] : entries) {
      const bool images =
          key == "media_type" || key == "num_frames" || key == "splice_single_frame";
      const bool decoded = key == "seq_length_dec";
      if (images || decoded || key == "peft_scheme" || key == "dim") {
        leaves_.push_back({{key}, value, usual_});
      }
      if (key == "_target_") leaves_.push_back({{"peft"}, value, usual_});
      if (!lora || key != "lora_tuning" || !value.is_map()) continue;
      for (const auto& [name, size] : value.all_entries()) {
        if (name == "adapter_dim") leaves_.push_back({{name}, size, usual_});
      }
    }
    name_adapters(peft);
    collect_training_data(peft);
  }
  // Bridge's recipes have LoRA unless a file names another class.
  void name_adapters(const YamlValue& peft) {
    const bool named = scalar_of(peft, "_target_") || scalar_of(peft, "peft_scheme");
    if (!named && scalar_of(peft, "dim")) settings_.add({"peft", {"lora"}, peft.where()});
  }
  // NeMo's section `data` tells what it trains on from what it validates on.
  void collect_training_data(const YamlValue& data) {
    for (const auto& [key, value] : data.all_entries()) {
      if (key != "train_ds" || !value.is_map()) continue;
      collect_by_path(value, {"model", "data", key}, "data.train_ds");
    }
  }
  // NeMo's optimizer, which one of its own divides over data ranks, and how it exchanges.
  void take_optimizer(const std::string& section, const YamlValue& value) {
    if (section != "optim" || !value.is_map()) return;
    for (const auto& [key, setting] : value.all_entries()) {
      if (key == "overlap_grad_sync" || key == "overlap_param_sync" || key == "grad_sync_dtype") {
        leaves_.push_back({{key}, setting, usual_});
      }
      if (key == "name" && setting.is_scalar()) {
        name_optimizer(setting.node().Scalar(), setting.where());
      }
    }
  }
  void take_vocabulary(const Path& path, const YamlValue& value) {
    if (path.back() != "tokenizer" || !value.is_map()) return;
    for (const auto& [key, setting] : value.all_entries()) {
      if (key != "vocab_size" && key != "make_vocab_size_divisible_by") continue;
      Path within = path;
      within.push_back(key);
      leaves_.push_back({within, setting, usual_});
    }
  }
  void name_optimizer(const std::string& name, const Location& where) {
    const bool distributed = name.find("distributed") != std::string::npos;
    if (distributed) {
      settings_.add({"use_distributed_optimizer", {"true"}, where});
    } else {
      settings_.add({"optimizer", {name}, where});
    }
  }
  // Primus: a module names its defaults, its model, and what it overrides.
  void collect_modules(const YamlValue& root, const YamlValue& modules, int depth) {
    for (const auto& [name, module] : modules.all_entries()) {
      if (module.is_map() && name.find("train") != std::string::npos) collect_module(module, depth);
    }
    for (const auto& [key, value] : root.all_entries()) {
      if (key == "world_size") leaves_.push_back({{key}, value, usual_});
    }
  }
  void collect_module(const YamlValue& module, int depth) {
    const std::string framework = scalar_of(module, "framework").value_or("megatron");
    for (const auto& [file, folder] : {std::pair("config", "modules"), {"model", "models"}}) {
      usual_ = file == std::string_view("config");
      for (const auto& [key, value] : module.all_entries()) {
        if (key != file || !value.is_scalar()) continue;
        const std::string path = resolved(value.node().Scalar(), {});
        // Frameworks beside Megatron-LM have folders of their own.
        const std::string own = fmt::format("{}/{}/{}", folder, framework, path);
        follow(framework != "megatron" && reader_(own) ? own : path, value, depth);
      }
    }
    usual_ = false;
    for (const auto& [key, value] : module.all_entries()) {
      if (key == "overrides" && value.is_map()) collect(value, {}, depth);
    }
  }
  static std::optional<std::string> scalar_of(const YamlValue& map, const char* name) {
    for (const auto& [key, value] : map.all_entries()) {
      if (key == name && value.is_scalar()) return value.node().Scalar();
    }
    return std::nullopt;
  }
  void follow_all(const YamlValue& value, int depth) {
    if (value.is_scalar()) return follow(value.node().Scalar(), value, depth);
    if (!value.is_list()) return;
    for (const YamlValue& each : value.list()) {
      if (each.is_scalar()) follow(each.node().Scalar(), each, depth);
    }
  }
  void follow(const std::string& path, const YamlValue& where, int depth) {
    const auto text = depth < kDeepestFile ? reader_(path) : std::nullopt;
    if (!text) {
      settings_.note(fmt::format("{} (line {}) is not here, and nothing of it is known", path,
                                 where.where().line));
      return;
    }
    const YamlValue root = open(path, *text);
    if (root.is_map()) collect_root(root, depth + 1);
  }

  // ---- values ----

  // Bridge writes objects as {_target_: name}; {_args_: [n]} of an enumeration.
  static bool is_object(const YamlValue& map) {
    return std::ranges::any_of(map.all_entries(), [](const auto& entry) {
      return entry.first == "_call_" || entry.first == "_args_";
    });
  }
  static std::string object_text(const YamlValue& map) {
    static constexpr std::array<std::string_view, 6> kBackends{"?",       "flash", "fused",
                                                               "unfused", "local", "auto"};
    std::string target;
    size_t number = 0;
    for (const auto& [key, value] : map.all_entries()) {
      if (key == "_target_" && value.is_scalar()) target = value.node().Scalar();
      if (key == "_args_" && value.is_list() && value.list().size() == 1 &&
          value.list()[0].is_scalar()) {
        const std::string text = value.list()[0].node().Scalar();
        std::from_chars(text.data(), text.data() + text.size(), number);
      }
    }
    if (target.ends_with("AttnBackend") && number < kBackends.size()) {
      return fmt::format("AttnBackend.{}", kBackends[number]);
    }
    return target;
  }
  // NeMo's and Bridge's names, and what Megatron-LM calls a switch that is off.
  struct Renamed {
    std::string_view name;
    std::string_view megatron;
    std::string_view off = {};  // empty: as it stands
  };
  static Renamed renamed(const std::string& name) {
    static constexpr Renamed kNames[] = {{"sequence_length", "seq_length"},
                                         {"fp8_params", "fp8_param_gather"},
                                         {"rotary_percentage", "rotary_percent"},
                                         {"overlap_grad_sync", "overlap_grad_reduce"},
                                         {"overlap_param_sync", "overlap_param_gather"},
                                         {"use_flash_attention", "use_flash_attn"},
                                         {"entrypoint", "program"},
                                         {"transformer_engine", "transformer_impl", "local"}};
    const auto* const found = std::ranges::find(kNames, name, &Renamed::name);
    return found == std::end(kNames) ? Renamed{name, name} : *found;
  }
  void add(const Leaf& leaf) {
    const Renamed known_as = renamed(leaf.path.back());
    const std::string name = leaf.name.empty() ? std::string(known_as.megatron) : leaf.name;
    const int rank = rank_of(leaf.path);
    const auto known = ranks_.find(name);
    if (known != ranks_.end() && known->second > rank) return;
    ranks_[name] = rank;
    asks_.clear();
    Setting setting{name, {}, leaf.value.where()};
    if (leaf.value.is_list()) {
      for (const YamlValue& each : leaf.value.list()) {
        setting.values.push_back(each.is_scalar() ? resolved(each.node().Scalar(), leaf.path)
                                                  : each.one_line());
      }
      if (setting.values.empty()) setting.values.emplace_back("[]");
    } else if (leaf.value.is_map()) {
      setting.values.push_back(object_text(leaf.value));
    } else {
      setting.values.push_back(
          leaf.value.is_scalar() ? resolved(leaf.value.node().Scalar(), leaf.path) : "null");
    }
    if (!known_as.off.empty() && small_letters(setting.text()) == "false") {
      setting.values = {std::string(known_as.off)};
    }
    setting.asks = asks_;
    setting.usual = leaf.usual;
    settings_.add(std::move(setting));
  }

  // ---- interpolation ----

  // With ${...} replaced, the innermost first; what is not known is asked for.
  std::string resolved(std::string text, const Path& path, int depth = 0) {
    for (int i = 0; i < kMostExpansions; ++i) {
      const size_t begin = text.rfind("${");
      const size_t end = begin == std::string::npos ? begin : text.find('}', begin);
      if (end == std::string::npos) break;
      const std::string inside = text.substr(begin + 2, end - begin - 2);
      text.replace(begin, end + 1 - begin, value_of(inside, path, depth));
    }
    return text;
  }
  std::string value_of(const std::string& inside, const Path& path, int depth) {
    const size_t colon = inside.find(':');
    if (colon == std::string::npos) return reference(inside, path, depth);
    const std::string name = inside.substr(0, colon);
    const std::string rest = inside.substr(colon + 1);
    if (name == "divide_floor") return calculated("divide", rest);
    if (name == "multiply" || name == "divide" || name == "add" || name == "sum") {
      return calculated(name, rest);
    }
    if (name == "oc.env") {
      const size_t comma = rest.find(',');
      const std::string variable = rest.substr(0, comma);
      return comma == std::string::npos ? asked(variable)
                                        : given_or(variable, rest.substr(comma + 1));
    }
    return given_or(name, rest);
  }
  std::string given_or(const std::string& name, const std::string& otherwise) {
    variables_.insert(name);
    settings_.set_variables(variables_);
    const auto found = given_.find(name);
    if (found != given_.end()) return found->second;
    const size_t begin = std::min(otherwise.find_first_not_of(' '), otherwise.size());
    return otherwise.substr(begin);
  }
  std::string asked(const std::string& name) {
    const auto found = given_.find(name);
    variables_.insert(name);
    settings_.set_variables(variables_);
    if (found != given_.end()) return found->second;
    asks_.push_back(name);
    return "$" + name;
  }
  // A path from the root, or behind dots from the leaf's own section; its first part may name the
  // file.
  std::string reference(const std::string& inside, const Path& path, int depth) {
    const size_t dots = std::min(inside.find_first_not_of('.'), inside.size());
    Path wanted;
    if (dots > 0) {
      const size_t kept = path.size() > dots ? path.size() - dots : 0;
      wanted.assign(path.begin(), path.begin() + static_cast<long>(kept));
    }
    for (const std::string& part : parts_of(inside.substr(dots))) wanted.push_back(part);
    for (const size_t skipped : {size_t{0}, size_t{1}}) {
      if (skipped >= wanted.size() || depth > kDeepestFile) break;
      const Path tail(wanted.begin() + static_cast<long>(skipped), wanted.end());
      for (const Leaf& leaf : leaves_) {
        if (leaf.path == tail && leaf.value.is_scalar()) {
          return resolved(leaf.value.node().Scalar(), leaf.path, depth + 1);
        }
      }
    }
    return asked(joined_path(wanted));
  }
  static std::string calculated(const std::string& operation, const std::string& list) {
    double result = operation == "multiply" || operation == "divide" ? 1 : 0;
    bool first = true;
    for (size_t begin = 0; begin <= list.size();) {
      const size_t comma = std::min(list.find(',', begin), list.size());
      const size_t start = std::min(list.find_first_not_of(' ', begin), comma);
      double value = 0;
      const auto [end, error] = std::from_chars(list.data() + start, list.data() + comma, value);
      if (error != std::errc()) return fmt::format("${{{}:{}}}", operation, list);
      if (operation == "multiply") result *= value;
      if (operation == "divide") result = first ? value : std::floor(result / value);
      if (operation == "add" || operation == "sum") result += value;
      first = false;
      begin = comma + 1;
    }
    return fmt::format("{:.15g}", result);
  }

  const Given& given_;
  const ScriptReader& reader_;
  Settings& settings_;
  std::deque<YamlSource> sources_;
  std::vector<Leaf> leaves_;
  bool usual_ = false;
  std::map<std::string, int> ranks_;
  std::vector<std::string> asks_;
  std::set<std::string> variables_;
};

}  // namespace

Settings read_yaml_settings(const std::string& framework, const std::string& file,
                            const std::string& text, const Given& given,
                            const ScriptReader& reader) {
  Settings settings(framework, file);
  YamlSettings(given, reader, settings).read(file, text);
  return settings;
}

}  // namespace pipesim
