#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/core/text.h"
#include "sim/planning/expression.h"
#include "sim/read/hf_blocks.h"
#include "sim/read/hf_config.h"
#include "sim/read/hf_layers.h"
#include "sim/read/model.h"

namespace pipesim {
namespace {

constexpr size_t kMostLetters = 1 << 16;
constexpr int kDeepest = 20;  // defaults that name each other

const std::set<std::string> kFlagKeys{"untie_embeddings_and_output_weights",
                                      "gated_linear_unit",
                                      "add_bias_linear",
                                      "add_qkv_bias",
                                      "add_attention_bias",
                                      "add_mlp_bias",
                                      "post_norms",
                                      "values_are_keys",
                                      "chunked_window",
                                      "rotary_in_windows_only",
                                      "attention_output_gate",
                                      "bidirectional_attention",
                                      "attention_sinks",
                                      "moe.shared_gate",
                                      "moe.router_bias",
                                      "encoder.gated_linear_unit"};
const std::set<std::string> kTextKeys{"normalization", "position_embedding_type", "qk_layernorm",
                                      "layer_pattern", "linear_attention.kind"};

bool is_name(const std::string& text) {
  const auto fits = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  };
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::ranges::all_of(text, fits);
}

std::optional<double> decimal(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? ""
                                    : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// Alternatives, of which the first counts that has a value.
std::vector<std::string> alternatives(const std::string& formula) {
  std::vector<std::string> all;
  size_t from = 0;
  for (size_t bar = formula.find('|'); bar != std::string::npos; bar = formula.find('|', from)) {
    all.push_back(trimmed(formula.substr(from, bar - from)));
    from = bar + 1;
  }
  all.push_back(trimmed(formula.substr(from)));
  return all;
}

std::vector<std::string> names_in(const std::string& formula) {
  static const std::set<std::string> kOperators{"and",  "or",  "not", "if",
                                                "else", "min", "max", "gcd"};
  std::vector<std::string> names;
  std::string word;
  for (const char c : formula + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
      continue;
    }
    if (is_name(word) && !kOperators.contains(word)) names.push_back(word);
    word.clear();
  }
  return names;
}

// JSON does not read a quoted number, or true, as one.
void refuse_text(const YamlValue& value) {
  if (value.node().Tag() != "!") return;
  const std::string text = value.node().Scalar();
  const bool flag = text == "true" || text == "false";
  value.fail(fmt::format("expected {}, not a text", flag ? "true or false" : "a whole number"));
}

long number_of(const YamlValue& value) {
  if (value.is_list()) {
    const std::vector<YamlValue> list = value.list();
    if (list.empty()) value.fail("expected a number, or a list of one for each layer");
    for (const YamlValue& each : list) {
      if (each.is_list()) each.fail("expected a whole number");
    }
    const long first = number_of(list.front());
    for (const YamlValue& each : list) {
      if (number_of(each) != first) each.fail("expected the same number in every layer");
    }
    return first;
  }
  if (value.is_map()) value.fail("expected a whole number");
  refuse_text(value);
  const std::string text = value.node().Scalar();
  if (text == "true" || text == "false") return text == "true" ? 1 : 0;
  return value.integer(-kLargestSize, kLargestSize);
}

class Derivation {
 public:
  Derivation(const Architecture& architecture, HfMap& file)
      : architecture_(architecture), file_(file) {}

  std::optional<YamlValue> given(const std::string& name) {
    auto value = file_.find(name);
    const auto spellings = architecture_.spellings.find(name);
    if (spellings == architecture_.spellings.end()) return value;
    for (const std::string& spelling : spellings->second) {
      auto other = file_.find(spelling);  // asked for, whether it counts or not
      if (!value) value = other;
    }
    return value;
  }

  std::optional<long> number(const std::string& name) {
    if (const auto value = given(name)) return number_of(*value);
    const auto missing = architecture_.defaults.find(name);
    if (missing == architecture_.defaults.end()) return std::nullopt;
    return number(missing->second);
  }

  std::optional<long> number(const YamlValue& formula) {
    const auto value = this->value("", formula);
    if (!value) return std::nullopt;
    const std::string text = value->Scalar();
    if (text == "true" || text == "false") return text == "true" ? 1 : 0;
    long number = 0;
    (void)std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }

  // The value of key `key` of `model:`.
  std::optional<YAML::Node> value(const std::string& key, const YamlValue& formula) {
    if (++depth_ > kDeepest) formula.fail("defaults that name each other");
    auto found = any_value(key, formula);
    --depth_;
    return found;
  }

  bool holds(const YamlValue& condition) { return number(condition).value_or(0) != 0; }

  LayerLetters letters(const YamlValue& formula) {
    const auto layers = number("num_hidden_layers");
    return letters_of(formula, {layers ? static_cast<int>(*layers) : 0,
                                [this](const std::string& name) { return given(name); },
                                [this](const YamlValue& each) { return number(each); }});
  }

  // The key that the file would have to have.
  std::string missing(const YamlValue& formula) {
    for (const std::string& name : names_in(alternatives(formula.text()).front())) {
      if (number(name)) continue;
      const auto otherwise = architecture_.defaults.find(name);
      return otherwise == architecture_.defaults.end() ? name : missing(otherwise->second);
    }
    return formula.text();
  }

  // Every key of the file that the entry knows is understood, whether it counted or not.
  void know(const YamlValue& formula) {
    if (formula.is_scalar()) {
      for (const std::string& each : alternatives(formula.text())) {
        for (const std::string& name : names_in(each)) (void)given(name);
      }
    } else if (formula.is_list()) {
      for (const YamlValue& each : formula.list()) know(each);
    } else if (formula.is_map()) {
      for (const auto& [key, each] : formula.entries()) know(each);
    }
  }

 private:
  std::optional<YAML::Node> any_value(const std::string& key, const YamlValue& formula) {
    if (formula.is_list()) {
      for (const YamlValue& each : formula.list()) {
        if (auto found = value(key, each)) return found;
      }
      return std::nullopt;
    }
    if (formula.is_map()) return of_form(key, formula);
    if (kTextKeys.contains(key)) return YAML::Node(formula.text());
    for (const std::string& each : alternatives(formula.text())) {
      if (auto found = of_text(key, each, formula)) return found;
    }
    return std::nullopt;
  }

  std::optional<YAML::Node> of_form(const std::string& key, const YamlValue& form) {
    YamlMap map(form);
    if (const auto condition = map.find("if")) {
      const bool yes = holds(*condition);
      const auto branch = map.find(yes ? "then" : "else");
      return branch ? value(key, *branch) : std::nullopt;
    }
    if (const auto counted = map.find("count")) {
      const auto list = given(counted->text());
      if (!list) return std::nullopt;
      return YAML::Node(list->is_list() ? list->list().size() : list->text().size());
    }
    if (const auto ratio = map.find("ratio")) {
      const auto part = number(ratio->list().at(0));
      const auto whole = number(ratio->list().at(1));
      if (!part || !whole || *whole == 0) return std::nullopt;
      return YAML::Node(
          fmt::format("{}", static_cast<double>(*part) / static_cast<double>(*whole)));
    }
    if (const auto inverse = map.find("inverse_square")) {
      const auto ratio = given(inverse->text());
      if (!ratio) return std::nullopt;
      const double value = ratio->number(1e-3, 1);
      return YAML::Node(std::lround(1 / (value * value)));
    }
    if (const auto blocks = map.find("blocks")) {
      return of_blocks(*blocks, map.require("as", "what is read of them").text());
    }
    const std::string found = letters(form).letters;
    return found.empty() ? std::nullopt : std::optional(YAML::Node(found));
  }

  std::optional<YAML::Node> of_blocks(const YamlValue& key, const std::string& what) {
    const auto list = given(key.text());
    const auto hidden = number("hidden_size");
    if (!list || !hidden) return std::nullopt;
    const HfBlocks blocks = blocks_of(*list, *hidden);
    if (what == "letters") return YAML::Node(blocks.letters);
    if (what == "parts") return YAML::Node(blocks.letters.size());
    if (what == "sizes") return YAML::Node(blocks.sizes);
    if (what == "size" && !blocks.sizes.empty()) return YAML::Node(std::ranges::max(blocks.sizes));
    const auto heads = number("num_attention_heads");
    if (what != "groups" || !heads || blocks.heads_of_group == 0) return std::nullopt;
    return YAML::Node(*heads / blocks.heads_of_group);
  }

  std::optional<YAML::Node> of_text(const std::string& key, const std::string& text,
                                    const YamlValue& formula) {
    if (decimal(text) || text == "true" || text == "false") return YAML::Node(text);
    if (is_name(text)) return of_name(key, text);
    std::vector<long> values;
    const std::vector<std::string> names = names_in(text);
    for (const std::string& name : names) {
      const auto number = this->number(name);
      if (!number) return std::nullopt;
      values.push_back(*number);
    }
    const long result = computed(Expression(text, formula.where(), names), values);
    if (kFlagKeys.contains(key)) return YAML::Node(result != 0);
    return YAML::Node(result);
  }

  // A formula that cannot be computed is a fault of the file, not of the table.
  [[nodiscard]] long computed(const Expression& expression, std::span<const long> values) const {
    try {
      return expression.value(values);
    } catch (const InputError& error) {
      file_.value().fail(error.message());
    }
  }

  // The file's own value, which knows where it stands.
  std::optional<YAML::Node> of_name(const std::string& key, const std::string& name) {
    const auto found = given(name);
    if (!found) {
      const auto missing = architecture_.defaults.find(name);
      if (missing == architecture_.defaults.end()) return std::nullopt;
      return value(key, missing->second);
    }
    if (key == "rotary_percent") return found->node();
    const long number = number_of(*found);
    if (found->is_list()) return YAML::Node(number);
    return found->node();
  }

  const Architecture& architecture_;
  HfMap& file_;
  int depth_ = 0;
};

bool is_optional(const YamlValue& formula) {
  if (!formula.is_scalar()) return true;
  return alternatives(formula.text()).back() == "none";
}

bool is_among(std::span<const std::string> names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

void check_values(const Architecture& architecture, Derivation& derivation) {
  for (const auto& [name, valid] : architecture.valid) {
    const auto value = derivation.given(name);
    if (!value) continue;
    std::vector<std::string> words;
    for (const YamlValue& each : valid.list()) words.push_back(each.text());
    (void)value->choice(words);
  }
}

// The keys of `model:`, as they are found.
class Derived {
 public:
  Derived(Derivation& derivation, HfMap& file) : derivation_(derivation), file_(file) {}

  // Which maps the model has, and which of its layers have experts.
  void find_sections(const Architecture& architecture) {
    for (const auto& [key, formula] : architecture.model) {
      if (key.ends_with(".when") && !derivation_.holds(formula)) absent_.insert(section_of(key));
    }
    const auto layers = architecture.model.find("moe.layers");
    if (layers == architecture.model.end() || absent_.contains("moe")) return;
    const LayerLetters letters = derivation_.letters(layers->second);
    if (letters.letters.empty()) return;
    const auto places = expert_layers(letters, file_.value());
    if (!places) {
      absent_.insert("moe");
      return;
    }
    set("moe.first_dense_layers", YAML::Node(places->first));
    set("moe.last_dense_layers", YAML::Node(places->last));
    set("moe.every", YAML::Node(places->every));
  }

  void add(const std::string& key, const YamlValue& formula, std::span<const std::string> stated) {
    if (key.ends_with(".when") || key == "moe.layers" || set_.contains(key) ||
        absent_.contains(section_of(key)))
      return;
    const bool replaced = is_among(stated, key);
    if (replaced && key == "layer_pattern") return;
    const auto value = derivation_.value(key, formula);
    if (value) {
      set(key, *value);
    } else if (!is_optional(formula)) {
      replaced ? set(key, YAML::Node(1)) : missing_.push_back(derivation_.missing(formula));
    }
  }

  YAML::Node model() {
    refuse_missing();
    settle_pattern();
    return model_;
  }

 private:
  static std::string section_of(const std::string& key) { return key.substr(0, key.find('.')); }

  void set(const std::string& key, const YAML::Node& value) {
    set_.insert(key);
    const std::string section = section_of(key);
    if (section == key) {
      model_[key] = value;
    } else {
      model_[section][key.substr(section.size() + 1)] = value;
    }
  }

  void refuse_missing() {
    if (missing_.empty()) return;
    std::ranges::sort(missing_);
    missing_.erase(std::unique(missing_.begin(), missing_.end()), missing_.end());
    const std::string first = missing_.front();
    missing_.erase(missing_.begin());
    const std::string others =
        missing_.empty() ? "" : fmt::format(", and so is '{}'", fmt::join(missing_, "', '"));
    file_.value().fail(fmt::format("'{}' is missing{}: expected a whole number", first, others));
  }

  // The shortest that repeats over the whole model; `G` says nothing that a model without a pattern
  // does not.
  void settle_pattern() {
    const auto node = model_["layer_pattern"];
    const std::string letters = node ? shortest_period(of_all_layers(node.Scalar())) : "";
    if (node) model_["layer_pattern"] = letters;
    if (letters == "G") model_.remove("layer_pattern");
    if (letters.find_first_of("WYX") == std::string::npos) model_.remove("attention_window");
  }

  [[nodiscard]] std::string of_all_layers(const std::string& pattern) const {
    const auto layers = model_["num_layers"].as<size_t>(0);
    std::string letters = pattern;
    while (!pattern.empty() && letters.size() < std::min(layers, kMostLetters)) letters += pattern;
    return letters.size() > layers && layers > pattern.size() ? letters.substr(0, layers) : letters;
  }

  Derivation& derivation_;
  HfMap& file_;
  YAML::Node model_{YAML::NodeType::Map};
  std::set<std::string> set_;
  std::set<std::string> absent_;
  std::vector<std::string> missing_;
};

}  // namespace

YAML::Node derive(const Architecture& architecture, HfMap& file,
                  std::span<const std::string> stated) {
  Derivation derivation(architecture, file);
  check_values(architecture, derivation);
  Derived derived(derivation, file);
  derived.find_sections(architecture);
  for (const auto& [key, formula] : architecture.model) derived.add(key, formula, stated);
  for (const auto& [key, formula] : architecture.model) derivation.know(formula);
  for (const auto& [name, formula] : architecture.defaults) {
    (void)derivation.given(name);
    derivation.know(formula);
  }
  return derived.model();
}

void refuse_values(const Architecture& architecture, HfMap& file) {
  Derivation derivation(architecture, file);
  for (const YamlValue& each : architecture.refused) {
    YamlMap map(each);
    const YamlValue condition = map.require("when", "a formula");
    if (!derivation.holds(condition)) continue;
    const std::string key = map.require("key", "a key").text();
    const std::string reason = map.require("because", "the reason").text();
    if (const auto value = derivation.given(key)) value->fail(reason);
    file.value().fail(fmt::format("{}: {}", key, reason));
  }
}

bool is_of_no_cost(const Architecture& architecture, const std::string& key,
                   const YamlValue& value) {
  const auto says = [&key](const std::string& name) {
    if (name.starts_with('*')) return key.ends_with(name.substr(1));
    if (name.ends_with('*')) return key.starts_with(name.substr(0, name.size() - 1));
    return key == name || key.ends_with("." + name);
  };
  if (std::ranges::any_of(architecture.no_cost, says)) return true;
  if (value.is_null()) return true;
  if (value.is_list()) return value.list().empty();  // of no layer
  if (!value.is_scalar()) return false;
  const std::string text = value.node().Scalar();
  return text == "false" || decimal(text) == 0.0;  // a part that is not there
}

}  // namespace pipesim
